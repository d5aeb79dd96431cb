"""Single requests through the client of a channel: what is sent, and which way it goes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import httpx2
import pytest

from bridge.upstream.channel import ChannelError, Limits
from bridge.upstream.client import Client, Response, Sending
from bridge.upstream.direct import KNOWN_HEADS, SHORT_HEAD_BYTES, DirectClient, DirectTemplate
from bridge.upstream.web import exchange, open_client
from tests.upstream.scripted_http import Peer, Request, scripted


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def listening(said: list[bytes]) -> AsyncIterator[int]:
    """The port of a server that keeps every byte of one request a connection, and takes it."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            said.append(await stream.receive())
            await stream.send(b"HTTP/1.1 202 OK\r\nConnection: close\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


def opened(url: str, headers: Mapping[str, str]) -> AsyncIterator[Client]:
    """A client."""
    return open_client(url, headers, Limits(), 10.0)


async def post(client: Client, url: str, extra: Mapping[str, str] | None = None) -> Response:
    """The response to one POST, its body not read."""
    template = client.template("POST", httpx2.URL(url), {"Content-Type": "text/plain"})
    response = await template.send(extra or {}, b"hi", Sending())
    await response.aclose()
    return response


async def test_request_is_written_once_with_every_header_once() -> None:
    said: list[bytes] = []
    headers = {"x-key": "first", "accept-encoding": "br", "USER-AGENT": "me", "Host": "a.example"}
    async with listening(said) as port:
        url = f"http://us%40er:p%C3%A4ss@127.0.0.1:{port}/a%20b?c=d#e"
        async with opened(url, headers) as client:
            await post(client, url)
            await post(client, url, {"X-KEY": "second", "X-More": "more"})

    token = base64.b64encode("us@er:päss".encode()).decode()
    common = [
        "Host: a.example",
        "Accept: */*",
        "x-key: first",
        "USER-AGENT: me",
        "Accept-Encoding: identity",
        "Content-Type: text/plain",
        f"Authorization: Basic {token}",
    ]
    first = "POST /a%20b?c=d HTTP/1.1"
    length = "Content-Length: 2"
    more = [line for line in common if line != "x-key: first"]
    assert [data.decode().split("\r\n") for data in said] == [
        [first, *common, length, "", "hi"],
        [first, *more, "X-KEY: second", "X-More: more", length, "", "hi"],
    ]


@pytest.mark.parametrize("value", ["1", "y" * SHORT_HEAD_BYTES])
async def test_each_request_has_headers_of_its_own_also_if_their_like_was_sent(value: str) -> None:
    said: list[bytes] = []
    sent = [{"X-A": value}, {"X-A": value}, {"X-A": "2"}, {"X-B": value}, {}, {"X-A": value}]
    async with listening(said) as port, opened(url := f"http://127.0.0.1:{port}/", {}) as client:
        template = client.template("POST", httpx2.URL(url), {})
        for extra in sent:
            await (await template.send(extra, None, Sending())).aclose()

    lines = [data.decode().split("\r\n")[5:-2] for data in said]
    assert lines == [[f"{name}: {text}" for name, text in extra.items()] for extra in sent]


async def test_header_that_http_cannot_carry_is_refused_each_time() -> None:
    said: list[bytes] = []
    async with listening(said) as port, opened(url := f"http://127.0.0.1:{port}/", {}) as client:
        template = client.template("POST", httpx2.URL(url), {})
        for _ in range(2):
            for extra in ({"X-A": "1\r\nX-B: 2"}, {"X-A: 1\r\nX-B": "2"}, {"X-A": " 1"}):
                with pytest.raises(ChannelError) as refused:
                    await template.send(extra, None, Sending())

                assert not refused.value.sent

    assert said == []


async def test_no_more_heads_are_kept_than_that() -> None:
    said: list[bytes] = []
    async with listening(said) as port, opened(url := f"http://127.0.0.1:{port}/", {}) as client:
        template = client.template("POST", httpx2.URL(url), {})
        assert isinstance(template, DirectTemplate)
        for number in range(KNOWN_HEADS + 2):
            await (await template.send({"X-A": str(number)}, None, Sending())).aclose()

        assert template.kept == 2

    assert [data.decode().split("\r\n")[5] for data in said] == [
        f"X-A: {number}" for number in range(KNOWN_HEADS + 2)
    ]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:{}/", "127.0.0.1:{}"),
        ("http://LOCALHOST:{}/", "localhost:{}"),
    ],
)
async def test_host_is_named_as_the_url_names_it(url: str, host: str) -> None:
    said: list[bytes] = []
    async with listening(said) as port, opened(url.format(port), {}) as client:
        await post(client, url.format(port))

    assert f"\r\nHost: {host.format(port)}\r\n".encode() in said[0]


async def test_large_request_arrives_whole() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(200, str(len(request.body)))

    async with scripted(handler) as server, opened(server.url, {}) as client:
        where = httpx2.URL(server.url)
        body = b"x" * 3_000_000
        sending = Sending()
        async with exchange(client, "POST", where, {}, content=body, sending=sending) as response:
            assert await response.piece() == b"3000000"

    assert sending.sent


async def name_the_way(request: Request, peer: Peer) -> None:
    """Answer as any proxy or server."""
    await peer.respond(200, request.target)


async def test_plain_request_goes_over_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scripted(name_the_way) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:s3cret@127.0.0.1:{proxy.port}")
        url = "http://far.example/mcp"
        sending = Sending()
        async with (
            opened(url, {"X-Key": "k"}) as client,
            exchange(client, "POST", httpx2.URL(url), {"X-More": "m"}, sending=sending) as response,
        ):
            said = await response.piece(), await response.piece()

    (request,) = proxy.requests
    names = ("host", "x-key", "x-more", "accept-encoding", "proxy-authorization")
    token = base64.b64encode(b"me:s3cret").decode()
    assert said == (url.encode(), b"")
    assert (sending.sent, response.status, response.is_success) == (True, 200, True)
    assert request.target == url
    assert [request.headers.get(name) for name in names] == [
        "far.example",
        "k",
        "m",
        "identity",
        f"Basic {token}",
    ]


@pytest.mark.parametrize(
    ("variable", "exempt"),
    [
        ("HTTP_PROXY", "example.org,127.0.0.1"),
        ("HTTP_PROXY", "*"),
        ("ALL_PROXY", "127.0.0.1"),
        ("HTTPS_PROXY", ""),
    ],
)
async def test_request_goes_straight_where_no_proxy_is_for_it(
    monkeypatch: pytest.MonkeyPatch, variable: str, exempt: str
) -> None:
    async with scripted(name_the_way) as proxy, scripted(name_the_way) as server:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", exempt)
        async with opened(server.url, {}) as client:
            assert isinstance(client, DirectClient)
            assert (await post(client, server.url)).status == 200

    assert ([r.target for r in server.requests], proxy.requests) == (["/mcp"], [])


async def test_proxy_that_loses_the_connection_may_have_passed_the_request_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(request: Request, peer: Peer) -> None:
        if request.target.endswith("/head"):
            await peer.head(200, {"Content-Length": "9"})

        await peer.reset()

    async with scripted(handler) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with opened("http://far.example/", {}) as client:
            for path in ("head", "none"):
                sending = Sending()
                where = httpx2.URL(f"http://far.example/{path}")
                with pytest.raises(ChannelError, match=r"to http://far\.example/\S+ was lost") as e:
                    async with exchange(client, "GET", where, {}, sending=sending) as response:
                        await response.piece()

                assert (e.value.sent, sending.sent) == (True, True)
