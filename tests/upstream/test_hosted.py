"""A server's conversation that another process keeps: what comes through it is what came."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.wire import loads
from bridge.upstream import outlet, seat, stdio
from bridge.upstream.between import passed_on, result_number, taken_apart
from bridge.upstream.channel import Channel, ChannelError, Limits, Options, RpcError
from bridge.upstream.command import Command
from bridge.upstream.conversation import Hosting
from bridge.upstream.host import Host
from bridge.upstream.hosted import HostedChannel, open_hosted
from bridge.upstream.seat import seats
from bridge.upstream.stdio import StdioChannel, open_stdio
from bridge.upstream.target import Hosted
from tests.upstream.clients import Client
from tests.waiting import eventually

SCRIPT = """
import json, sys
greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "raw"}}
seen = []
for line in sys.stdin.buffer:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if number is None or method is None:
        seen.append(method)
        continue

    said = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}' % number
    if method == "initialize":
        said = json.dumps({"jsonrpc": "2.0", "id": number, "result": greeting}).encode()
    elif method == "seen":
        said = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"seen": seen}}).encode()
    elif method == "say":
        said = bytes.fromhex(message["params"]["line"]).replace(b"@", b"%d" % number)
    elif method == "large":
        result = {"text": "x" * message["params"]["size"]}
        said = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
    elif method == "never":
        continue
    elif method == "die":
        sys.exit(3)

    sys.stdout.buffer.write(said + b"\\n")
    sys.stdout.buffer.flush()
"""
COMMAND = Command((sys.executable, "-I", "-c", SCRIPT))
HASTE = Limits(close_grace=0.2)
PATIENT = Options(timeout=60)
SIZE = 300_000
HEARD = Options(timeout=60, on_progress=lambda params: None)
ASKING = str(Path(__file__).resolve().parent.parent / "servers" / "asking.py")
QUESTION = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}

LOOKS_LIKE_AN_END = rb'{"result":{"text":",\"jsonrpc\":\"2.0\",\"id\":1}"},"jsonrpc":"2.0","id":@}'
LINES: dict[str, bytes] = {
    "as the Python SDK writes it": b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "as json.dumps writes it": b'{"jsonrpc": "2.0", "id": @, "result": {"a": 1}}',
    "as the TypeScript SDK writes it": b'{"result":{"a":1},"jsonrpc":"2.0","id":@}',
    "with the number in the middle": b'{"result":{"a":1},"id":@,"jsonrpc":"2.0"}',
    "with spaces everywhere": b' { "result" : { } , "jsonrpc" : "2.0" , "id" : @ } ',
    "with tabs for spaces": b'{\t"jsonrpc":\t"2.0",\t"id":\t@,\t"result":\t{\t}\t}',
    "after a mark of byte order, before CR": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":@,"result":{}}\r',
    "with what looks like an end": LOOKS_LIKE_AN_END,
    "with what looks like a beginning": rb'{"result":{"id":7,"t":"\"result\":{"},"id":@}',
    "with large numbers": b'{"jsonrpc":"2.0","id":@,"result":{"n":123456789012345678901234567890}}',
    "with half a character": rb'{"jsonrpc":"2.0","id":@,"result":{"text":"\ud800"}}',
    "with half a character, read": rb'{"result":{"a":"\ud800"},"id":@,"jsonrpc":"2.0"}',
    "with half a character in an error": b'{"jsonrpc":"2.0","id":@,'
    rb'"error":{"code":1,"message":"\ud800"}}',
    "after half a character told": rb'{"jsonrpc":"2.0","method":"notifications/message",'
    rb'"params":{"level":"info","data":"\ud800"}}'
    b'\n{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "after a question that is named by half a character": rb'{"jsonrpc":"2.0","id":"\ud800",'
    b'"method":"ping"}\n{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "after a question for half a character": rb'{"jsonrpc":"2.0","id":"q","method":"\ud800"}'
    b'\n{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "not in UTF-8": b'{"jsonrpc":"2.0","id":@,"result":{"text":"caf\xe9"}}',
    "with more members": b'{"jsonrpc":"2.0","id":@,"result":{"a":1},"more":true}',
    "with no object": b'{"jsonrpc":"2.0","id":@,"result":[1]}',
    "with no object, at the end": b'{"result":null,"jsonrpc":"2.0","id":@}',
    "with both": b'{"jsonrpc":"2.0","id":@,"result":{},"error":{"code":1,"message":"both"}}',
    "with neither": b'{"jsonrpc":"2.0","id":@}',
    "with an error": b'{"jsonrpc":"2.0","id":@,"error":{"code":-32602,"message":"no","data":[1]}}',
    "not JSON": b'{"jsonrpc":"2.0","id":@,"result":{"a":}}',
    "not JSON, cut off": b'{"jsonrpc":"2.0","id":@,"result":{"a":"',
    "with no number": b'{"jsonrpc":"2.0","id":@,"result":{"a":NaN}}',
    "too deep": b'{"jsonrpc":"2.0","id":@,"result":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
    "deep": b'{"jsonrpc":"2.0","id":@,"result":{"a":' + b"[" * 150 + b"]" * 150 + b"}}",
    "as a question as well, at first": b'{"jsonrpc":"2.0","id":@,"result":{},"method":"ping"}\n'
    b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "as a question as well, at last": b'{"result":{},"method":"x","jsonrpc":"2.0","id":@}\n'
    b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "with what is named as a question": b'{"jsonrpc":"2.0","id":@,"result":{"method":"ping"}}',
    "after what has a list for a method": b'{"jsonrpc":"2.0","method":["a"]}\n'
    b'{"jsonrpc":"2.0","id":"q","method":["a"]}\n{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "after a question that is named by no number": b'{"jsonrpc":"2.0","id":[1e400],"method":"ping"}'
    b'\n{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "in a batch": b'[{"jsonrpc":"2.0","id":@,"result":{"a":1}}]',
    "twice": b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}\n{"jsonrpc":"2.0","id":@,"result":{}}',
    "as somebody else's first": b'{"jsonrpc":"2.0","id":9@,"result":{}}\n'
    b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
    "large": b'{"jsonrpc":"2.0","id":@,"result":{"text":"' + b"x" * 300_000 + b'"}}',
    "after a question of that number": b'{"jsonrpc":"2.0","id":@,"method":"ping"}\n'
    b'{"jsonrpc":"2.0","id":@,"result":{"a":1}}',
}


def nothing(method: str, params: dict[str, Any]) -> None:
    """Ignore a notification."""


@asynccontextmanager
async def kept(place: Path, limits: Limits = HASTE) -> AsyncIterator[tuple[Host, Hosted]]:
    """The host of the server's conversation, and where it is found."""
    at = str(place / "host.sock")
    host = Host({"raw": Hosting(COMMAND, 60.0, limits)})
    try:
        async with seats(at, host.seat):
            yield host, Hosted("raw", at, COMMAND)
    finally:
        await host.aclose()


