"""What the Streamable HTTP channel says when the network or the server misbehaves."""

from __future__ import annotations

import gzip
import json
import logging
import tracemalloc
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.upstream.channel import (
    ChannelError,
    HttpStatusError,
    Limits,
    Options,
    RequestTimeout,
    RpcError,
    SessionGone,
)
from bridge.upstream.http import open_http
from tests.leftovers import held, no_more_than
from tests.processes import unused_port
from tests.upstream.scripted_http import Peer, Request, answer, notification, scripted
from tests.upstream.test_http_channel import LEGACY, MODERN, begin_session, echo, silent, talking
from tests.waiting import eventually

SMALL = Limits(message_bytes=10_000, close_grace=0.5)


def nothing(*_: Any) -> None:
    """Take a notification that no test looks at."""


@pytest.mark.parametrize("lies", [False, True], ids=["as it comes", "by its length"])
async def test_answer_over_the_bound_is_given_up(lies: bool) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        body = json.dumps(answer(request, text="x" * 10_000))
        if lies:
            await peer.respond(200, body, {"Content-Type": "application/json"})
            return

        chunked = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        await peer.head(200, chunked)
        await peer.chunk(body[:10_000])
        await peer.chunk(body[10_000:])
        await peer.gone()

    async with talking(handler, limits=SMALL) as (channel, _, _):
        with pytest.raises(ChannelError, match="answer exceeds 10000 bytes") as caught:
            await channel.request("m", {})

    assert caught.value.sent


async def test_endless_answer_costs_no_memory() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.chunk("data: ")
        while True:
            await peer.chunk(b"x" * 1_000_000)

    async with talking(handler, limits=Limits(message_bytes=4_000_000)) as (channel, _, _):
        tracemalloc.start()
        with pytest.raises(ChannelError, match="event exceeds 4000000 bytes") as caught:
            await channel.request("m", {})

        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert caught.value.sent
    assert peak < 40_000_000


async def test_event_over_the_bound_is_given_up_and_many_under_it_are_not() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        for size in (9_000, 9_000, 9_000, request.message["params"]["size"]):
            await peer.event(notification("notifications/message", data="x" * size))

        await peer.event(answer(request))
        await peer.end()

    async with talking(handler, limits=SMALL) as (channel, _, notes):
        assert await channel.request("m", {"size": 1}) == {}
        assert len(notes) == 4
        with pytest.raises(ChannelError, match="event exceeds 10000 bytes"):
            await channel.request("m", {"size": 11_000})

        assert len(notes) == 7


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_compressed_answer_is_refused_unread(kind: str) -> None:
    bomb = gzip.compress(b" " * 50_000_000)

    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(200, bomb, {"Content-Type": kind, "Content-Encoding": "gzip"})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(ChannelError, match="compressed its answer \\('gzip'\\)") as caught:
            await channel.request("m", {})

    assert caught.value.sent


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_answer_that_drips_meets_the_deadline(kind: str) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if "id" not in request.message:
            await peer.respond(202)
            return

        await peer.head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
        while True:
            await peer.chunk(" " if kind == "application/json" else ": ping\n\n")
            await anyio.sleep(0.02)

    async with talking(handler, MODERN) as (channel, server, _):
        with pytest.raises(RequestTimeout, match=r"m got no answer within 0\.5 s"):
            await channel.request("m", {}, Options(timeout=0.5))

        await eventually(lambda: server.open_connections == 0)


@pytest.mark.parametrize("when", ["before", "in the head", "in JSON", "in an event", "cut short"])
async def test_connection_lost_after_sending_may_have_run(when: str) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if when == "in the head":
            await peer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
        elif when == "in JSON":
            await peer.head(200, {"Content-Type": "application/json", "Content-Length": "99"})
            await peer.write(b'{"jsonrpc"')
        elif when != "before":
            await peer.open_events()
            await peer.chunk('data: {"jsonrpc"')

        if when == "cut short":
            await peer.close()
        else:
            await peer.reset()

    async with talking(handler) as (channel, server, _):
        where = f"connection to http://127.0.0.1:{server.port}/mcp was lost: "
        with pytest.raises(ChannelError, match=where) as caught:
            await channel.request("m", {})

        assert caught.value.sent
        assert channel.is_open


