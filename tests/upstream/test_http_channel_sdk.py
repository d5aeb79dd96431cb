"""The Streamable HTTP channel against a real server made with the SDK, in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from bridge.upstream.channel import Limits, Options, RequestTimeout, RpcError, SessionGone
from bridge.upstream.http import HttpChannel, open_http
from tests import nursery
from tests.processes import started, unused_port
from tests.waiting import eventually

PLAIN = str(Path(__file__).parent.parent / "servers" / "plain.py")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
PATIENT = Options(timeout=60)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def talking(era: str) -> AsyncIterator[tuple[HttpChannel, int]]:
    """A channel of that era to a fresh server, and the server's port."""
    port = unused_port()
    async with (
        started(nursery.server(PLAIN, "http", str(port)), port=port),
        open_http(f"http://127.0.0.1:{port}/mcp", {}, lambda *_: None, Limits()) as channel,
    ):
        if era == LEGACY:
            await shake_hands(channel)
        else:
            channel.protocol_version = MODERN

        yield channel, port


async def shake_hands(channel: HttpChannel) -> None:
    """Begin a legacy session."""
    who = {"name": "test", "version": "1"}
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": who}
    assert (await channel.request("initialize", hello))["protocolVersion"] == LEGACY
    channel.protocol_version = LEGACY
    await channel.notify("notifications/initialized", {})


async def call(channel: HttpChannel, tool: str, *, options: Options = PATIENT, **args: Any) -> Any:
    """Call a tool as the channel's era wants it."""
    params: dict[str, Any] = {"name": tool, "arguments": args}
    if channel.protocol_version == MODERN:
        params["_meta"] = ENVELOPE
        headers = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
        options = Options(options.timeout, options.on_progress, headers)

    return (await channel.request("tools/call", params, options))["structuredContent"]["result"]


@pytest.mark.parametrize("era", ERAS)
async def test_tool_is_called_and_reports_progress(era: str) -> None:
    progress: list[dict[str, Any]] = []
    async with talking(era) as (channel, _):
        assert await call(channel, "echo", text="ü") == "ü"
        options = Options(timeout=60, on_progress=progress.append)
        assert await call(channel, "count", options=options, to=3) == 3
        assert (channel.session_id is not None) is (era == LEGACY)

    assert [(p["progress"], p["total"], p["message"]) for p in progress] == [
        (n, 3, f"step {n}") for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_calls_in_a_row_share_a_connection(era: str) -> None:
    def to_server(port: int) -> set[int]:
        mine = psutil.Process().net_connections(kind="tcp")
        return {c.laddr.port for c in mine if c.raddr and c.raddr.port == port}

    async with talking(era) as (channel, port):
        await call(channel, "echo", text="first")
        if era == LEGACY:
            await eventually(lambda: len(to_server(port)) == 2)  # calls, and unasked messages

        before = to_server(port)
        for number in range(10):
            assert await call(channel, "echo", text=str(number)) == str(number)

        assert to_server(port) == before
        assert len(before) == (2 if era == LEGACY else 1)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("end", ["cancelled", "timed out"])
async def test_server_ends_a_call_nobody_waits_for(era: str, end: str) -> None:
    async with talking(era) as (channel, _):
        if end == "timed out":
            with pytest.raises(RequestTimeout):
                await call(channel, "wait", options=Options(timeout=2), name="me")
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: call(channel, "wait", name="me"))

                async def began() -> bool:
                    return "me began" in await call(channel, "heard")

                await eventually(began)
                tasks.cancel_scope.cancel()

        async def ended() -> bool:
            return await call(channel, "heard") == ["me began", "me ended"]

        await eventually(ended)


@pytest.mark.parametrize("era", ERAS)
async def test_error_of_the_server_arrives(era: str) -> None:
    async with talking(era) as (channel, _):
        headers = {"Mcp-Method": "no/such"} if era == MODERN else {}
        params = {"_meta": ENVELOPE} if era == MODERN else {}
        with pytest.raises(RpcError) as caught:
            await channel.request("no/such", params, Options(headers=headers, timeout=60))

    assert caught.value.code == -32601


async def test_session_of_another_life_is_gone_and_a_new_one_begins() -> None:
    async with talking(LEGACY) as (channel, _):
        channel.session_id = "0" * 32
        with pytest.raises(SessionGone) as caught:
            await call(channel, "echo", text="x")

        assert not caught.value.sent
        await shake_hands(channel)
        assert await call(channel, "echo", text="x") == "x"


async def test_server_forgets_the_session_when_the_channel_closes() -> None:
    async with talking(LEGACY) as (channel, port):
        session = channel.session_id
        await channel.aclose()
        async with open_http(
            f"http://127.0.0.1:{port}/mcp", {}, lambda *_: None, Limits()
        ) as other:
            other.session_id, other.protocol_version = session, LEGACY
            with pytest.raises(SessionGone):
                await call(other, "echo", text="x")
