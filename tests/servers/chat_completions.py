"""A provider of models that says what it is told to: chat completions over real HTTP.

    python tests/servers/chat_completions.py --port 8123 [--script steps.json]

Each desk of it is one provider with a script of its own; the file's is the desk "main". A desk's
base URL is `/<desk>/v1`. `PUT /<desk>/script` takes a JSON list of steps, `GET /<desk>/heard`
gives what was asked so far. Each question takes the next step, a JSON object with some of:

* `think`, `say`, `refuse`: texts; `calls`: a list of {"id", "name", "arguments"}, the arguments as
  an object or as text; `finish`, `usage`. Streamed if the question says so, word by word.
* `status`, `headers`, and `json` or `text`: an answer as it stands.
* `chunks`: a stream as it stands, of objects or of lines of text.
* `pause`: seconds before each chunk.
* `then`: how it ends. "done" is the way it should; "stop" leaves out the end of a stream, and "cut"
  drops its connection; "hang" says nothing more until the client is gone, and, where nothing is
  streamed, nothing at all.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import uvicorn

JSON = dict[str, Any]
MODEL = "scripted-1"
HEAD = {"id": "chatcmpl-1", "created": 1_764_500_000, "model": MODEL}
CHUNK = "chat.completion.chunk"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
NO_STEP = {"status": 400, "json": {"error": {"message": "the script has no more steps"}}}


class Cut(Exception):
    """Raised to make the server drop a connection."""


class Desk:
    """One provider: what it is to say, and what it heard."""

    def __init__(self, steps: list[JSON]) -> None:
        self.steps = steps
        self.heard: list[JSON] = []


class Provider:
    """The ASGI application."""

    def __init__(self, steps: list[JSON]) -> None:
        self.desks = {"main": Desk(steps)}

    async def __call__(self, scope: JSON, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return

        _, name, path = scope["path"].split("/", 2)
        desk = self.desks.setdefault(name, Desk([]))
        body = await _body(receive)
        match scope["method"], path:
            case "PUT", "script":
                self.desks[name] = Desk(json.loads(body))
                await _answer(send, {"json": {}})
            case "GET", "heard":
                await _answer(send, {"json": desk.heard})
            case "POST", "v1/chat/completions":
                await _complete(desk, scope, json.loads(body), receive, send)
            case _:
                await _answer(send, {"status": 404, "json": {"error": f"no such path: {path}"}})


async def _complete(desk: Desk, scope: JSON, question: JSON, receive: Any, send: Any) -> None:
    headers = {key.decode(): value.decode() for key, value in scope["headers"]}
    client = ":".join(str(part) for part in scope["client"])
    query = scope["query_string"].decode()
    heard = {"body": question, "headers": headers, "client": client, "query": query, "gone": False}
    desk.heard.append(heard)
    step = desk.steps.pop(0) if desk.steps else NO_STEP
    then = step.get("then", "done")
    is_stream = "chunks" in step or (question.get("stream") and "status" not in step)
    if is_stream:
        await _stream(send, step, then)

    if then == "hang":
        while (await receive())["type"] != "http.disconnect":
            pass

        heard["gone"] = True
    elif then == "cut":
        raise Cut
    elif is_stream:
        await send({"type": "http.response.body", "body": b""})
    else:
        await _answer(send, step if "status" in step else {"json": whole(step)})


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)

    return body


async def _answer(send: Any, step: JSON) -> None:
    text = step["text"] if "text" in step else json.dumps(step.get("json"))
    kind = "text/plain" if "text" in step else "application/json"
    headers = {"content-type": kind, **step.get("headers", {})}
    await _start(send, step.get("status", 200), headers)
    await send({"type": "http.response.body", "body": text.encode()})


async def _start(send: Any, status: int, headers: dict[str, str]) -> None:
    pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def _stream(send: Any, step: JSON, then: str) -> None:
    await _start(send, 200, {**EVENT_STREAM, **step.get("headers", {})})
    chunks = step["chunks"] if "chunks" in step else [*chunked(step, is_whole=then == "done")]
    lines = [c if isinstance(c, str) else f"data: {json.dumps(c)}\n\n" for c in chunks]
    lines += ["data: [DONE]\n\n"] if then == "done" and "chunks" not in step else []
    for line in lines:
        await anyio.sleep(step.get("pause", 0))
        await send({"type": "http.response.body", "body": line.encode(), "more_body": True})


def whole(step: JSON) -> JSON:
    """A step as the body of one answer."""
    message: JSON = {"role": "assistant", "content": step.get("say")}
    message |= {"reasoning_content": step["think"]} if "think" in step else {}
    message |= {"refusal": step["refuse"]} if "refuse" in step else {}
    message |= {"tool_calls": [_call(call) for call in step["calls"]]} if "calls" in step else {}
    choice = {"index": 0, "message": message, "finish_reason": _finish(step)}
    usage = step.get("usage", USAGE)
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}


def chunked(step: JSON, *, is_whole: bool) -> Iterator[JSON]:
    """A step as the chunks of a stream; without its end unless `is_whole`."""
    yield _chunk({"role": "assistant", "content": ""})
    for key, name in (("think", "reasoning_content"), ("say", "content"), ("refuse", "refusal")):
        for word in re.findall(r"\s*\S+", step.get(key, "")):
            yield _chunk({name: word})

    for index, call in enumerate(step.get("calls", [])):
        given = _call(call)
        arguments = given["function"]["arguments"]
        given["function"]["arguments"] = ""
        yield _chunk({"tool_calls": [{"index": index, **given}]})
        for start in range(0, len(arguments), 5):
            delta = {"index": index, "function": {"arguments": arguments[start : start + 5]}}
            yield _chunk({"tool_calls": [delta]})

    if is_whole:
        yield _chunk({}, _finish(step))
        yield {**HEAD, "object": CHUNK, "choices": [], "usage": step.get("usage", USAGE)}


def _chunk(delta: JSON, finish: str | None = None) -> JSON:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**HEAD, "object": CHUNK, "choices": [choice], "usage": None}


def _call(call: JSON) -> JSON:
    arguments = call["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": call["name"], "arguments": text},
    }


def _finish(step: JSON) -> str:
    return str(step.get("finish", "tool_calls" if "calls" in step else "stop"))


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--script", type=Path)
    given = parser.parse_args()
    steps = json.loads(given.script.read_text("utf-8")) if given.script else []
    uvicorn.run(Provider(steps), host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
