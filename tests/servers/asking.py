"""A stdio MCP server that asks and tells as each call wants it to; the standard library alone.

    python tests/servers/asking.py legacy|modern

`tools/call`, `prompts/get` and `resources/read` all do what their `arguments` say:

* `{"do": [step, …]}` (legacy): `["ask", method, params]` sends a request and waits for its reply,
  `["tell", method, params]` sends a notification, `["wait", word]` waits for the notification
  `test/go` with that word, `["off", n]` calls off the nth request of this call that was sent
  with `["send", method, params]` and not waited for. The answer holds the replies in order.
* `{"rounds": [{…}, …]}` (modern): each is the `inputRequests` of one `input_required`; the
  `requestState` carries what was answered before, and the answer holds all of it.

Every answer also tells what the call came with, and what the server was told since it began.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from typing import Any

JSON = dict[str, Any]
MODERN = "2026-07-28"
TOOL = {"name": "do", "description": "Do it.", "inputSchema": {"type": "object"}}
OURS = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
WORKING = {"tools/call", "prompts/get", "resources/read"}

lock = threading.Lock()
replies: dict[str, JSON] = {}
arrived: dict[str, threading.Event] = defaultdict(threading.Event)
told: list[JSON] = []


def send(message: JSON) -> None:
    """One message."""
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def do(call_id: Any, steps: list[Any]) -> list[JSON]:
    """The steps of one call, and the replies to its questions."""
    got: list[JSON] = []
    for number, (act, *rest) in enumerate(steps):
        question = f"{call_id}/{number}"
        if act in {"ask", "send"}:
            send({"id": question, "method": rest[0], "params": rest[1]})

        if act == "ask":
            arrived[question].wait()
            got.append(replies[question])
        elif act == "tell":
            send({"method": rest[0], "params": rest[1]})
        elif act == "wait":
            arrived[rest[0]].wait()
        elif act == "off":
            params = {"requestId": f"{call_id}/{rest[0]}"}
            send({"method": "notifications/cancelled", "params": params})

    return got


def work(message: JSON) -> None:
    """Answer one call."""
    params = message["params"]
    arguments = params.get("arguments") or {}
    result: JSON = {"content": [], "contents": [], "messages": []}
    came = {key: value for key, value in params.items() if key not in {"name", "arguments"}}
    if "rounds" in arguments:
        before = json.loads(params.get("requestState", "[]"))
        if "requestState" in params:
            before.append(params.get("inputResponses"))

        rounds = arguments["rounds"]
        if len(before) < len(rounds):
            asked = rounds[len(before)]
            kind = {"resultType": "input_required", "requestState": json.dumps(before)}
            more = {} if asked is None else {"inputRequests": asked}
            send({"id": message["id"], "result": {**kind, **more}})
            return

        result["structuredContent"] = {"answers": before, "came": came}
    elif "result" in arguments:
        result = arguments["result"]
    else:
        got = do(message["id"], arguments.get("do", []))
        result["structuredContent"] = {"replies": got, "came": came, "told": list(told)}
        result["structuredContent"]["pid"] = os.getpid()

    kind = {"resultType": "complete"} if sys.argv[1] == "modern" else {}
    send({"id": message["id"], "result": {**kind, **result}})


def respond(message: JSON) -> None:
    """Answer one request that is no call."""
    method, params = message["method"], message.get("params") or {}
    is_modern = sys.argv[1] == "modern"
    result: JSON | None = None
    if method == "initialize" and not is_modern:
        result = {"protocolVersion": params["protocolVersion"], "capabilities": OURS}
        result["serverInfo"] = {"name": "asking", "version": "1"}
    elif method == "server/discover" and is_modern:
        result = {"supportedVersions": [MODERN], "capabilities": OURS, "resultType": "complete"}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "logging/setLevel" and not is_modern:
        result = {}

    if result is None:
        error = {"code": -32022 if method == "initialize" else -32601, "message": "no"}
        send({"id": message["id"], "error": error})
    else:
        send({"id": message["id"], "result": result})


def main() -> None:
    """Read until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            replies[message["id"]] = {k: message[k] for k in ("result", "error") if k in message}
            arrived[message["id"]].set()
        elif method in WORKING:
            threading.Thread(target=work, args=(message,), daemon=True).start()
        else:
            if not method.endswith("/list"):
                told.append({"method": method, "params": message.get("params")})

            if method == "test/go":
                arrived[message["params"]["word"]].set()

            if "id" in message:
                respond(message)


if __name__ == "__main__":
    main()
