"""A server's conversation that another process keeps: what comes through it is what came."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.wire import loads
from bridge.upstream import seat, stdio
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
async def hosted(place: Path) -> AsyncIterator[Channel]:
    """The server, whose conversation somebody else keeps."""
    async with (
        kept(place) as (_, target),
        open_hosted(target, nothing, HASTE, None) as link,
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
