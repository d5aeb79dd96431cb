"""A stdio MCP server that misbehaves in one chosen way; the standard library alone.

    python tests/servers/odd.py WAY [--era both|legacy|modern] [--size N] [--delay S] [--journal F]

It offers two tools: `echo` always behaves and returns its arguments, `odd` does WAY. A call may
choose another way for itself: `odd` with `{"way": "twice"}`. Ways that are no call's business
(`mute`, `same-cursor`, `stubborn` and so on: see `PROCESS_WAYS`) belong to the whole process.

The journal is a file that gets one JSON line for the start and one for each message received, so
that a test can count what really arrived, over restarts too. Tests read it, and the answers to
expect, through `tests.servers.odd_wire`, which imports nothing of the other two files.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odd_ways import CALL_WAYS, Call, plain
from odd_wire import ECHO, JSON, ODD, SUBSCRIPTION_KEY, Wire

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
INFO = {"name": "odd", "version": "1.0.0"}
LIFE = 600.0  # seconds after which whatever refuses to end ends by itself


class Odd(Wire):
    """The server: what it does with what arrives."""

    def receive(self, message: JSON) -> None:
        """Act on one message."""
        self.journal(message)
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self.take_reply(message)
        elif "id" not in message:
            if method == "notifications/cancelled":
                self.cancel(params.get("requestId"))
        elif self.way != "mute":
            modern = VERSION_KEY in params.get("_meta", {}) and self.era != "legacy"
            self.respond(message["id"], method, params, modern=modern)

    def cancel(self, request_id: Any) -> None:
        """Forget a request that nobody waits for any more."""
        self.cancelled.add(request_id)
        if request_id in self.listening:
            self.listening.remove(request_id)

    def take_reply(self, message: JSON) -> None:
        """Hand the client's reply to our own question to the call that caused it."""
        call_id, modern = self.asked.pop(message.get("id"), (None, False))
        if call_id is not None:
            reply = {key: message[key] for key in ("result", "error") if key in message}
            self.answer(call_id, {"content": [], "structuredContent": reply}, modern=modern)

    def respond(self, request_id: Any, method: str, params: JSON, *, modern: bool) -> None:
        """Answer one request, or not."""
        if self.era == "modern" and not modern:
            data = {"supported": [MODERN], "requested": params.get("protocolVersion", "")}
            self.refuse(request_id, -32022, "Unsupported protocol version", data)
        elif method == "server/discover" and modern:
            self.answer(request_id, self.discovery(), modern=True)
        elif method == "initialize" and not modern:
            self.answer(request_id, self.greeting(params), modern=False)
        elif method == "tools/list":
            hints: JSON = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
            self.answer(request_id, {**self.page(params.get("cursor")), **hints}, modern=modern)
        elif method == "tools/call":
            self.call(request_id, params, modern=modern)
        elif method == "subscriptions/listen" and modern:
            self.listening.append(request_id)
            meta = {SUBSCRIPTION_KEY: request_id}
            acknowledged = {"notifications": {"toolsListChanged": True}, "_meta": meta}
            self.send(
                {"method": "notifications/subscriptions/acknowledged", "params": acknowledged}
            )
        elif method == "ping" and not modern:
            self.answer(request_id, {}, modern=False)
        else:
            self.refuse(request_id, -32601, "Method not found")

    def discovery(self) -> JSON:
        """What `server/discover` tells."""
        versions = [MODERN] if self.era == "modern" else [*LEGACY, MODERN]
        return {
            "supportedVersions": versions,
            "capabilities": {"tools": {"listChanged": True}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {SERVER_KEY: INFO},
        }

    def greeting(self, params: JSON) -> JSON:
        """What `initialize` answers."""
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in LEGACY else LEGACY[-1],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": INFO,
            "instructions": "Expect the unexpected.",
        }

    def page(self, cursor: str | None) -> JSON:
        """One page of the listing."""
        number = int(cursor.removeprefix("page-")) if cursor else 0
        if self.way == "same-cursor":
            return {"tools": self.tools if number == 0 else [], "nextCursor": "page-1"}
        if self.way == "endless-pages":
            tools = [{**ODD, "name": f"odd_{number}"}]
            return {"tools": tools, "nextCursor": f"page-{number + 1}"}
        if self.way == "pages":  # an honest one: one tool a page, `size` pages
            more = {"nextCursor": f"page-{number + 1}"} if number + 1 < (self.size or 3) else {}
            return {"tools": [{**ECHO, "name": f"echo_{number}"}], **more}
        if self.way == "twins":
            return {"tools": [ECHO, {**ODD, "name": "echo"}, ODD]}
        return {"tools": self.tools}

    def call(self, request_id: Any, params: JSON, *, modern: bool) -> None:
        """Run `echo` or the odd thing."""
        name, args = params.get("name"), params.get("arguments") or {}
        if name == "odd":
            way = args.get("way", self.way)
            CALL_WAYS.get(way, plain)(self, Call(self, request_id, params, modern=modern))
        elif self.way == "pages" or any(tool["name"] == name for tool in self.tools):
            plain(self, Call(self, request_id, params, modern=modern))
        else:
            self.refuse(request_id, -32602, f"Unknown tool: {name}")


PROCESS_WAYS = {
    "mute": "reads, and answers nothing at all",
    "exit": "ends at once with status 3 and a reason on stderr",
    "prose": "answers every line with a line of text that is no JSON",
    "slow-start": "answers nothing for the first --delay seconds",
    "stubborn": "ignores EOF and SIGTERM; has a grandchild, in its own session, that does too",
    "same-cursor": "tools/list gives the same cursor again and again",
    "endless-pages": "tools/list gives a new cursor for ever",
    "pages": "tools/list has --size honest pages of one tool",
    "twins": "two tools with one name",
}


def lines() -> Iterator[bytes]:
    """What arrives on stdin, line by line."""
    yield from iter(sys.stdin.buffer.readline, b"")


def be_stubborn(server: Odd) -> None:
    """Ignore what asks us to end, and have a child of the same kind that left our session."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # what is ignored stays so in children

    child = subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep({LIFE})"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    server.journal({"grandchild": child.pid})


def main() -> None:
    """Serve until stdin ends, or longer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=sorted({*CALL_WAYS, *PROCESS_WAYS}))
    parser.add_argument("--era", choices=("both", "legacy", "modern"), default="both")
    parser.add_argument("--size", type=int)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--journal", type=Path)
    server = Odd(parser.parse_args())
    if server.way == "exit":
        server.journal({"started": True})
        sys.stderr.write("odd: the environment variable ODD_TOKEN is not set\n")
        sys.exit(3)

    if server.way == "stubborn":
        be_stubborn(server)

    server.journal({"started": True})
    if server.way == "slow-start":
        time.sleep(server.delay)

    for line in lines():
        if server.way == "prose":
            server.write(b"Usage: odd [OPTIONS] COMMAND\n")
        else:
            server.receive(json.loads(line))

    if server.way == "stubborn":
        server.journal({"eof": True})
        time.sleep(LIFE)


if __name__ == "__main__":
    main()
