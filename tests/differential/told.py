"""A stdio MCP server that answers exactly what it is told: `told.py legacy|modern`; no library.

The tool `become` gives it something else to offer: its argument `offer` is JSON text, an object
with the four lists (`tools`, `prompts`, `resources`, `resourceTemplates`) and what it answers to
`prompts/get` by name (`get`), to `resources/read` by URI (`read`), and to `completion/complete`
(`complete`). Any other, as `say`, answers with its argument `say`, JSON text of an object that
holds the `result` or the `error`; without it, with the params that reached the server.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Json = dict[str, Any]

MODERN = "2026-07-28"
RESERVED = "io.modelcontextprotocol/"
PAGE = 5  # definitions on one page of a list
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
BECOME = {"name": "become", "inputSchema": {"type": "object"}}
SAY = {"name": "say", "inputSchema": {"type": "object"}}
OWN_TOOLS = [BECOME, SAY]
CHANGEABLE = {"listChanged": True}
CAPABILITIES: Json = {
    "tools": CHANGEABLE,
    "prompts": CHANGEABLE,
    "resources": CHANGEABLE,
    "completions": {},
}
CHANGED = ("tools", "prompts", "resources")
UNKNOWN: Json = {"error": {"code": -32602, "message": "unknown"}}


class Told:
    """The server: what it offers now, and who listens."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.offer: Json = {"tools": []}
        self.listening: list[Any] = []

    def take(self, message: Json) -> None:
        """Act on one message."""
        if "id" in message and "method" in message:
            reply = self.reply(message["id"], message["method"], message.get("params") or {})
            if reply is not None:
                send({"id": message["id"], **reply})

    def reply(self, number: Any, method: str, params: Json) -> Json | None:
        """The `result` or the `error` of one request; None for a subscription."""
        if method in ("initialize", "server/discover"):
            return self.greet(method, params)

        if method == "subscriptions/listen":
            self.listening.append(number)
            self.tell("subscriptions/acknowledged", {"notifications": params["notifications"]})
            return None

        if method in LISTS:
            return {"result": self.page(LISTS[method], params.get("cursor"))}

        if method == "tools/call":
            return self.call(params)

        answers: Json = {
            "prompts/get": self.offer.get("get", {}).get(params.get("name"), UNKNOWN),
            "resources/read": self.offer.get("read", {}).get(params.get("uri"), UNKNOWN),
            "completion/complete": self.offer.get("complete", UNKNOWN),
        }
        answer: Json = answers.get(method, {"error": {"code": -32601, "message": "no"}})
        return answer

    def greet(self, method: str, params: Json) -> Json:
        """Open the conversation, in the one era that it speaks."""
        if (method == "initialize") != (self.era == "legacy"):
            code = -32022 if method == "initialize" else -32601
            return {"error": {"code": code, "message": "not in this era"}}

        if method == "server/discover":
            result = {"supportedVersions": [MODERN], "resultType": "complete"}
            return {"result": {**result, "capabilities": CAPABILITIES}}

        info = {"name": "told", "version": "1"}
        version = params["protocolVersion"]
        result = {"protocolVersion": version, "serverInfo": info, "capabilities": CAPABILITIES}
        return {"result": result}

    def page(self, key: str, cursor: str | None) -> Json:
        """One page of a list."""
        listed = [*(OWN_TOOLS if key == "tools" else []), *self.offer.get(key, [])]
        start = int(cursor or 0)
        more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(listed) else {}
        return {key: listed[start : start + PAGE], **more}

    def call(self, params: Json) -> Json:
        """Answer a call as it wants to be answered."""
        arguments = params.get("arguments") or {}
        if params.get("name") == "become":
            self.offer = json.loads(arguments["offer"])
            for what in CHANGED:
                self.tell(f"{what}/list_changed", {})

            return {"result": {"content": []}}

        if "say" in arguments:
            said: Json = json.loads(arguments["say"])
            return said

        return {"result": {"content": [], "structuredContent": arrived(params)}}

    def tell(self, what: str, params: Json) -> None:
        """Send a notification to whoever has subscribed; in the legacy era everybody has."""
        method = f"notifications/{what}"
        if self.era == "legacy":
            send({"method": method})

        for number in self.listening:
            meta = {"io.modelcontextprotocol/subscriptionId": number}
            send({"method": method, "params": {**params, "_meta": meta}})


def arrived(params: Json) -> Json:
    """The params of a request without what belongs to its hop."""
    kept = {key: value for key, value in params.items() if key != "_meta"}
    meta = {k: v for k, v in params.get("_meta", {}).items() if not k.startswith(RESERVED)}
    return {**kept, "_meta": meta}


def send(message: Json) -> None:
    """One message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the input ends."""
    server = Told(sys.argv[1])
    for line in sys.stdin:
        server.take(json.loads(line))


if __name__ == "__main__":
    main()
