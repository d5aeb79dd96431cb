"""The HTTP+SSE channel: against a scripted server, and against a real one made with the SDK."""

from __future__ import annotations

import gc
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
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
from bridge.upstream.sse import SseChannel, open_sse
from tests import nursery
from tests.leftovers import held, no_more_than
from tests.processes import started, unused_port
from tests.upstream.scripted_http import (
    Json,
    Peer,
    Request,
    Scripted,
    answer,
    notification,
    scripted,
)
from tests.waiting import eventually

PLAIN = str(Path(__file__).parent.parent / "servers" / "plain.py")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
QUICK = Limits(message_bytes=10_000, close_grace=0.5)


class OldServer:
    """An HTTP+SSE server that does what the method of each request asks for."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Peer | None = None

    async def __call__(self, request: Request, peer: Peer) -> None:
        """Answer a GET with the stream, a POST on it."""
        if request.verb == "GET":
            self.stream = peer
            await peer.open_events()
            await peer.chunk(f": hello\n\nevent: endpoint\ndata: {self.endpoint}\n\n")
            await peer.gone()
            return

        act = getattr(self, str(request.message.get("method", "reply")).replace("/", "_"), None)
        if act is not None:
            await act(request, peer)
        else:
            await peer.respond(202, "Accepted")

    async def say(self, *values: Json) -> None:
        """Send messages on the stream."""
        assert self.stream is not None
        for value in values:
            await self.stream.event(value)

    async def echo(self, request: Request, peer: Peer) -> None:
        """Take the request, then answer it."""
        await peer.respond(202, "Accepted")
        await self.say(answer(request, asked=request.message["params"]))

    async def early(self, request: Request, peer: Peer) -> None:
        """Answer on the stream, and never to the POST."""
        await self.say(answer(request, early=True))
        await peer.gone()

    async def status(self, request: Request, peer: Peer) -> None:
        """Refuse the POST."""
        headers = (
            {"WWW-Authenticate": "Bearer"} if request.message["params"]["status"] == 401 else {}
        )
        await peer.respond(request.message["params"]["status"], "no\n", headers)

    async def held(self, request: Request, peer: Peer) -> None:
        """Leave the POST without a response."""
        await peer.gone()

    async def reset(self, request: Request, peer: Peer) -> None:
        """Crash while the POST is read."""
        await peer.reset()

    async def end(self, request: Request, peer: Peer) -> None:
        """End the stream in good order."""
        assert self.stream is not None
        await peer.respond(202)
        await self.stream.end()
        await self.stream.close()

    async def crash(self, request: Request, peer: Peer) -> None:
        """End the stream as a crash does."""
        assert self.stream is not None
        await peer.respond(202)
        await self.stream.reset()

    async def big(self, request: Request, peer: Peer) -> None:
        """Answer with more than may be."""
        assert self.stream is not None
        await peer.respond(202)
        with suppress(anyio.BrokenResourceError):
            await self.stream.event(answer(request, text="x" * 100_000))

    async def junk(self, request: Request, peer: Peer) -> None:
        """Send what is no message, a hundred times, then the answer."""
        assert self.stream is not None
        await peer.respond(202)
        await self.stream.chunk("id: 3\n\n: ping\n\n")
        for _ in range(100):
            await self.stream.chunk("data: {no\n\n")

        other = json.dumps(answer(request, ok=False))
        await self.stream.chunk(f"data: 7\n\nevent: other\ndata: {other}\n\n")
        await self.say(answer(request, ok=True))

    async def talk(self, request: Request, peer: Peer) -> None:
        """Report progress, tell news, ask for things, then answer."""
        await peer.respond(202)
        token = request.message["params"]["_meta"]["progressToken"]
        await self.say(
            notification("notifications/progress", progressToken=[], progress=9),
            notification("notifications/progress", progressToken=token, progress=1),
            notification("notifications/message", data="hello"),
            {"jsonrpc": "2.0", "id": "p", "method": "ping"},
            {"jsonrpc": "2.0", "id": 9, "method": "roots/list"},
            answer(request, done=True),
        )


@asynccontextmanager
async def talking(
    limits: Limits = QUICK,
) -> AsyncIterator[tuple[SseChannel, Scripted, list[tuple[str, Json]]]]:
    """A channel to an old server, that server, and the notifications that come in."""
    notes: list[tuple[str, Json]] = []
    async with scripted(OldServer()) as server:
        url, headers = server.url + "?key=s3cret", {"X-Key": "s3cret"}
        async with open_sse(url, headers, lambda m, p: notes.append((m, p)), limits) as channel:
            yield channel, server, notes

        await eventually(lambda: server.open_connections == 0)


async def test_requests_are_posted_to_the_endpoint_and_answered_on_the_stream() -> None:
    async with talking() as (channel, server, _):
        for number in range(5):
            assert await channel.request("echo", {"n": number}) == {"asked": {"n": number}}

        assert server.connections == 2

    first, second = server.requests[:2]
    names = ("accept", "accept-encoding", "content-type", "x-key")
    assert (first.verb, first.target) == ("GET", "/mcp?key=s3cret")
    assert [first.headers.get(name) for name in names] == [
        "text/event-stream",
        "identity",
        None,
        "s3cret",
    ]
    assert (second.verb, second.target) == ("POST", "/messages?session=1")
    assert [second.headers.get(name) for name in names[1:]] == [
        "identity",
        "application/json",
        "s3cret",
    ]


async def test_progress_notifications_and_questions_come_before_the_answer() -> None:
    progress: list[Json] = []
    async with talking() as (channel, server, notes):
        result = await channel.request("talk", {}, Options(on_progress=progress.append))
        await channel.notify("notifications/initialized", {})
        await eventually(lambda: len(server.requests) == 5)

    assert (result, notes) == ({"done": True}, [("notifications/message", {"data": "hello"})])
    assert progress == [{"progressToken": 1, "progress": 1}]
    sent = [r.message for r in server.requests[2:]]
    assert {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}} in sent
    assert [m for m in sent if "id" in m] == [
        {"jsonrpc": "2.0", "id": "p", "result": {}},
        {
            "jsonrpc": "2.0",
            "id": 9,
            "error": {"code": -32601, "message": "bridge offers no client capabilities"},
        },
    ]


async def test_answer_counts_even_if_the_post_gets_no_response() -> None:
    async with talking() as (channel, _, _):
        assert await channel.request("early", {}) == {"early": True}
        assert await channel.request("echo", {}) == {"asked": {}}


async def test_what_is_no_message_is_skipped_and_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "bridge"):
        async with talking() as (channel, _, _):
            assert await channel.request("junk", {}) == {"ok": True}

    said = [record.getMessage() for record in caplog.records if "not JSON:" in record.getMessage()]
    assert len(said) == 7
    assert said[0].endswith("/messages sent an event that is not JSON: {no")


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_refused_post_fails_its_request_alone(status: int) -> None:
    async with talking() as (channel, _, _):
        with pytest.raises(HttpStatusError, match=f"HTTP status {status}: no") as caught:
            await channel.request("status", {"status": status})

        with pytest.raises(HttpStatusError):
            await channel.notify("status", {"status": status})

        assert await channel.request("echo", {}) == {"asked": {}}

    assert caught.value.www_authenticate == ("Bearer" if status == 401 else "")


async def test_lost_post_may_have_run() -> None:
    async with talking() as (channel, server, _):
        where = f"connection to http://127.0.0.1:{server.port}/messages was lost"
        with pytest.raises(ChannelError, match=where) as caught:
            await channel.request("reset", {})

        assert caught.value.sent
        assert await channel.request("echo", {}) == {"asked": {}}


@pytest.mark.parametrize("method", ["held", "never"])
async def test_deadline_holds_whether_the_post_or_the_answer_is_missing(method: str) -> None:
    async with talking() as (channel, server, _):
        with pytest.raises(RequestTimeout, match=f"{method} got no answer"):
            await channel.request(method, {}, Options(timeout=0.2))

        await eventually(lambda: server.messages("notifications/cancelled"))
        told = server.messages("notifications/cancelled")

    assert [m["params"] for m in told] == [{"requestId": 1, "reason": "timed out"}]


@pytest.mark.parametrize("method", ["held", "never"])
async def test_server_is_told_of_a_cancelled_request(method: str) -> None:
    async with talking() as (channel, server, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.request, method, {})
            await eventually(lambda: server.messages(method))
            tasks.cancel_scope.cancel()

        await eventually(lambda: server.messages("notifications/cancelled"))
        told = server.messages("notifications/cancelled")
        assert await channel.request("echo", {}) == {"asked": {}}

    assert [m["params"] for m in told] == [{"requestId": 1, "reason": "cancelled by the caller"}]


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("end", "the server ended its event stream"),
        ("crash", "was lost: Connection reset by peer"),
        ("big", "event exceeds 10000 bytes"),
    ],
)
async def test_end_of_the_stream_fails_everything_at_once(method: str, says: str) -> None:
    failed: list[ChannelError] = []
    async with talking() as (channel, server, _):

        async def ask(name: str) -> None:
            with pytest.raises(ChannelError) as caught:
                await channel.request(name, {})

            failed.append(caught.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask, "never")
                tasks.start_soon(ask, "held")

            await eventually(lambda: len(server.messages("held")) == 5)
            await eventually(lambda: len(server.messages("never")) == 5)
            tasks.start_soon(ask, method)
            await channel.wait_closed()

        assert not channel.is_open
        assert says in channel.closed_because
        with pytest.raises(ChannelError, match=re.escape(says)) as caught:
            await channel.request("echo", {})

        assert not caught.value.sent

    assert [(says in str(exc), exc.sent) for exc in failed] == [(True, True)] * 11


async def test_closing_from_another_task_fails_every_request_at_once() -> None:
    failed: list[tuple[str, bool]] = []
    async with talking() as (channel, server, _):

        async def ask(method: str) -> None:
            try:
                await channel.request(method, {})
            except ChannelError as exc:
                failed.append((str(exc), exc.sent))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask, "never")
                tasks.start_soon(ask, "held")

            await eventually(lambda: len(server.messages("held")) == 10)
            tasks.start_soon(channel.aclose, "enough")
            tasks.start_soon(channel.aclose)

        assert failed == [("enough", True)] * 20


async def test_request_that_is_cancelled_while_the_channel_closes_leaves_no_complaint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with talking() as (channel, server, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.request, "held", {})
            await eventually(lambda: server.messages("held"))
            tasks.start_soon(channel.aclose)
            tasks.cancel_scope.cancel()

        gc.collect()

    assert [r.getMessage() for r in caplog.records if r.name == "asyncio"] == []


async def test_too_many_requests_at_once_are_refused_unsent() -> None:
    async with (
        talking(Limits(in_flight=1)) as (channel, server, _),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(channel.request, "never", {})
        await eventually(lambda: server.messages("never"))
        with pytest.raises(ChannelBusy):
            await channel.request("echo", {})

        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("http://other.example/messages?key=s3cret", "origin, http://other.example/messages;"),
        ("//other.example/messages", "origin, http://other.example/messages;"),
        ("https://127.0.0.1:PORT/messages", "origin, https://127.0.0.1:PORT/messages;"),
        ("http://127.0.0.1:1/messages", "origin, http://127.0.0.1:1/messages;"),
        ("http://127.0.0.1:PORT@other.example/", "origin, http://other.example/;"),
        ("http://127.0.0.1:no/", "endpoint is no URL: http://127.0.0.1:no/"),
    ],
)
async def test_endpoint_of_another_origin_is_refused(endpoint: str, says: str) -> None:
    old = OldServer()
    async with scripted(old) as server:
        old.endpoint = endpoint.replace("PORT", str(server.port))
        with pytest.raises(ChannelError) as caught:
            async with open_sse(server.url, {}, lambda *_: None, QUICK):
                pass

        assert says.replace("PORT", str(server.port)) in str(caught.value)
        assert "s3cret" not in str(caught.value)
        await eventually(lambda: server.open_connections == 0)


async def test_endpoint_may_be_a_whole_url_of_the_same_origin() -> None:
    old = OldServer()
    async with scripted(old) as server:
        old.endpoint = f"HTTP://127.0.0.1:{server.port}/elsewhere"
        url = server.url.replace("://", "://me:word@")
        async with open_sse(url, {}, lambda *_: None, QUICK) as channel:
            assert await channel.request("echo", {}) == {"asked": {}}

    assert server.requests[1].target == "/elsewhere"
    assert (
        server.requests[1].headers["authorization"] == server.requests[0].headers["authorization"]
    )


async def refuse(request: Request, peer: Peer) -> None:
    """Be no HTTP+SSE server, in the way the path asks for."""
    if request.target == "/405":
        await peer.respond(405, "Method Not Allowed")
    elif request.target == "/301":
        await peer.respond(301, headers={"Location": "/new?key=s3cret"})
    elif request.target == "/html":
        await peer.respond(200, "<html>", {"Content-Type": "text/html"})
    elif request.target == "/ends":
        await peer.open_events()
        await peer.end()
    elif request.target == "/silent":
        await peer.open_events()
        await peer.gone()
    else:
        await peer.gone()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/405", "HTTP status 405: Method Not Allowed"),
        ("/301", "HTTP status 301: a redirect to ORIGIN/new, which bridge does not follow"),
        ("/html", "HTTP status 200: no MCP answer but content type 'text/html', <html>"),
        ("/ends", "ORIGIN/ends ended its event stream without an endpoint"),
        ("/silent", "ORIGIN/silent named no endpoint within 0.3 s"),
        ("/dead", "ORIGIN/dead named no endpoint within 0.3 s"),
    ],
)
async def test_what_is_no_sse_server_is_named(path: str, says: str) -> None:
    async with scripted(refuse) as server:
        origin = server.url.removesuffix("/mcp")
        seconds = 0.3 if "within" in says else 30
        with pytest.raises(ChannelError) as caught:
            async with open_sse(origin + path, {}, lambda *_: None, QUICK, connect_timeout=seconds):
                pass

        await eventually(lambda: server.open_connections == 0)

    assert str(caught.value) == says.replace("ORIGIN", origin)


async def test_error_in_the_owners_block_stays_itself() -> None:
    async with scripted(OldServer()) as server:
        with pytest.raises(KeyError):
            async with open_sse(server.url, {}, lambda *_: None, QUICK):
                raise KeyError


async def test_nothing_is_left_however_requests_end() -> None:
    async with scripted(OldServer()) as server:

        async def cycle(last: str) -> None:
            async with open_sse(server.url, {}, lambda *_: None, QUICK) as channel:
                for method in ("echo", "early", "reset", "held", "never", "echo", last):
                    with suppress(ChannelError):
                        await channel.request(method, {}, Options(timeout=0.05))

                async with anyio.create_task_group() as tasks:
                    for method in ("held", "never"):
                        tasks.start_soon(swallow, channel, method)

                    await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()

            await eventually(lambda: server.open_connections == 0)

        await cycle("echo")
        before = held()
        for last in ("end", "crash", "big", "echo") * 2:
            await cycle(last)

        await no_more_than(before)


async def swallow(channel: SseChannel, method: str) -> None:
    """Send a request whose failure is nobody's business."""
    with suppress(ChannelError):
        await channel.request(method, {})


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_real_server_is_called_and_cancelled(era: str) -> None:
    who = {"name": "test", "version": "1"}
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": who,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    progress: list[Json] = []
    port = unused_port()
    async with (
        started(nursery.server(PLAIN, "sse", str(port)), port=port),
        open_sse(f"http://127.0.0.1:{port}/sse", {}, lambda *_: None, Limits()) as channel,
    ):
        if era == LEGACY:
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": who}
            assert (await channel.request("initialize", hello))["protocolVersion"] == LEGACY
            await channel.notify("notifications/initialized", {})

        async def call(tool: str, seconds: float = 60, **args: Any) -> Any:
            params: Json = {"name": tool, "arguments": args}
            if era == MODERN:
                params["_meta"] = envelope

            options = Options(seconds, progress.append)
            result = await channel.request("tools/call", params, options)
            return result["structuredContent"]["result"]

        assert await call("count", to=3) == 3
        with pytest.raises(RequestTimeout):
            await call("wait", 2, name="me")

        async def ended() -> bool:
            return await call("heard") == ["me began", "me ended"]

        await eventually(ended)
        with pytest.raises(RpcError) as caught:
            meta = {"_meta": envelope} if era == MODERN else {}
            await channel.request("no/such", meta, Options(timeout=60))

    assert [p["progress"] for p in progress] == [1, 2, 3]
    assert caught.value.code == -32601