async def test_answer_counts_even_if_the_connection_is_lost_behind_it() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.open_events()
        await peer.event(answer(request, ok=True))
        await peer.chunk("data: no JSON\n\n" if request.message["params"]["junk"] else "data: ")
        await peer.reset()

    async with talking(handler) as (channel, _, _):
        assert await channel.request("m", {"junk": False}) == {"ok": True}
        assert await channel.request("m", {"junk": True}) == {"ok": True}


async def test_refused_connection_provably_ran_nothing() -> None:
    url = f"http://127.0.0.1:{unused_port()}/mcp?key=s3cret"
    async with open_http(url, {}, nothing, Limits()) as channel:
        with pytest.raises(ChannelError, match="Connection refused") as caught:
            await channel.request("m", {})

    assert not caught.value.sent
    assert "s3cret" not in str(caught.value)


async def test_host_without_an_address_provably_ran_nothing() -> None:
    async with open_http("http://nobody.invalid/", {}, nothing, Limits()) as channel:
        with pytest.raises(ChannelError, match="cannot connect to http://nobody") as caught:
            await channel.request("m", {})

    assert not caught.value.sent


async def test_server_that_accepts_no_tls_provably_ran_nothing() -> None:
    async with scripted(echo) as server:
        url = server.url.replace("http://", "https://")
        async with open_http(url, {}, nothing, Limits(), connect_timeout=0.3) as channel:
            with pytest.raises(ChannelError, match="cannot connect to https://") as caught:
                await channel.request("m", {})

    assert not caught.value.sent


async def test_closing_while_connecting_provably_ran_nothing() -> None:
    failed: list[ChannelError] = []
    # A listener whose queue is full takes no further connection, and says nothing.
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=0) as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        full = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(1)]
        async with (
            open_http(f"http://127.0.0.1:{port}/", {}, nothing, Limits()) as channel,
            anyio.create_task_group() as tasks,
        ):

            async def ask() -> None:
                with pytest.raises(ChannelError) as caught:
                    await channel.request("m", {})

                failed.append(caught.value)

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await channel.aclose("enough")

        for stream in full:
            await stream.aclose()

    assert [(str(exc), exc.sent) for exc in failed] == [("enough", False)]


GONE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session terminated"}}
ELSE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such method"}}


@pytest.mark.parametrize(
    ("session", "status", "body", "kind"),
    [
        ("abc", 404, "Not Found", SessionGone),
        ("abc", 404, json.dumps(GONE), SessionGone),
        ("abc", 400, json.dumps(GONE), SessionGone),
        ("abc", 400, json.dumps(GONE).replace("32600", "32001"), SessionGone),
        ("abc", 404, json.dumps(ELSE), RpcError),
        ("abc", 400, json.dumps(ELSE), RpcError),
        ("abc", 400, "Bad Request", HttpStatusError),
        (None, 404, "Not Found", HttpStatusError),
        (None, 404, json.dumps(GONE), RpcError),
        (None, 400, json.dumps(GONE), RpcError),
        (None, 400, '{"error": {"code": 400, "message": "no JSON-RPC"}}', HttpStatusError),
    ],
)
async def test_unknown_session_is_told_by_status_and_code(
    session: str | None, status: int, body: str, kind: type[Exception]
) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(status, body, {"Content-Type": "application/json"})

    async with talking(handler, LEGACY) as (channel, _, _):
        channel.session_id = session
        with pytest.raises((RpcError, ChannelError)) as caught:
            await channel.request("tools/call", {})

    assert type(caught.value) is kind
    assert getattr(caught.value, "sent", True) is (kind is not SessionGone)