@asynccontextmanager
async def hosted(place: Path, limits: Limits = HASTE) -> AsyncIterator[Channel]:
    """The server, whose conversation somebody else keeps."""
    async with (
        kept(place, limits) as (_, target),
        open_hosted(target, nothing, limits, None) as link,
    ):
        assert link is not None
        yield link.channel


def child(host: Host) -> StdioChannel:
    """The one server that the host speaks with."""
    [table] = host._tables.values()
    channel = table._live().channel
    assert isinstance(channel, StdioChannel)
    return channel


async def outcome(channel: Channel, line: bytes) -> object:
    """What a request comes to that the server answers with this line, whatever it is."""
    try:
        return await channel.request("say", {"line": line.hex()}, PATIENT)
    except RpcError as exc:
        return exc.error
    except ChannelError as exc:
        return str(exc)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_an_answer_is_what_it_is_without_the_host(tmp_path: Path, line: bytes) -> None:
    async with open_stdio(COMMAND, nothing, HASTE) as channel:
        expected = await outcome(channel, line)

    async with hosted(tmp_path) as channel:
        assert await outcome(channel, line) == expected
        assert await outcome(channel, LINES["as json.dumps writes it"]) == {"a": 1}


async def test_a_caller_who_leaves_calls_the_request_off_and_the_next_is_served(
    tmp_path: Path,
) -> None:
    async with hosted(tmp_path) as channel:
        with anyio.move_on_after(0.2):
            await channel.request("never", {}, PATIENT)

        async def is_told() -> bool:
            answer = await channel.request("seen", {}, PATIENT)
            return "notifications/cancelled" in answer["seen"]

        await eventually(is_told)


async def test_more_requests_than_the_bound_are_refused_and_harm_nothing(tmp_path: Path) -> None:
    few = Limits(close_grace=0.2, in_flight=3)
    async with (
        kept(tmp_path, few) as (host, target),
        open_hosted(target, nothing, Limits(), None) as link,
    ):
        assert link is not None
        async with anyio.create_task_group() as tasks:
            for _ in range(few.in_flight):
                tasks.start_soon(link.channel.request, "never", {}, PATIENT)

            await eventually(lambda: len(child(host)._correlator) == few.in_flight)
            assert "in flight" in str(await outcome(link.channel, b"{}"))
            tasks.cancel_scope.cancel()

        await eventually(lambda: not child(host)._correlator)
        assert await outcome(link.channel, LINES["as json.dumps writes it"]) == {"a": 1}


