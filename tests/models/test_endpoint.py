"""One address of a provider, where connections drop and answers are left unread."""

from __future__ import annotations

import anyio
import pytest

from bridge.errors import ModelError
from bridge.models.endpoint import Endpoint
from tests.upstream.scripted_http import Peer, Request, scripted
from tests.waiting import eventually


def endpoint(url: str, retries: int = 2) -> Endpoint:
    return Endpoint(url, "ask", {}, timeout=30.0, retries=retries)


@pytest.mark.parametrize("way", ["reset", "close"])
async def test_a_connection_that_drops_before_the_answer_is_tried_again(way: str) -> None:
    async def drop_two(request: Request, peer: Peer) -> None:
        if peer.connection <= 2:
            await (peer.reset() if way == "reset" else peer.close())
        else:
            await peer.respond_json({"ok": True})

    async with scripted(drop_two) as server:
        asked = endpoint(server.url)
        async with asked.post(b"{}") as response:
            assert await response.aread() == b'{"ok": true}'

        await asked.aclose()

    assert [request.target for request in server.requests] == ["/mcp/ask"] * 3


@pytest.mark.parametrize("way", ["reset", "close"])
async def test_a_connection_that_always_drops_is_given_up(way: str) -> None:
    async def drop(request: Request, peer: Peer) -> None:
        await (peer.reset() if way == "reset" else peer.close())

    async with scripted(drop) as server:
        asked = endpoint(server.url, retries=1)
        with pytest.raises(ModelError, match=f"the connection to {server.url}/ask was lost: "):
            async with asked.post(b"{}"):
                pass

        await asked.aclose()

    assert len(server.requests) == 2


async def test_an_answer_that_breaks_off_is_not_tried_again() -> None:
    async def break_off(request: Request, peer: Peer) -> None:
        await peer.head(200, {"Content-Length": "10"})
        await peer.write(b"12345")
        await peer.close()

    async with scripted(break_off) as server:
        asked = endpoint(server.url)
        with pytest.raises(ModelError, match=f"the connection to {server.url}/ask was lost: "):
            async with asked.post(b"{}") as response:
                await response.aread()

        await asked.aclose()

    assert len(server.requests) == 1


async def test_an_answer_that_nobody_reads_is_closed() -> None:
    async def begin(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.event({})
        await peer.gone()

    async with scripted(begin) as server:
        asked = endpoint(server.url)
        async with asked.post(b"{}") as response:
            assert (response.status_code, server.open_connections) == (200, 1)

        await eventually(lambda: server.open_connections == 0)
        await asked.aclose()


async def test_closing_an_endpoint_closes_its_idle_connections() -> None:
    async def answer(request: Request, peer: Peer) -> None:
        await peer.respond_json({})

    async with scripted(answer) as server:
        asked = endpoint(server.url)
        async with asked.post(b"{}") as response:
            await response.aread()

        assert server.open_connections == 1
        await asked.aclose()
        await eventually(lambda: server.open_connections == 0)


async def test_a_pause_can_be_cancelled() -> None:
    async def busy(request: Request, peer: Peer) -> None:
        await peer.respond(503, headers={"Retry-After": "60"})

    async with scripted(busy) as server:
        asked = endpoint(server.url)

        async def ask() -> None:
            async with asked.post(b"{}"):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await eventually(lambda: server.requests)
            tasks.cancel_scope.cancel()

        await asked.aclose()

    assert len(server.requests) == 1