@pytest.mark.parametrize("body", ["go away", json.dumps(ELSE)])
async def test_who_must_authenticate_is_told_so(body: str) -> None:
    challenge = 'Bearer resource_metadata="https://a.example/.well-known/x"'

    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(401, body, {"WWW-Authenticate": challenge})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(HttpStatusError) as caught:
            await channel.request("m", {})

    assert (caught.value.status, caught.value.www_authenticate) == (401, challenge)
    assert challenge not in str(caught.value)


async def test_page_instead_of_an_answer_is_shown_as_far_as_it_is_safe() -> None:
    page = "<html>\n\x1b[31mred\u202eder" + "ü" * 1000

    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(request.message["params"]["status"], page, {"Content-Type": "text/html"})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(HttpStatusError) as caught:
            await channel.request("m", {"status": 502})

        begins = "<html>\\n\\x1b[31mred\\u202eder"
        assert str(caught.value) == f"HTTP status 502: {begins}{'ü' * (200 - len(begins))}"

        with pytest.raises(ChannelError, match="HTTP status 200") as caught:
            await channel.request("m", {"status": 200})

        assert f"content type 'text/html', {begins}" in str(caught.value)
        assert caught.value.sent


@pytest.mark.parametrize(
    ("status", "kind", "body", "says"),
    [
        (202, "application/json", "", "took the request without answering"),
        (200, "application/json", "", "sent no MCP message"),
        (200, "application/json", "{'a': 1}", "sent no MCP message: {'a': 1}"),
        (200, "application/json", "[" * 100_000, "sent no MCP message"),
        (200, "application/json", '"text"', "sent no MCP message"),
        (
            200,
            "application/json",
            '{"jsonrpc": "2.0", "id": 99, "result": {}}',
            "without the answer",
        ),
        (200, "text/event-stream", "data: {no\n\n", "sent no MCP message: {no"),
        (200, "text/event-stream", "data: \xff\n\n", "sent no MCP message"),
        (200, "text/event-stream", "", "ended its response without the answer"),
        (200, "text/event-stream", 'data: {"id": 1, "result": {}}', "without the answer"),
    ],
)
async def test_answer_that_is_none_is_named(status: int, kind: str, body: str, says: str) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(status, body.encode("latin-1"), {"Content-Type": kind})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(ChannelError, match=says) as caught:
            await channel.request("m", {})

    assert caught.value.sent


async def test_answer_without_result_or_error_is_an_error() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond_json({"jsonrpc": "2.0", "id": 1, "result": 7})

    async with talking(handler) as (channel, _, _):
        with pytest.raises(RpcError, match="neither result nor error"):
            await channel.request("m", {})


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Key": "s3cret\nX-More: 1"},
        {"X-Key": "s3cret "},
        {"X-Key": "s3crét"},
        {"X Key": "s3cret"},
        {"Content-Length": "1"},
        {"mcp-session-id": "s3cret"},
    ],
)
async def test_header_that_cannot_be_sent_is_refused_by_name(headers: dict[str, str]) -> None:
    with pytest.raises(ChannelError) as caught:
        async with open_http("http://127.0.0.1:1/", headers, nothing, Limits()):
            pass

    assert next(iter(headers)) in str(caught.value)
    assert "s3cr" not in str(caught.value)
    assert not caught.value.sent


async def test_header_of_one_request_that_cannot_be_sent_fails_that_request() -> None:
    async with talking(echo) as (channel, server, _):
        with pytest.raises(ChannelError, match='"Mcp-Name"') as caught:
            await channel.request("m", {}, Options(headers={"Mcp-Name": "ü"}))

        assert await channel.request("m", {}) == {"asked": {}}

    assert not caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("url", ["ftp://x/", "not a URL", "http:///mcp", "/mcp"])
