"""Connections kept between requests: when they are used again, and when they must not be."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import pytest

from bridge.upstream.channel import ChannelBusy, ChannelError
from bridge.upstream.exchanges import Connection
from bridge.upstream.pool import Origin, Pool
from bridge.upstream.reach import Address, reach, reach_any
from bridge.upstream.wording import ConnectionLost
from tests.processes import unused_port
from tests.upstream.scripted_http import Peer, Request, scripted
from tests.waiting import eventually

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
WHERE = "http://x/"


@asynccontextmanager
async def pooled(port: int, most: int = 9, keep_seconds: float = 60) -> AsyncIterator[Pool]:
    """A pool of connections to this machine."""
    pool = Pool(Origin("127.0.0.1", port, None), most, 10.0, keep_seconds)
    try:
        yield pool
    finally:
        await pool.aclose()
        assert len(pool) == 0


async def get(pool: Pool) -> tuple[Connection, bytes]:
    """The connection that a request went over, and the whole body of its response."""
    connection = pool.take() or await pool.connect(WHERE)
    exchange = connection.send(GET, b"", WHERE)
    try:
        await exchange.head()
        body = b""
        while piece := await exchange.piece():
            body += piece

        return connection, body
    finally:
        exchange.close()


async def hello(request: Request, peer: Peer) -> None:
    """Answer in good order."""
    await peer.respond(200, b"hello")


async def test_connection_that_was_kept_last_is_used_first() -> None:
    async with scripted(hello) as server, pooled(server.port) as pool:
        first, second = await pool.connect(WHERE), await pool.connect(WHERE)
        for connection in (first, second):
            exchange = connection.send(GET, b"", WHERE)
            assert (await exchange.head()).status == 200
            assert await exchange.piece() == b"hello"

        assert [(await get(pool))[0] for _ in range(3)] == [second] * 3
        assert server.connections == 2


async def test_connection_that_is_idle_for_long_is_let_go() -> None:
    async with scripted(hello) as server, pooled(server.port, keep_seconds=0.1) as pool:
        await get(pool)
        await get(pool)
        await eventually(lambda: server.open_connections == 0)
        await get(pool)
        await eventually(lambda: server.open_connections == 0)
        assert server.connections == 2


@contextmanager
def served(serve: Callable[[socket.socket], None], times: int) -> Iterator[int]:
    """The port of a server in a thread of its own, which goes on while the event loop does not."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        for _ in range(times):
            with listener.accept()[0] as connection:
                serve(connection)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()


async def test_connection_that_ended_unnoticed_is_not_used() -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        assert connection.recv(1000) == GET
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        connection.close()
        ended.set()

    with served(serve, times=2) as port:
        async with pooled(port) as pool:
            first, _ = await get(pool)
            # The event loop stands still here, so it cannot have heard of the end.
            assert ended.wait(30)
            assert first.is_alive is False
            second, body = await get(pool)

    assert body == b"hello"
    assert second is not first


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\n", b"\r\n"])
async def test_connection_on_which_more_came_than_was_asked_for_is_not_used(more: bytes) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + more)

    async with scripted(handler) as server, pooled(server.port) as pool:
        first, _ = await get(pool)
        second, body = await get(pool)
        assert (first is second, body) == (False, b"hello")
        assert len(server.requests) == 2


async def test_request_on_a_kept_connection_that_breaks_is_not_sent_again() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if len(server.requests) == 1:
            await peer.respond(200, b"hello")
        else:
            await peer.reset()

    async with scripted(handler) as server, pooled(server.port) as pool:
        await get(pool)
        with pytest.raises(ConnectionLost, match="to http://x/ was lost") as caught:
            await get(pool)

        assert caught.value.sent
        assert (server.connections, len(server.requests)) == (1, 2)


async def test_connections_over_the_bound_are_refused_unsent() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.gone()

    async with scripted(handler) as server, pooled(server.port, most=2) as pool:
        exchanges = [(await pool.connect(WHERE)).send(GET, b"", WHERE) for _ in range(2)]
        with pytest.raises(ChannelBusy) as caught:
            await pool.connect(WHERE)

        assert not caught.value.sent
        exchanges[0].close()
        await eventually(lambda: len(pool) == 1)
        await pool.connect(WHERE)


async def test_closing_ends_what_is_under_way() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.gone()

    async with scripted(handler) as server, anyio.create_task_group() as tasks:
        failed: list[str] = []

        async def ask() -> None:
            with pytest.raises(ConnectionLost) as caught:
                await get(pool)

            failed.append(str(caught.value))

        async with pooled(server.port) as pool:
            tasks.start_soon(ask)
            await eventually(lambda: server.requests)

        await eventually(lambda: server.open_connections == 0)

    assert len(failed) == 1


async def test_connection_that_is_made_too_late_carries_nothing() -> None:
    async with scripted(hello) as server:
        async with pooled(server.port) as pool:
            await get(pool)

        with pytest.raises(ChannelError, match="the channel was closed") as caught:
            await pool.connect(WHERE)

        await eventually(lambda: server.open_connections == 0)
        assert not caught.value.sent
        assert len(server.requests) == 1


async def test_body_that_nobody_takes_is_not_read_on_and_on() -> None:
    piece, count, sent = b"x" * 1_000_000, 64, 0

    async def handler(request: Request, peer: Peer) -> None:
        nonlocal sent
        await peer.head(200, {"Content-Length": str(len(piece) * count)})
        for _ in range(count):
            await peer.write(piece)
            sent += 1

    async with scripted(handler) as server, pooled(server.port) as pool:
        exchange = (await pool.connect(WHERE)).send(GET, b"", WHERE)
        await exchange.head()
        before = -1

        async def stands_still() -> bool:
            nonlocal before
            before, now = sent, before
            await anyio.sleep(0.2)
            return sent == now

        await eventually(stands_still)
        assert sent < count / 2

        size = 0
        while body := await exchange.piece():
            size += len(body)

        assert size == len(piece) * count


def address(port: int) -> Address:
    """An address on this machine."""
    return socket.AF_INET, ("127.0.0.1", port)


async def test_address_that_refuses_or_is_silent_makes_room_for_the_next() -> None:
    refuses = address(unused_port())
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        silent = address(full.getsockname()[1])
        with socket.create_connection(silent[1]):
            async with scripted(hello) as server:
                for first in (refuses, silent):
                    with await reach_any([first, address(server.port)]) as found:
                        assert found.getpeername()[1] == server.port


async def test_host_that_refuses_everywhere_says_so() -> None:
    with pytest.raises(ConnectionRefusedError):
        await reach_any([address(unused_port()), address(unused_port())])

    with pytest.raises(OSError, match="cannot be the name of a host"):
        await reach("a" * 64, 80)


async def test_host_by_name_is_found() -> None:
    async with scripted(hello) as server:
        with await reach("localhost", server.port) as found:
            assert found.getpeername()[1] == server.port


async def test_giving_up_on_connecting_leaves_no_socket() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.create_connection(full.getsockname()),
    ):
        pool = Pool(Origin("127.0.0.1", full.getsockname()[1], None), 9, 0.1)
        with pytest.raises(ChannelError, match=r"no connection within 0\.1 s") as caught:
            await pool.connect(WHERE)

        with suppress(TimeoutError), anyio.fail_after(0.1):
            await reach_any([address(full.getsockname()[1])] * 2)

        await pool.aclose()

    assert not caught.value.sent
