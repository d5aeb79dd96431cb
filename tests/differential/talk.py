"""A conversation in one era: what opens it, and what every request carries there."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map

from tests.differential.wire import Message, Wire

Era: TypeAlias = Literal["legacy", "modern"]

ERAS: tuple[Era, ...] = ("legacy", "modern")
VERSIONS: Mapping[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}
CLIENT = {"name": "differential", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The lists, and where in a page its things stand."""

MOST_PAGES = 100


class Talk:
    """A client of one era that declares nothing, over any transport."""

    def __init__(self, wire: Wire, era: Era, numbers_from: int = 1) -> None:
        """`numbers_from` is the id of the first request: two clients may share one wire."""
        self.wire = wire
        self.era = era
        self._numbers = itertools.count(numbers_from)
        self._mirrored: dict[str, Any] = {}

    async def begin(self) -> Message:
        """Open the conversation; the answer to `initialize`, or to `server/discover`."""
        if self.era == "modern":
            return await self.ask("server/discover", {})

        params = {
            "protocolVersion": VERSIONS["legacy"],
            "capabilities": {},
            "clientInfo": CLIENT,
        }
        found = await self.ask("initialize", params)
        await self.wire.post(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers("", {})
        )
        return found

    async def ask(self, method: str, params: Mapping[str, Any]) -> Message:
        """The reply to one request: its result or its error, and nothing else."""
        sent = dict(params)
        if self.era == "modern":
            sent["_meta"] = {**params.get("_meta", {}), **ENVELOPE}

        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": sent}
        reply = await self.wire.exchange(message, self._headers(method, params))
        return {key: value for key, value in reply.items() if key not in ("jsonrpc", "id")}

    async def whole_list(self, method: str) -> Message:
        """All pages of a list as one page, the first one's; or the error."""
        key = LISTS[method]
        first = page = await self.ask(method, {})
        found = list(page.get("result", {}).get(key, []))
        for _ in range(MOST_PAGES):
            cursor = page.get("result", {}).get("nextCursor")
            if cursor is None:
                break

            page = await self.ask(method, {"cursor": cursor})
            found += page["result"][key]

        if "result" not in first:
            return first

        self._remember(method, found)
        kept = {name: value for name, value in first["result"].items() if name != "nextCursor"}
        return {"result": {**kept, key: found}}

    def _remember(self, method: str, found: list[Any]) -> None:
        """Which arguments of the tools ride in headers, too."""
        if method == "tools/list":
            self._mirrored = {
                tool["name"]: mirrored
                for tool in found
                if (mirrored := x_mcp_header_map(tool.get("inputSchema", {})))
            }

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": VERSIONS[self.era]}
        if self.era == "legacy":
            return {} if method == "initialize" else headers

        headers["Mcp-Method"] = method
        if (key := NAMED_BY.get(method)) is not None:
            headers["Mcp-Name"] = encode_header_value(str(params.get(key, "")))

        if method == "tools/call" and (mirrored := self._mirrored.get(params.get("name", ""))):
            headers.update(mcp_param_headers(mirrored, params.get("arguments") or {}))

        return headers