async def test_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(ChannelError, match="not an http:// or https:// URL"):
        async with open_http(url, {}, nothing, Limits()):
            pass


async def test_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://me:s3cret@proxy.example")
    with pytest.raises(ChannelError, match="the environment's proxy") as caught:
        async with open_http("http://127.0.0.1:1/", {}, nothing, Limits()):
            pass

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("how", ["refuses", "hangs up"])
async def test_proxy_that_does_not_connect_provably_ran_nothing(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def proxy(request: Request, peer: Peer) -> None:
        if how == "refuses":
            await peer.respond(403)

        await peer.close()

    async with scripted(proxy) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s3cret@127.0.0.1:{server.port}")
        async with open_http("https://far.example/mcp", {}, nothing, Limits()) as channel:
            with pytest.raises(ChannelError, match=r"far\.example/mcp") as caught:
                await channel.request("m", {})

    assert [(r.verb, r.target) for r in server.requests] == [("CONNECT", "far.example:443")]
    assert "s3cret" not in str(caught.value)
    assert not caught.value.sent


async def test_certificates_that_cannot_be_loaded_are_named_as_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all.pem")
    with pytest.raises(ChannelError, match="TLS certificates: No such file"):
        async with open_http("http://127.0.0.1:1/", {}, nothing, Limits()):
            pass


async def test_no_secret_is_logged_or_raised(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "httpcore2")  # at DEBUG it shows whole responses
    errors: list[str] = []

    async def handler(request: Request, peer: Peer) -> None:
        how = request.message.get("params", {}).get("how")
        if how == "redirect":
            await peer.respond(302, headers={"Location": "/login?next=s3cret"})
        elif how == "reset":
            await peer.reset()
        else:
            await peer.respond(500)

    async with scripted(handler) as server:
        url = server.url.replace("://", "://user:s3cret@") + "?token=s3cret#s3cret"
        headers = {"X-Key": "s3cret"}
        async with open_http(url, headers, nothing, Limits(close_grace=0.1)) as channel:
            channel.session_id, channel.protocol_version = "s3cret", LEGACY
            for how in ("redirect", "reset", "status"):
                with pytest.raises(ChannelError) as caught:
                    await channel.request("m", {"how": how}, Options(headers={"X-More": "s3cret"}))

                errors.append(str(caught.value))

    sent = server.requests[0]
    assert (sent.target, sent.headers["x-key"]) == ("/mcp?token=s3cret", "s3cret")
    assert "HTTP Request: POST" in caplog.text
    assert "s3cret" not in "\n".join([caplog.text, *errors])


async def misbehave(request: Request, peer: Peer) -> None:
    """Do what the request asks for."""
    how = request.message.get("params", {}).get("how")
    if request.verb == "GET" or how == "half":
        await peer.open_events()
        await peer.chunk("data: x")
        await peer.gone()
    elif how == "reset":
        await peer.reset()
    elif how == "big":
        await peer.respond(200, b" " * 50_000, {"Content-Type": "application/json"})
    elif how == "error":
        await peer.respond(500, b" " * 3_000_000)
    elif how == "slow":
        await silent(request, peer)
    else:
        await echo(request, peer)


async def test_nothing_is_left_however_requests_end() -> None:
    async with scripted(misbehave) as server:

        async def cycle() -> None:
            async with open_http(server.url, {}, nothing, SMALL) as channel:
                await begin_session(channel)
                for how in ("", "reset", "half", "big", "error", "slow", ""):
                    with suppress(ChannelError):
                        await channel.request("m", {"how": how}, Options(timeout=0.05))

                async with anyio.create_task_group() as tasks:
                    for how in ("half", "slow", "slow"):
                        tasks.start_soon(channel.request, "m", {"how": how})

                    await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()

            await eventually(lambda: server.open_connections == 0)

        await cycle()
        before = held()
        for _ in range(10):
            await cycle()

        await no_more_than(before)
