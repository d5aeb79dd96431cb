"""An MCP server whose answers are large, or nearly: `large.py modern|legacy`, over stdio."""

from __future__ import annotations

import json
import sys
from typing import Any

LINES = "".join(f"line {number:>8}\n" for number in range(380_000))[: 5 * 1024 * 1024]
"""Five MiB of text of which every part is another."""

WIDE = "".join(f"{number} é 日本 😀\n" for number in range(100_000))
PICTURE = {"type": "image", "data": "iVBORw0K" * 200_000, "mimeType": "image/png"}
ROWS = [{"id": number, "tags": [number, None]} for number in range(60_000)]
TEXT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
LIST = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
STAMP = {"example.com/trace": "t-1"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


RESULTS: dict[str, dict[str, Any]] = {
    "lines": {"content": [text(LINES)], "isError": True, "_meta": STAMP, "unknown": {"kept": [1]}},
    "wide": {"content": [text(WIDE)]},
    "small": {"content": [text("small")]},
    "picture": {"content": [PICTURE, text("a picture")]},
    "both": {"content": [text("before"), PICTURE, text(LINES), text("after")]},
    "promised": {"content": [text(LINES)], "structuredContent": {"result": LINES}},
    "rows": {"content": [], "structuredContent": {"rows": ROWS}},
    "promised_rows": {"content": [text("rows")], "structuredContent": {"rows": ROWS}},
    "many": {"content": [PICTURE, *(text(f"{number:>1000}") for number in range(3000))]},
}
SCHEMAS = {"promised": TEXT, "promised_rows": LIST}
RESOURCES = {"big://lines": LINES, "ui://app": f"<html>{LINES}</html>", "big://small": "small"}


def answer(method: str, params: dict[str, Any], version: str) -> dict[str, Any] | None:
    """The result of one request; None if there is none."""
    about = {"capabilities": {"tools": {}, "resources": {}}, "serverInfo": SERVER}
    found: dict[str, Any] = {}
    if method == "initialize":
        found = {"protocolVersion": version, **about}
    elif method == "server/discover" and version.startswith("2026"):
        found = {"supportedVersions": [version], **about, "ttlMs": 0, "cacheScope": "private"}
    elif method == "tools/list":
        plain = {"inputSchema": {"type": "object"}}
        promises = {name: {"outputSchema": schema} for name, schema in SCHEMAS.items()}
        found = {"tools": [{"name": one, **plain, **promises.get(one, {})} for one in RESULTS]}
    elif method == "resources/list":
        found = {"resources": [{"uri": uri, "name": uri} for uri in RESOURCES]}
    elif method == "resources/templates/list":
        found = {"resourceTemplates": []}
    elif method == "tools/call":
        found = RESULTS[params["name"]]
    elif method == "resources/read":
        found = {"contents": [{"uri": params["uri"], "text": RESOURCES[params["uri"]]}]}

    return found or None


SERVER = {"name": "large", "version": "1"}


def main(era: str) -> None:
    version = "2026-07-28" if era == "modern" else "2025-11-25"
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue

        result = answer(message["method"], message.get("params") or {}, version)
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            response["error"] = {"code": -32601, "message": "no such method"}
        else:
            response["result"] = {**result, "resultType": "complete"} if era == "modern" else result

        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
