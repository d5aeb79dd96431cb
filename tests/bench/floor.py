"""The floor: how little a Python process can do between an HTTP client and an upstream.

    python -m tests.bench.floor PORT COMMAND...      in front of a stdio upstream
    python -m tests.bench.floor PORT http://…        in front of a Streamable HTTP upstream

It reads a request, finds its era with the SDK's public classifier, forwards it under a number of
its own and answers with JSON. It names, filters, checks, limits and remembers nothing: it is a
yardstick for the machine, and no gateway. The upstream is always spoken to in the modern era.
"""

# ruff: noqa: TID251 — bare futures and streams are the point of a floor

from __future__ import annotations

import asyncio
import itertools
import sys
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson
import uvicorn
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
)

from tests.bench.wire import KEY, MODERN, envelope, modern_headers

ENVELOPE = envelope("floor")
INFO = {"name": "floor", "version": "1"}
MODERN_ONLY = ("resultType", "ttlMs", "cacheScope", "_meta")
LONGEST_LINE = 1 << 26


class Upstream(Protocol):
    """Where requests go."""

    async def start(self) -> None: ...
    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...


class StdioUpstream:
    """A child process; its answers find their futures by number."""

    def __init__(self, argv: list[str]) -> None:
        self._argv = argv
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self._child = await asyncio.create_subprocess_exec(
            *self._argv, stdin=pipe, stdout=pipe, limit=LONGEST_LINE
        )
        if self._child.stdin is None or self._child.stdout is None:
            raise RuntimeError("the child has no pipes")

        self._input = self._child.stdin
        self._pump = asyncio.create_task(self._read(self._child.stdout))

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._input.write(orjson.dumps(request) + b"\n")
        return await future

    async def _read(self, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            message = orjson.loads(line)
            future = self._waiting.pop(message.get("id"), None)
            if future is not None:
                future.set_result(message)


class HttpUpstream:
    """A URL, over as many connections as there are calls at one time, each kept and used again."""

    def __init__(self, url: str) -> None:
        found = urlsplit(url)
        self._host, self._port, self._path = found.hostname or "", found.port or 80, found.path
        self._numbers = itertools.count(1)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def start(self) -> None:
        """Nothing has to be ready before the first call."""

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(
                self._host, self._port, limit=LONGEST_LINE
            )

        number = next(self._numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = orjson.dumps(request)
        writer.write(
            b"POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s"
            % (
                self._path.encode(),
                self._host.encode(),
                self._port,
                modern_headers(method, params.get("name", "")),
                len(body),
                body,
            )
        )
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        self._idle.append((reader, writer))
        reply: dict[str, Any] = orjson.loads(answer)
        return reply


class Floor:
    """The ASGI application."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return

        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)

        status, answer = 405, None
        if scope["method"] == "POST":
            headers = {k.decode("latin1"): v.decode("latin1") for k, v in scope["headers"]}
            status, answer = await self._answer(orjson.loads(body), headers)

        body = b"" if answer is None else orjson.dumps(answer)
        fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, request: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, dict[str, Any] | None]:
        number, method, params = request.get("id"), request["method"], request.get("params") or {}
        if number is None:
            return 202, None

        message = {"jsonrpc": "2.0", "id": number}
        is_modern = headers.get("mcp-protocol-version") == MODERN
        if is_modern:
            verdict = classify_inbound_request(request, headers=headers)
            if isinstance(verdict, InboundLadderRejection):
                error = {"code": verdict.code, "message": verdict.message}
                return ERROR_CODE_HTTP_STATUS.get(verdict.code, 200), message | {"error": error}
        elif method == "initialize":
            result = {"capabilities": {"tools": {}}, "serverInfo": INFO}
            result["protocolVersion"] = params["protocolVersion"]
            return 200, message | {"result": result}

        params["_meta"] = (params.get("_meta") or {}) | ENVELOPE
        answer = await self._upstream.ask(method, params)
        if "error" in answer:
            return 200, message | {"error": answer["error"]}

        return 200, message | {"result": _in_era(answer["result"], is_modern)}

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        await self._upstream.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


def _in_era(result: dict[str, Any], is_modern: bool) -> dict[str, Any]:
    if is_modern:
        result["_meta"] = (result.get("_meta") or {}) | {KEY + "serverInfo": INFO}
        return result

    for key in MODERN_ONLY:
        result.pop(key, None)

    return result


def main() -> None:
    """Serve until ended."""
    port, *target = sys.argv[1:]
    is_url = target[0].startswith("http://")
    uvicorn.run(
        Floor(HttpUpstream(target[0]) if is_url else StdioUpstream(target)),
        host="127.0.0.1",
        port=int(port),
        loop="uvloop",
        http="httptools",
        log_level="error",
    )


if __name__ == "__main__":
    main()
