"""When a listing is trusted no more: signs of a server that was restarted with other tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.calls.call import execute
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.upstream.channel import ChannelBusy, ChannelError, HttpStatusError, RpcError
from bridge.upstream.failures import is_doubtful
from bridge.upstream.link import Link
from bridge.upstream.target import Endpoint
from bridge.upstream.toolset import MCPToolset
from tests.waiting import eventually

CTX = local_context()
META = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Server:
    """A modern MCP server over HTTP that announces nothing; its tools and its process may change.

    Each request has a connection of its own, so that a restart breaks none.
    """

    def __init__(self) -> None:
        self.tools = ["old"]
        self.listed = 0
        self.refuses = False

    async def answer(self, stream: Any) -> None:
        async with stream:
            message = await _read(stream)
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **self.say(message)})
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            await stream.send(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def say(self, message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params", {})
        if method == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return {"result": {**META, **found}}

        if method == "tools/list":
            self.listed += 1
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]
            return {"result": {**META, "tools": tools}}

        if method == "tools/call" and params["name"] in self.tools and not self.refuses:
            return {"result": {"resultType": "complete", "content": []}}

        return {"error": {"code": -32602, "message": "Unknown tool"}}


async def _read(stream: Any) -> dict[str, Any]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()

    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0].partition(b":")[2]):
        body += await stream.receive()

    message: dict[str, Any] = json.loads(body)
    return message


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Server, MCPToolset]]:
    server = Server()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.answer)
        async with MCPToolset(Endpoint(f"http://127.0.0.1:{port}/mcp", "http")) as toolset:
            yield server, toolset

        tasks.cancel_scope.cancel()


async def names(toolset: MCPToolset) -> list[str]:
    return [tool.name for tool in await toolset.tools(CTX)]


async def call(toolset: MCPToolset, name: str) -> Any:
    tools = {one.name: one for one in await toolset.tools(CTX)}
    [outcome] = await execute([FunctionCall("c1", name, {})], tools, CTX)
    return outcome.error


async def test_tool_that_a_restarted_server_refuses_is_looked_for_anew() -> None:
    async with served() as (server, toolset):
        assert await names(toolset) == ["old"]
        server.tools = ["new"]
        assert await names(toolset) == ["old"], "nothing has told of it yet"
        assert await call(toolset, "old") is not None
        assert await names(toolset) == ["new"]


async def test_refusals_that_follow_each_other_are_followed_once() -> None:
    async with served() as (server, toolset):
        assert await names(toolset) == ["old"]
        server.refuses = True
        for _ in range(5):
            assert await call(toolset, "old") is not None

        assert await names(toolset) == ["old"]
        assert server.listed == 2


async def test_listing_of_a_server_that_announces_nothing_holds_for_a_while_only() -> None:
    async with served() as (server, toolset):
        assert await names(toolset) == ["old"]
        server.tools = ["new"]
        assert await names(toolset) == ["old"]
        toolset._listing.unheard_seconds = 0.0
        assert await names(toolset) == ["new"]


async def test_keeper_lists_anew_what_announces_nothing() -> None:
    told: list[int] = []
    async with served() as (server, toolset), anyio.create_task_group() as tasks:
        toolset._listing.unheard_seconds = 0.05
        tasks.start_soon(toolset.keep, lambda: told.append(1))
        await eventually(lambda: told)
        server.tools = ["new"]

        async def renewed() -> bool:
            return await names(toolset) == ["new"]

        await eventually(renewed)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("transport", "method", "failure", "doubtful"),
    [
        ("stdio", "tools/call", RpcError({"code": -32602}), True),
        ("http", "tools/call", RpcError({"code": -32601}), True),
        ("http", "prompts/get", RpcError({"code": -32602}), False),
        ("http", "tools/call", RpcError({"code": -32000}), False),
        ("http", "tools/call", ChannelError("lost", sent=True), True),
        ("stdio", "tools/call", ChannelError("lost", sent=True), False),
        ("http", "tools/call", ChannelBusy("full"), False),
        ("http", "tools/call", HttpStatusError(502, ""), True),
        ("http", "tools/call", HttpStatusError(403, ""), False),
    ],
)
def test_which_failures_are_signs_of_other_tools(
    transport: Any, method: str, failure: Any, doubtful: bool
) -> None:
    channel: Any = None
    link = Link(channel, transport, "modern", "2026-07-28")

    assert is_doubtful(link, method, failure) is doubtful