async def test_requests_and_results_are_not_read_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def noted(data: bytes) -> Any:
        read.append(data)
        return loads(data)

    async with hosted(tmp_path) as channel:
        monkeypatch.setattr(seat, "loads", noted)
        monkeypatch.setattr(stdio, "loads_leniently", noted)
        for line in ("as json.dumps writes it", "as the TypeScript SDK writes it"):
            assert await outcome(channel, LINES[line]) == {"a": 1}

        assert read == []
        assert isinstance(await outcome(channel, LINES["with an error"]), dict)
        assert len(read) == 1


async def test_arguments_may_be_longer_than_what_a_server_may_write(tmp_path: Path) -> None:
    short = Limits(close_grace=0.2, message_bytes=1000)
    async with hosted(tmp_path, short) as channel:
        for options in (PATIENT, HEARD):
            long = {"line": LINES["as json.dumps writes it"].hex(), "more": "x" * 300_000}
            assert await channel.request("say", long, options) == {"a": 1}


@pytest.mark.parametrize("options", [PATIENT, HEARD], ids=["passed on", "read"])
async def test_an_answer_counts_that_came_before_what_ended_the_server(
    tmp_path: Path, options: Options
) -> None:
    short = Limits(close_grace=0.2, message_bytes=1000)
    last = LINES["as json.dumps writes it"] + b"\n" + b"x" * 5000
    async with hosted(tmp_path, short) as channel:
        assert await channel.request("say", {"line": last.hex()}, options) == {"a": 1}
        await channel.wait_closed()
        assert "a line of more than 1000 bytes" in channel.closed_because


async def test_a_server_waits_for_a_process_that_is_slow_to_read(tmp_path: Path) -> None:
    short = Limits(close_grace=0.2, message_bytes=400_000)
    async with (
        kept(tmp_path, short) as (host, target),
        open_hosted(target, nothing, short, None) as link,
    ):
        assert link is not None
        got: list[object] = []

        async def ask() -> None:
            got.append(await link.channel.request("large", {"size": SIZE}, PATIENT))

        async with anyio.create_task_group() as tasks:
            reading(link.channel, False)
            for _ in range(60):
                tasks.start_soon(ask)

            [table] = host._tables.values()
            await eventually(lambda: table._behind)
            reading(link.channel, True)

        assert got == [{"text": "x" * SIZE}] * 60
        assert not table._behind


async def test_a_process_that_reads_nothing_holds_up_others_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "STUCK_SECONDS", 0.3)
    short = Limits(close_grace=0.2, message_bytes=400_000)
    async with (
        kept(tmp_path, short) as (host, target),
        open_hosted(target, nothing, short, None) as stuck,
        open_hosted(target, nothing, short, None) as other,
        anyio.create_task_group() as tasks,
    ):
        assert stuck is not None and other is not None
        reading(stuck.channel, False)
        for _ in range(30):
            tasks.start_soon(heard, stuck.channel)

        [table] = host._tables.values()
        await eventually(lambda: table._behind)
        assert await outcome(other.channel, LINES["as json.dumps writes it"]) == {"a": 1}
        assert len(table._seats) == 1
        reading(stuck.channel, True)  # hears that it is over


