"""Over HTTP the stream that a server asks on says whose question it is; elsewhere it may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from bridge.core.content import Result
from bridge.upstream.channel import Limits, Options, RequestTimeout
from bridge.upstream.http import HttpChannel, open_http
from bridge.upstream.sse import SseChannel, open_sse
from tests.upstream.clients import Client, Json
from tests.upstream.scripted_http import Peer, Request, Scripted, answer, notification, scripted
from tests.waiting import eventually

ELICIT, LOG = "elicitation/create", "notifications/message"
QUESTION: Json = {"message": "Really?", "requestedSchema": {"type": "object"}}
CALL = "tools/call"


def question(number: Any) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": ELICIT, "params": QUESTION}


class Asker:
    """A Streamable HTTP server whose calls ask on their own streams, and wait for the replies."""

    def __init__(self) -> None:
        self.calls: dict[str, Peer] = {}
        self.unasked: Peer | None = None
        self.replies: dict[Any, Json] = {}
        self.arrived = anyio.Event()

    async def __call__(self, request: Request, peer: Peer) -> None:
        message = request.message
        if request.verb == "GET":
            await peer.open_events()
            self.unasked = peer
            await peer.gone()
        elif message.get("method") == CALL:
            name = message["params"]["name"]
            self.calls[name] = peer
            await peer.open_events()
            if name in {"asks", "thinks", "never"}:
                await peer.event(notification(LOG, level="info", data=name))
                await peer.event(question(name))
                await eventually(lambda: name in self.replies)

            if name in {"waits", "never"}:
                await peer.gone()
            else:
                await peer.event(answer(request, done=name))
                await peer.end()
        else:
            if "method" not in message and "id" in message:
                self.replies[message["id"]] = message

            await peer.respond(202)


@asynccontextmanager
async def talking(
    default: Client | None = None,
) -> AsyncIterator[tuple[HttpChannel, Asker, Scripted]]:
    """A channel to such a server, in a session."""
    asker, limits = Asker(), Limits(close_grace=0.5)
    async with scripted(asker) as server:
        opened = open_http(server.url, {}, lambda *_: None, limits, default=default)
        async with opened as channel:
            channel.protocol_version, channel.session_id = "2025-11-25", "s1"
            yield channel, asker, server


async def call(
    channel: HttpChannel, name: str, caller: Client | None, seconds: float = 60
) -> Result:
    return await channel.request(CALL, {"name": name}, Options(seconds, caller=caller))


async def test_question_on_the_stream_of_a_call_is_its_clients_whoever_else_waits() -> None:
    one, other = Client("a", log_level="info"), Client("b", log_level="info")
    async with talking() as (channel, asker, _), anyio.create_task_group() as tasks:
        tasks.start_soon(call, channel, "waits", other)
        await eventually(lambda: "waits" in asker.calls)
        assert await call(channel, "asks", one) == {"done": "asks"}
        tasks.cancel_scope.cancel()

    assert (one.asked, other.asked) == ([(ELICIT, QUESTION)], [])
    assert (one.told, other.told) == ([(LOG, {"level": "info", "data": "asks"})], [])
    result = await one.answer(ELICIT, {})
    assert asker.replies == {"asks": {"jsonrpc": "2.0", "id": "asks", "result": result}}


async def test_question_on_the_stream_of_a_call_without_client_is_refused() -> None:
    other = Client("b")
    async with talking() as (channel, asker, _), anyio.create_task_group() as tasks:
        tasks.start_soon(call, channel, "waits", other)
        await eventually(lambda: "waits" in asker.calls)
        await call(channel, "asks", None)
        tasks.cancel_scope.cancel()

    assert (asker.replies["asks"]["error"]["code"], other.asked) == (-32601, [])


@pytest.mark.parametrize(
    ("keys", "who"), [("", "default"), ("a", "a"), ("aa", "last"), ("ab", "nobody")]
)
async def test_question_on_the_stream_of_nothing_is_whose_it_can_be(keys: str, who: str) -> None:
    default, clients = Client("default"), [Client(key) for key in keys]
    async with talking(default) as (channel, asker, server), anyio.create_task_group() as tasks:
        await channel.notify("notifications/initialized", {})
        for client in clients:
            tasks.start_soon(call, channel, "waits", client)
            await eventually(
                partial(lambda n: len(server.messages(CALL)) == n, clients.index(client) + 1)
            )

        unasked = await eventually(lambda: asker.unasked)
        await unasked.event(question(7))
        reply = await eventually(lambda: asker.replies.get(7))
        tasks.cancel_scope.cancel()

    asked = [client for client in (default, *clients) if client.asked]
    expected = {"default": [default], "a": clients, "last": clients[-1:], "nobody": []}
    assert asked == expected[who]
    assert ("error" in reply) == (who == "nobody")


async def test_time_of_a_call_stands_still_while_its_client_thinks() -> None:
    async def thinks(method: str, params: Json) -> Result:
        await anyio.sleep(1.0)
        return {}

    async with talking() as (channel, _, _):
        assert await call(channel, "thinks", Client(answer=thinks), 0.8) == {"done": "thinks"}
        with pytest.raises(RequestTimeout, match=r"within 0\.8 s"):
            await call(channel, "never", Client(), 0.8)


class OldAsker:
    """An HTTP+SSE server whose calls ask; it answers them when it has the replies."""

    def __init__(self) -> None:
        self.stream: Peer | None = None
        self.calls: list[Request] = []
        self.replies: list[Json] = []

    async def __call__(self, request: Request, peer: Peer) -> None:
        if request.verb == "GET":
            self.stream = peer
            await peer.open_events()
            await peer.chunk("event: endpoint\ndata: /messages\n\n")
            await peer.gone()
            return

        await peer.respond(202)
        assert self.stream is not None
        message = request.message
        if message.get("method") == CALL:
            self.calls.append(request)
            if message["params"]["name"] == "asks":
                await self.stream.event(notification(LOG, level="info", data="x"))
                await self.stream.event(question("q"))
        elif "method" not in message:
            self.replies.append(message)
            for waiting in self.calls:
                await self.stream.event(answer(waiting, done=True))


@asynccontextmanager
async def old() -> AsyncIterator[tuple[SseChannel, OldAsker]]:
    asker, limits = OldAsker(), Limits(close_grace=0.5)
    async with (
        scripted(asker) as server,
        open_sse(server.url, {}, lambda *_: None, limits) as channel,
    ):
        yield channel, asker


async def test_question_over_sse_is_the_clients_that_alone_waits() -> None:
    client = Client(log_level="debug")
    async with old() as (channel, asker):
        await channel.request(CALL, {"name": "asks"}, Options(60, caller=client))

    result = await client.answer(ELICIT, {})
    assert asker.replies == [{"jsonrpc": "2.0", "id": "q", "result": result}]
    assert client.told == [(LOG, {"level": "info", "data": "x"})]


async def test_question_over_sse_is_nobodys_where_several_clients_wait() -> None:
    one, other = Client("a"), Client("b", log_level="debug")
    async with old() as (channel, asker), anyio.create_task_group() as tasks:
        ask = partial(channel.request, CALL)
        tasks.start_soon(ask, {"name": "waits"}, Options(60, caller=one))
        await eventually(lambda: asker.calls)
        await ask({"name": "asks"}, Options(60, caller=other))

    assert [reply["error"]["code"] for reply in asker.replies] == [-32603]
    assert (one.asked, other.asked, other.told) == ([], [], [])
