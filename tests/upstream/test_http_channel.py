"""The Streamable HTTP channel against a server that says exactly what a test wants it to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    Limits,
    Options,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.http import HttpChannel, open_http
from tests.upstream.scripted_http import (
    Handler,
    Peer,
    Request,
    Scripted,
    answer,
    notification,
    scripted,
)
from tests.waiting import eventually

LEGACY, MODERN = "2025-11-25", "2026-07-28"
Notes = list[tuple[str, dict[str, Any]]]


@asynccontextmanager
async def talking(
    handler: Handler, era: str | None = None, **options: Any
) -> AsyncIterator[tuple[HttpChannel, Scripted, Notes]]:
    """A channel to a scripted server, that server, and the notifications that come in."""
    notes: Notes = []
    async with scripted(handler) as server:
        async with open_http(
            server.url,
            options.get("headers", {}),
            lambda method, params: notes.append((method, params)),
            options.get("limits", Limits(close_grace=0.5)),
        ) as channel:
            channel.protocol_version = era
            yield channel, server, notes

        await eventually(lambda: server.open_connections == 0)


async def echo(request: Request, peer: Peer) -> None:
    """Answer every request with what was asked; take everything else."""
    if "id" in request.message and "method" in request.message:
        await peer.respond_json(answer(request, asked=request.message["params"]))
    else:
        await peer.respond(202)


async def events(request: Request, peer: Peer) -> None:
    """As `echo`, on an event stream."""
    if "id" not in request.message or "method" not in request.message:
        await peer.respond(202)
        return

    await peer.open_events()
    await peer.event(answer(request, asked=request.message["params"]))
    await peer.end()


async def silent(request: Request, peer: Peer) -> None:
    """Take what is no request; leave requests without any answer until the client goes."""
    if "id" in request.message:
        await peer.gone()
    else:
        await peer.respond(202)


async def test_json_answer_arrives_as_the_server_sent_it() -> None:
    result = {"content": [], "structuredContent": 0, "unknown": {"$defs": [2**70]}, "_meta": {}}

    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond_json(answer(request, **result))

    async with talking(handler) as (channel, _, _):
        assert await channel.request("tools/call", {"name": "x"}) == result


async def test_request_says_who_we_are_and_where_it_belongs() -> None:
    async with talking(echo, LEGACY, headers={"Authorization": "Bearer s3cret"}) as talk:
        channel, server, _ = talk
        channel.session_id = "session-1"
        await channel.request("tools/call", {"a": 1}, Options(headers={"Mcp-Name": "x"}))

    sent = server.requests[0]
    names = ("accept", "accept-encoding", "authorization", "content-type", "mcp-name")
    more = ("mcp-protocol-version", "mcp-session-id", "cookie")
    assert (sent.verb, sent.target) == ("POST", "/mcp")
    assert {name: sent.headers.get(name) for name in (*names, *more)} == {
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "authorization": "Bearer s3cret",
        "content-type": "application/json",
        "mcp-name": "x",
        "mcp-protocol-version": LEGACY,
        "mcp-session-id": "session-1",
        "cookie": None,
    }
    assert sent.message == {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"a": 1}}


async def test_session_begins_with_initialize_and_ends_with_the_channel() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.message.get("method") == "initialize":
            await peer.respond_json(answer(request), headers={"Mcp-Session-Id": "abc"})
        elif request.verb == "GET":
            await peer.respond(405)
        else:
            await echo(request, peer)

    async with talking(handler) as (channel, server, _):
        channel.session_id = "an older one"
        await channel.request("initialize", {})
        channel.protocol_version = LEGACY
        await channel.notify("notifications/initialized", {})
        await channel.request("ping", {})

    seen = [(r.verb, r.headers.get("mcp-session-id")) for r in server.requests if r.verb != "GET"]
    assert seen == [("POST", None), ("POST", "abc"), ("POST", "abc"), ("DELETE", "abc")]


async def test_session_id_that_no_header_can_carry_is_refused() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond_json(answer(request), headers={"Mcp-Session-Id": "a b"})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(ChannelError, match="session id is not visible ASCII"):
            await channel.request("initialize", {})


async def test_answer_on_a_stream_comes_with_progress_notifications_and_questions() -> None:
    progress: list[dict[str, Any]] = []

    async def handler(request: Request, peer: Peer) -> None:
        message = request.message
        if message.get("method") != "tools/call":
            await peer.respond(202)
            return

        token = message["params"]["_meta"]["progressToken"]
        await peer.open_events()
        await peer.event(notification("notifications/progress", progressToken=token, progress=1))
        await peer.event(notification("notifications/progress", progressToken=[], progress=2))
        await peer.event(notification("notifications/message", data="hello"))
        await peer.event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        await peer.event({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
        await peer.event({"jsonrpc": "2.0", "id": 4711, "result": {"stray": True}})
        await peer.event(notification("notifications/progress", progressToken=token, progress=3))
        await peer.event(answer(request, done=True))
        await peer.end()

    async with talking(handler, LEGACY) as (channel, server, notes):
        options = Options(on_progress=progress.append)
        result = await channel.request("tools/call", {"_meta": {"mine": 1}}, options)

    assert result == {"done": True}
    assert progress == [{"progressToken": 1, "progress": p} for p in (1, 3)]
    assert notes == [("notifications/message", {"data": "hello"})]
    assert server.requests[0].message["params"] == {"_meta": {"mine": 1, "progressToken": 1}}
    assert [r.message for r in server.requests[1:]] == [
        {"jsonrpc": "2.0", "id": "p", "result": {}},
        {
            "jsonrpc": "2.0",
            "id": 9,
            "error": {"code": -32601, "message": "bridge offers no client capabilities"},
        },
    ]


@pytest.mark.parametrize("handler", [echo, events])
async def test_calls_in_a_row_share_one_connection(handler: Handler) -> None:
    async with talking(handler) as (channel, server, _):
        for number in range(20):
            assert await channel.request("m", {"n": number}) == {"asked": {"n": number}}

        assert server.connections == 1


async def test_stream_that_stays_open_behind_its_answer_is_left() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.event(answer(request, n=request.message["id"]))
        await peer.gone()

    async with talking(handler) as (channel, server, _):
        assert [await channel.request("m", {}) for _ in range(3)] == [{"n": n} for n in (1, 2, 3)]
        await eventually(lambda: server.open_connections == 0)


async def test_stream_that_goes_on_and_on_behind_its_answer_is_left() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.event(answer(request))
        while True:
            await peer.event(notification("notifications/message", data="x" * 1000))

    async with talking(handler) as (channel, _, notes):
        assert await channel.request("m", {}) == {}

    assert len(notes) < 500


async def test_events_are_read_however_they_are_cut_and_spelled() -> None:
    text = json.dumps({"text": "ä€😀"}, ensure_ascii=False)
    ways = [
        "\ufeffdata: {}\n\n",
        "id: 7\n\n: ping\n\n: ping\n\ndata: {}\n\n",
        "event: other\ndata: not for us\n\n:\r\n\r\ndata:{}\r\n\r\n",
        "event: message\rid: 1\rretry: x\rdata: {}\r\r",
        "data: \n\nretry: 99999999999999999999\n\ndata: {}\n\n",
    ]

    async def handler(request: Request, peer: Peer) -> None:
        way = ways[request.message["params"]["way"]]
        message = json.dumps(answer(request, text=text), ensure_ascii=False)
        await peer.open_events({"X-Charset": "text/event-stream; charset=latin-1"})
        for byte in way.replace("{}", message).encode():
            await peer.chunk(bytes([byte]))

        await peer.end()

    async with talking(handler) as (channel, _, _):
        for way in range(len(ways)):
            assert await channel.request("m", {"way": way}) == {"text": text}


async def test_answer_in_a_batch_is_found() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond_json([notification("notifications/message"), answer(request, ok=1)])

    async with talking(handler) as (channel, _, notes):
        assert await channel.request("m", {}) == {"ok": 1}

    assert notes == [("notifications/message", {})]


async def test_error_of_the_server_is_kept_whatever_the_status() -> None:
    error = {"code": -32022, "message": "no", "data": {"supported": ["x"]}, "more": 1}

    async def handler(request: Request, peer: Peer) -> None:
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        await peer.respond_json(body, request.message["params"]["status"])

    async with talking(handler) as (channel, _, _):
        for status in (200, 400, 404, 500):
            with pytest.raises(RpcError) as caught:
                await channel.request("m", {"status": status})

            assert caught.value.error == error


async def test_notification_is_taken_or_refused() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.message["method"] == "good":
            await peer.respond(202)
        elif request.message["method"] == "bad":
            await peer.respond_json({"jsonrpc": "2.0", "id": None, "error": {"code": 1}}, 400)
        else:
            await peer.respond(500, "broken")

    async with talking(handler) as (channel, server, _):
        await channel.notify("good", {"a": 1})
        for method in ("bad", "ugly"):
            with pytest.raises(ChannelError):
                await channel.notify(method, {})

    assert server.messages("good") == [{"jsonrpc": "2.0", "method": "good", "params": {"a": 1}}]


async def test_cookies_are_not_kept() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond_json(answer(request), headers={"Set-Cookie": "who=you; Path=/"})

    async with talking(handler) as (channel, server, _):
        await channel.request("m", {})
        await channel.request("m", {})

    assert [r.headers.get("cookie") for r in server.requests] == [None, None]


@pytest.mark.parametrize("end", ["cancelled", "timed out"])
async def test_legacy_server_is_told_of_a_request_nobody_waits_for(end: str) -> None:
    async with talking(silent, LEGACY) as (channel, server, _):
        await give_up(channel, server, end)
        told = server.messages("notifications/cancelled")

    reason = "cancelled by the caller" if end == "cancelled" else "timed out"
    assert [m["params"] for m in told] == [{"requestId": 1, "reason": reason}]


@pytest.mark.parametrize("end", ["cancelled", "timed out"])
async def test_modern_server_sees_the_response_closed_and_nothing_else(end: str) -> None:
    async with talking(silent, MODERN) as (channel, server, _):
        await give_up(channel, server, end)
        await eventually(lambda: server.open_connections == 0)

    assert [r.message.get("method") for r in server.requests] == ["slow"]


async def test_initialize_is_never_cancelled_by_message() -> None:
    async with talking(silent, LEGACY) as (channel, server, _):
        with pytest.raises(RequestTimeout):
            await channel.request("initialize", {}, Options(timeout=1))

    assert [r.message.get("method") for r in server.requests] == ["initialize"]


async def give_up(channel: HttpChannel, server: Scripted, end: str) -> None:
    """Send a request that is never answered, and stop waiting for it in one of two ways."""
    if end == "timed out":
        with pytest.raises(RequestTimeout, match="slow got no answer within 1 s"):
            await channel.request("slow", {}, Options(timeout=1))

        return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.request, "slow", {})
        await eventually(lambda: server.messages("slow"))
        tasks.cancel_scope.cancel()


async def test_closing_from_another_task_fails_every_request_at_once() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if "id" in request.message and request.message["id"] % 2:
            await peer.open_events()

        await silent(request, peer)

    outcomes: list[tuple[str, bool]] = []
    async with talking(handler, LEGACY) as (channel, server, _):

        async def ask() -> None:
            try:
                await channel.request("slow", {})
            except ChannelError as exc:
                outcomes.append((str(exc), exc.sent))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)

            await eventually(lambda: len(server.messages("slow")) == 20)
            tasks.start_soon(channel.aclose, "enough")
            tasks.start_soon(channel.aclose, "too late to matter")
            await channel.wait_closed()

        assert outcomes == [("enough", True)] * 20
        assert (channel.is_open, channel.closed_because) == (False, "enough")
        assert server.messages("notifications/cancelled") == []
        with pytest.raises(ChannelError, match="enough") as caught:
            await channel.request("more", {})

        assert not caught.value.sent


async def test_death_of_the_owner_fails_the_requests_of_others() -> None:
    failed: list[ChannelError] = []
    async with scripted(silent) as server, anyio.create_task_group() as tasks:
        owner = anyio.CancelScope()

        async def own(*, task_status: anyio.abc.TaskStatus[HttpChannel]) -> None:
            with owner:
                async with open_http(server.url, {}, lambda *_: None, Limits()) as channel:
                    task_status.started(channel)
                    await anyio.sleep_forever()

        channel = await tasks.start(own)

        async def ask() -> None:
            with pytest.raises(ChannelError) as caught:
                await channel.request("slow", {})

            failed.append(caught.value)

        tasks.start_soon(ask)
        await eventually(lambda: server.messages("slow"))
        owner.cancel()
        await eventually(lambda: failed)

        assert failed[0].sent


async def test_error_in_the_owners_block_stays_itself() -> None:
    with pytest.raises(KeyError):
        async with open_http("http://127.0.0.1:1/", {}, lambda *_: None, Limits()):
            raise KeyError


async def test_too_many_requests_at_once_are_refused_unsent() -> None:
    async with (
        talking(silent, MODERN, limits=Limits(in_flight=2)) as (channel, server, _),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(channel.request, "slow", {})
        tasks.start_soon(channel.request, "slow", {})
        await eventually(lambda: len(server.messages("slow")) == 2)
        with pytest.raises(ChannelBusy):
            await channel.request("one more", {})

        tasks.cancel_scope.cancel()


async def test_stream_hands_out_each_message_and_returns_its_end() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.event(notification("notifications/subscriptions/acknowledged", x=1))
        await peer.event(notification("notifications/tools/list_changed"))
        if request.message["params"]["end"]:
            await peer.event(answer(request, bye=True))

        await peer.end()

    async with talking(handler, MODERN) as (channel, _, notes):
        got: list[dict[str, Any]] = []
        end = await channel.stream("subscriptions/listen", {"end": 1}, Options(), got.append)
        with pytest.raises(ChannelError, match="ended its response without the answer"):
            await channel.stream("subscriptions/listen", {"end": 0}, Options(), got.append)

    heard = [
        notification("notifications/subscriptions/acknowledged", x=1),
        notification("notifications/tools/list_changed"),
    ]
    assert (end, got, notes) == ({"bye": True}, [*heard, *heard], [])


async def begin_session(channel: HttpChannel) -> None:
    """What the handshake leaves behind."""
    channel.session_id = "abc"
    channel.protocol_version = LEGACY
    await channel.notify("notifications/initialized", {})


async def test_unasked_messages_are_heard_over_reconnections() -> None:
    gets: list[str | None] = []

    async def handler(request: Request, peer: Peer) -> None:
        if request.verb != "GET":
            await peer.respond(202)
            return

        gets.append(request.headers.get("last-event-id"))
        if len(gets) == 2:
            await peer.respond(503)
            return

        await peer.open_events()
        await peer.chunk("retry: 1\n\n")
        await peer.event(notification("notifications/tools/list_changed", n=len(gets)), "e1")
        if len(gets) == 1:
            await peer.end()
        else:
            await peer.gone()

    async with talking(handler) as (channel, server, notes):
        await begin_session(channel)
        await eventually(lambda: len(notes) == 2)

    assert gets == [None, "e1", "e1"]
    assert [params["n"] for _, params in notes] == [1, 3]
    assert [r.headers.get("accept") for r in server.requests if r.verb == "GET"] == [
        "text/event-stream"
    ] * 3


@pytest.mark.parametrize("status", [404, 405, 200])
async def test_server_without_unasked_messages_is_asked_once(status: int) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.verb == "GET":
            await peer.respond(status, "<html>")
        else:
            await echo(request, peer)

    async with talking(handler) as (channel, server, _):
        await begin_session(channel)
        await eventually(lambda: any(r.verb == "GET" for r in server.requests))
        await channel.run_get_stream()  # once more, by hand: returns by itself
        assert await channel.request("m", {}) == {"asked": {}}

    assert [r.verb for r in server.requests].count("GET") == 2


async def test_interrupted_legacy_answer_is_resumed_where_it_stopped() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.verb == "GET":
            await peer.open_events()
            await peer.event({"jsonrpc": "2.0", "id": 1, "result": {"after": True}}, "e2")
            await peer.end()
        elif request.message["method"] == "slow":
            await peer.open_events()
            await peer.chunk("id: e1\nretry: 1\ndata:\n\n")
            await peer.reset()
        else:
            await peer.respond(202)

    async with talking(handler, LEGACY) as (channel, server, _):
        assert await channel.request("slow", {}) == {"after": True}

    assert [(r.verb, r.headers.get("last-event-id")) for r in server.requests] == [
        ("POST", None),
        ("GET", "e1"),
    ]


@pytest.mark.parametrize("status", [404, 503])
async def test_interrupted_answer_that_cannot_be_resumed_may_have_run(status: int) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.verb == "GET":
            await peer.respond(status)
        elif "id" in request.message:
            await peer.open_events()
            await peer.chunk("id: e1\nretry: 1\ndata:\n\n")
            await peer.end()
        else:
            await peer.respond(202)

    async with talking(handler) as (channel, server, _):
        channel.session_id, channel.protocol_version = "abc", LEGACY
        with pytest.raises(ChannelError, match="cannot be resumed") as caught:
            await channel.request("slow", {})

    assert caught.value.sent
    assert [r.verb for r in server.requests].count("GET") == (1 if status == 404 else 3)


async def test_modern_answer_is_never_resumed() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.chunk("id: e1\nretry: 1\ndata:\n\n")
        await peer.end()

    async with talking(handler, MODERN) as (channel, server, _):
        with pytest.raises(ChannelError, match="without the answer"):
            await channel.request("slow", {})

    assert [r.verb for r in server.requests] == ["POST"]


async def test_redirect_is_named_and_not_followed() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        where = "https://user:word@other.example:8443/mcp/?token=s3cret"
        await peer.respond(307, headers={"Location": where})

    async with talking(handler) as (channel, server, _):
        with pytest.raises(HttpStatusError) as caught:
            await channel.request("m", {})

        await eventually(lambda: server.open_connections == 0)

    assert caught.value.status == 307
    assert str(caught.value) == (
        "HTTP status 307: a redirect to https://other.example:8443/mcp/, "
        "which bridge does not follow"
    )
    assert len(server.requests) == 1