async def test_while_a_client_is_asked_the_time_of_all_its_calls_stands_still(
    tmp_path: Path,
) -> None:
    asked, answered = anyio.Event(), anyio.Event()

    async def thinks(method: str, params: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        await answered.wait()
        return {"action": "accept", "content": {}}

    command, at = Command((sys.executable, ASKING, "legacy")), str(tmp_path / "host.sock")
    host = Host({"asking": Hosting(command, 60.0, HASTE)})
    target = Hosted("asking", at, command)
    options = Options(timeout=60, caller=Client(answer=thinks))

    def call(*steps: list[Any]) -> dict[str, Any]:
        return {"name": "do", "arguments": {"do": list(steps)}}

    try:
        async with (
            seats(at, host.seat),
            open_hosted(target, nothing, HASTE, None) as elder,
            open_hosted(target, nothing, HASTE, None) as younger,
        ):
            assert elder is not None and younger is not None
            mine = [link.channel for link in (elder, younger)]
            async with anyio.create_task_group() as tasks:
                waits = call(["wait", "go"])
                tasks.start_soon(mine[0].request, "tools/call", waits, options)
                await eventually(lambda: child(host)._correlator)
                question = call(["ask", "elicitation/create", QUESTION])
                tasks.start_soon(mine[1].request, "tools/call", question, options)
                await asked.wait()
                await eventually(lambda: all(held(one) for one in mine))
                answered.set()
                await eventually(lambda: not any(held(one) for one in mine))
                await mine[0].notify("test/go", {"word": "go"})
    finally:
        await host.aclose()


async def heard(channel: Channel) -> None:
    """Ask for a large answer, and do without it."""
    with suppress(ChannelError):
        await channel.request("large", {"size": SIZE}, PATIENT)


def held(channel: Channel) -> bool:
    """Whether the time of a request stands still."""
    assert isinstance(channel, HostedChannel)
    return bool(channel.correlator._left)


def reading(channel: Channel, reads: bool) -> None:
    """Have a process read what the host writes, or leave it."""
    assert isinstance(channel, HostedChannel)
    transport: Any = channel._transport
    (transport.resume_reading if reads else transport.pause_reading)()


async def test_of_a_process_that_is_gone_nothing_is_kept(tmp_path: Path) -> None:
    async with kept(tmp_path) as (host, target):
        async with open_hosted(target, nothing, HASTE, None) as first:
            assert first is not None
            with anyio.move_on_after(60) as waiting:
                async with anyio.create_task_group() as tasks:
                    asked = Options(timeout=60, caller=Client())
                    tasks.start_soon(first.channel.request, "never", {}, asked)
                    await eventually(lambda: child(host).desk.callers)
                    assert isinstance(first.channel, HostedChannel)
                    assert first.channel._transport is not None
                    first.channel._transport.abort()
                    waiting.cancel()

        await eventually(lambda: not child(host)._correlator)
        assert (child(host)._correlator._unread, child(host).desk.callers) == (set(), {})
        async with open_hosted(target, nothing, HASTE, None) as second:
            assert second is not None
            answer = await second.channel.request("seen", {}, PATIENT)
            assert "notifications/cancelled" in answer["seen"]


async def test_a_server_that_ends_in_the_middle_may_have_acted(tmp_path: Path) -> None:
    async with hosted(tmp_path) as channel:
        with pytest.raises(ChannelError) as raised:
            await channel.request("die", {}, PATIENT)

        assert raised.value.sent
        assert not channel.is_open


async def test_what_a_host_never_writes_ends_the_conversation(tmp_path: Path) -> None:
    async with (
        kept(tmp_path) as (host, target),
        open_hosted(target, nothing, HASTE, None) as link,
    ):
        assert link is not None
        [table] = host._tables.values()
        table._seats[0]._put(b"no line of a host's\n")
        await link.channel.wait_closed()
        assert link.channel.closed_because == "the host wrote what is no message"


async def test_what_follows_the_protocol_no_more_ends_the_conversation(tmp_path: Path) -> None:
    async with hosted(tmp_path) as channel:
        assert isinstance(channel, HostedChannel)
        assert channel._transport is not None
        channel._transport.write(b"no line of ours\n")
        await channel.wait_closed()
        assert "does not understand" in channel.closed_because


def test_a_number_is_seen_only_where_it_is_the_answers_own() -> None:
    assert result_number(b'{"jsonrpc":"2.0","id":12,"result":{}}') == 12
    assert result_number(b'{"result":{},"jsonrpc":"2.0","id":12}') == 12
    assert result_number(LOOKS_LIKE_AN_END.replace(b"@", b"12")) == 12
    for line in (
        b'{"jsonrpc":"2.0","id":12,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":12,"error":{}}',
        b'{"jsonrpc":"2.0","id":"12","result":{}}',
        b'{"jsonrpc":"2.0","id":12.5,"result":{}}',
        b'{"jsonrpc":"2.0","id":1234567890123456,"result":{}}',
        b'{"method":"x","params":{"result":{}},"jsonrpc":"2.0","id":12}',
        b'[{"jsonrpc":"2.0","id":12,"result":{}}]',
        rb'{"result":{"a":",\"jsonrpc\":\"2.0\",\"id\":12}"}}',
    ):
        assert result_number(line) is None, line


def test_a_request_is_taken_apart_as_it_was_put_together() -> None:
    for caller in (None, Client(capabilities={}), Client(capabilities={"roots": {"a\tb": " "}})):
        line = passed_on(7, caller, "tools/call", {"a\tb": "c d\n"})
        number, told, request = taken_apart(line.rstrip(b"\n"))
        assert number == 7
        assert (told is None) == (caller is None)
        assert told is None or caller is None or told["capabilities"] == caller.capabilities
        assert request == rb'"method":"tools/call","params":{"a\tb":"c d\n"}}'
