"""One connection, whoever calls: the same promises over every channel."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.errors import OutcomeUnknown, UpstreamError, UpstreamUnavailable
from bridge.upstream.channel import Limits, Options
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.target import Endpoint, Target
from bridge.upstream.toolset import MCPToolset
from tests import nursery
from tests.leftovers import held, no_more_than
from tests.processes import is_alive, started, unused_port
from tests.waiting import eventually

pytestmark = pytest.mark.embedding

PLAIN = str(Path(__file__).parent.parent / "servers" / "plain.py")
KINDS = ("stdio", "http", "sse")
HASTE = Limits(close_grace=0.2)
PATIENT = Options(timeout=60)


@asynccontextmanager
async def serving(kind: str, port: int | None = None) -> AsyncIterator[Target]:
    """A plain server, and where it is found."""
    if kind == "stdio":
        yield Command(tuple(nursery.server(PLAIN)))
        return

    comes_back = port is not None
    port = unused_port() if port is None else port
    words = [PLAIN, kind, str(port)]
    path = "/mcp" if kind == "http" else "/sse"
    argv = [sys.executable, *words] if comes_back else nursery.server(*words)
    async with started(argv, port=port):
        yield Endpoint(f"http://127.0.0.1:{port}{path}", "http" if kind == "http" else "sse")


@asynccontextmanager
async def connected(kind: str) -> AsyncIterator[Connection]:
    async with serving(kind) as target:
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        try:
            yield connection
        finally:
            await connection.aclose()


async def call(connection: Connection, tool: str, **args: Any) -> Any:
    answer = await connection.request("tools/call", {"name": tool, "arguments": args}, PATIENT)
    return answer["structuredContent"]["result"]


@pytest.mark.parametrize("kind", KINDS)
async def test_call_fails_at_once_when_its_connection_is_closed_under_it(kind: str) -> None:
    failed: list[Exception] = []

    async with connected(kind) as connection:

        async def wait() -> None:
            with pytest.raises(OutcomeUnknown) as raised:
                await call(connection, "wait")

            failed.append(raised.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(wait)

            await eventually(lambda: began(connection, 10))
            await connection.aclose()

    assert len(failed) == 10


async def began(connection: Connection, number: int) -> bool:
    heard = await call(connection, "heard")
    return sum(text.endswith("began") for text in heard) == number


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_call_is_cancelled_on_the_server_and_the_next_one_works(kind: str) -> None:
    async with connected(kind) as connection:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, connection, "wait")
            await eventually(lambda: began(connection, 1))
            tasks.cancel_scope.cancel()

        async def ended() -> bool:
            return "wait ended" in await call(connection, "heard")

        await eventually(ended)
        assert await call(connection, "echo", text="next") == "next"


@pytest.mark.parametrize("kind", KINDS)
async def test_server_that_does_not_answer_the_connection_is_given_up_in_time(
    kind: str, odd_server: Callable[..., list[str]]
) -> None:
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        if kind == "stdio":
            target: Target = Command(tuple(odd_server("mute")))
        else:
            made = await anyio.create_tcp_listener(local_host="127.0.0.1")
            listener = await stack.enter_async_context(made)
            tasks.start_soon(listener.serve, swallow)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            target = Endpoint(f"http://127.0.0.1:{port}/", "http" if kind == "http" else "sse")

        connection = Connection("mute", target, connect_timeout=0.5, limits=HASTE)
        with pytest.raises(UpstreamUnavailable, match="within"):
            await connection.link()

        assert connection.status().state == "failed"
        await connection.aclose()
        tasks.cancel_scope.cancel()


async def swallow(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        async for _ in stream:
            pass


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_is_whole_even_if_the_closer_is_cancelled(kind: str) -> None:
    async with serving(kind) as target:
        before = held()
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        await connection.link()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await connection.aclose()

        await no_more_than(before)


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_is_bounded_when_the_server_has_stopped(kind: str) -> None:
    async with serving(kind) as target:
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        pid = await call(connection, "pid")
        os.kill(pid, signal.SIGSTOP)
        try:
            with anyio.fail_after(60):
                await connection.aclose()
        finally:
            if is_alive(pid):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("kind", KINDS)
async def test_connection_made_for_a_caller_who_left_is_used_by_the_next_and_closed(
    kind: str,
) -> None:
    async with serving(kind) as target:
        before = held()
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.link)
            while connection.status().state == "idle":
                await anyio.lowlevel.checkpoint()

            tasks.cancel_scope.cancel()

        assert await call(connection, "echo", text="hello") == "hello"
        await connection.aclose()
        await no_more_than(before)


@pytest.mark.parametrize("kind", KINDS)
async def test_connection_of_the_callers_is_borrowed_never_closed(kind: str) -> None:
    async with connected(kind) as connection:
        link = await connection.link()
        async with MCPToolset(connection) as one, MCPToolset(connection) as other:
            assert len(await one.tools(None)) == len(await other.tools(None)) == 5

        assert await connection.link() is link
        assert link.is_open


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_connection_left_open_in_one_event_loop_works_in_the_next(kind: str) -> None:
    port = unused_port()
    server = subprocess.Popen([sys.executable, PLAIN, "http", str(port)])
    try:
        anyio.run(answers, port)
        http = Endpoint(f"http://127.0.0.1:{port}/mcp", "http")
        target: Target = http if kind == "http" else Command((sys.executable, PLAIN))
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        anyio.run(_use, connection)
        anyio.run(_closing, connection)
    finally:
        server.kill()
        server.wait()


async def answers(port: int) -> None:
    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await eventually(listening)


async def _use(connection: Connection) -> None:
    """Use it and leave it: ending the loop cancels its owner, which then closes it."""
    assert await call(connection, "echo", text="x") == "x"


async def _closing(connection: Connection) -> None:
    assert await call(connection, "echo", text="x") == "x"
    await connection.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_copy_of_a_live_connection_begins_anew(kind: str) -> None:
    async with connected(kind) as connection:
        await connection.link()
        copied = pickle.loads(pickle.dumps(connection))

        assert copied.status().state == "idle"
        assert await call(copied, "echo", text="copied") == "copied"
        assert await call(connection, "echo", text="kept") == "kept"
        await copied.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_from_another_task_than_the_opener_is_clean(kind: str) -> None:
    async with serving(kind) as target:
        before = held()
        connection = Connection("plain", target, connect_timeout=60, limits=HASTE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.link)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.aclose)
            tasks.start_soon(connection.aclose)

        await no_more_than(before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(600)
async def test_two_hundred_cycles_end_where_they_began(
    kind: str, odd_server: Callable[..., list[str]]
) -> None:
    async with serving(kind) as target:
        if kind == "stdio":  # the standard library alone starts ten times faster
            target = Command(tuple(odd_server("noise")))

        async def cycle() -> None:
            connection = Connection("plain", target, connect_timeout=60, limits=HASTE, era="modern")
            await connection.link()
            await connection.aclose()

        await cycle()
        before = held()
        limiter = anyio.CapacityLimiter(4)

        async def limited() -> None:
            async with limiter:
                await cycle()

        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(limited)

        await no_more_than(before)


async def test_connecting_is_done_once_for_all_who_wait() -> None:
    async with connected("stdio") as connection, anyio.create_task_group() as tasks:
        links: list[object] = []

        async def take() -> None:
            links.append(await connection.link())

        for _ in range(20):
            tasks.start_soon(take)

        await eventually(lambda: len(links) == 20)
        assert len({id(link) for link in links}) == 1


async def test_server_killed_mid_call_is_started_again_for_the_next() -> None:
    async with connected("stdio") as connection:
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(OutcomeUnknown, match="may have run"):
                    await call(connection, "wait")

            pid = await call(connection, "pid")
            tasks.start_soon(wait)
            await eventually(lambda: began(connection, 1))
            os.kill(pid, signal.SIGKILL)

        assert await call(connection, "echo", text="again") == "again"
        assert await call(connection, "pid") != pid


async def test_failed_connection_waits_before_the_next_attempt_and_says_so(
    odd_server: Callable[..., list[str]],
) -> None:
    connection = Connection("odd", Command(tuple(odd_server("exit"))), limits=HASTE)
    with pytest.raises(UpstreamUnavailable, match="ODD_TOKEN is not set"):
        await connection.link()

    status = connection.status()
    assert status.state == "failed"
    assert "exit code 3" in status.reason
    assert status.next_attempt is not None
    with pytest.raises(UpstreamUnavailable, match="next attempt in"):
        await connection.link()

    await connection.aclose()


async def test_server_that_writes_prose_instead_of_messages_is_quoted(
    odd_server: Callable[..., list[str]],
) -> None:
    command = Command(tuple(odd_server("prose")))
    connection = Connection("odd", command, connect_timeout=3, limits=HASTE)
    with pytest.raises(UpstreamUnavailable, match=r'it wrote "Usage: odd \[OPTIONS\] COMMAND"'):
        await connection.link()

    assert "which is no message" in connection.status().reason
    await connection.aclose()


async def test_pause_between_attempts_grows(odd_server: Callable[..., list[str]]) -> None:
    connection = Connection("odd", Command(tuple(odd_server("exit"))), limits=HASTE)
    longest: list[float] = []
    for _ in range(4):
        connection._places.here().not_before = 0.0
        with pytest.raises(UpstreamUnavailable):
            await connection.link()

        longest.append(connection.pause)

    assert longest[3] > longest[0]
    assert 1.5 < longest[3] <= 4.0
    await connection.aclose()


async def test_protocol_error_keeps_code_message_and_data() -> None:
    async with connected("stdio") as connection:
        with pytest.raises(UpstreamError) as raised:
            await connection.request("no/such", {}, PATIENT)

    assert raised.value.is_protocol_error
    assert raised.value.raw["code"] == -32601


@pytest.mark.parametrize(
    ("era", "found"), [("both", "modern"), ("legacy", "legacy"), ("modern", "modern")]
)
async def test_era_is_found_and_remembered(
    odd_server: Callable[..., list[str]], tmp_path: Path, era: str, found: str
) -> None:
    journal = tmp_path / "journal"
    argv = odd_server("dies", "--era", era, "--journal", str(journal))
    connection = Connection("odd", Command(tuple(argv)), limits=HASTE)
    for _ in range(2):
        assert (await connection.link()).era == found
        with pytest.raises(OutcomeUnknown):
            await call(connection, "odd")

    await connection.aclose()
    methods = [json.loads(line).get("method") for line in journal.read_text().splitlines()]
    probes = methods.count("server/discover")
    assert probes == (1 if found == "legacy" else 2)
    assert methods.count("initialize") == (2 if found == "legacy" else 0)


async def test_legacy_server_restarted_over_http_gets_one_new_session_and_the_call_runs() -> None:
    port = unused_port()
    connection = None
    try:
        async with serving("http", port) as target:
            connection = Connection("plain", target, connect_timeout=60, era="legacy")
            assert await call(connection, "echo", text="one") == "one"
            assert (await connection.link()).era == "legacy"

        async with serving("http", port):
            assert await call(connection, "echo", text="two") == "two"
            assert await call(connection, "heard") == ["two"]
    finally:
        if connection is not None:
            await connection.aclose()
