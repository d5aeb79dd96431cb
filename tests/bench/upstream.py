"""The stdio MCP server behind every contender: no SDK, both eras, hardly any work.

    python -I -S upstream.py [--tools N] [--delay SECONDS] [--stamp FILE]

`echo` gives its text back and `blob` so many KiB of text; N counts all tools, the rest of which
do nothing. With `--delay` the first message waits; `--stamp` writes into FILE when, in seconds of
the wall clock, the tools were first listed. It uses the standard library only and imports nothing
of ours, so that it starts at once, under any interpreter.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
STAMP = {"io.modelcontextprotocol/serverInfo": {"name": "bench-upstream", "version": "1"}}
INFO = {"name": "bench-upstream", "version": "1"}
LISTABLE = {"ttlMs": 60_000, "cacheScope": "public"}
NOT_FOUND = {"code": -32601, "message": "method not found"}


def definitions(count: int) -> list[dict[str, Any]]:
    """So many tools, the working ones first."""
    kinds = {"echo": ("text", "string"), "blob": ("kib", "integer")}
    kinds |= {f"idle_{number}": ("text", "string") for number in range(count - len(kinds))}
    return [_definition(name, *argument) for name, argument in kinds.items()][:count]


def _definition(name: str, argument: str, kind: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return {"name": name, "description": f"The benchmark's {name}.", "inputSchema": schema}


def answer(request: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole answer to one request."""
    params = request.get("params") or {}
    result = _result(request["method"], params, tools)
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        return {**message, "error": NOT_FOUND}

    if VERSION_KEY in (params.get("_meta") or {}):
        result |= {"resultType": "complete", "_meta": STAMP}
        if request["method"] in ("tools/list", "server/discover"):
            result |= LISTABLE

    return {**message, "result": result}


def _result(method: str, params: dict[str, Any], tools: list[Any]) -> dict[str, Any] | None:
    offer: dict[str, Any] = {"capabilities": {"tools": {}}}
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        size = 1024 * int(arguments.get("kib", 0))
        text = "x" * size if params["name"] == "blob" else str(arguments.get("text"))
        return {"content": [{"type": "text", "text": text}], "isError": False}

    if method == "tools/list":
        return {"tools": tools}

    if method == "initialize":
        return offer | {"protocolVersion": params["protocolVersion"], "serverInfo": INFO}

    if method == "server/discover":
        return offer | {"supportedVersions": [MODERN]}

    return {} if method == "ping" else None


def serve(options: argparse.Namespace, taken: BinaryIO, given: BinaryIO) -> None:
    """Answer line by line until the input ends."""
    tools, stamp, delay = definitions(options.tools), options.stamp, options.delay
    for line in taken:
        time.sleep(delay)
        delay = 0.0
        request = json.loads(line)
        if "method" not in request or request.get("id") is None:
            continue

        given.write(json.dumps(answer(request, tools), separators=(",", ":")).encode() + b"\n")
        given.flush()
        if stamp is not None and request["method"] == "tools/list":
            stamp.write_text(str(time.time()), "utf-8")
            stamp = None


def main() -> None:
    """Serve what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=int, default=2)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--stamp", type=Path)
    serve(parser.parse_args(), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
