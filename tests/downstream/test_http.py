"""The HTTP fronts over real sockets: who may come in, with how much, and how they end."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bridge.downstream.guard import Bounds
from bridge.downstream.handlers import Handlers
from bridge.downstream.http import serve_http
from bridge.downstream.repeated import HttpProtocol
from bridge.downstream.sse import serve_sse
from bridge.errors import ConfigError
from tests.downstream.fronts import ERAS, Transport, connected, dialled, handlers_of, serving
from tests.downstream.offer import Runs, Shelf, everything
from tests.waiting import eventually

MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
BOTH = pytest.mark.parametrize("transport", ["http", "sse"])
PROTOCOLS: dict[str, Any] = {"h11": "h11", "httptools": HttpProtocol}
PARSERS = pytest.mark.parametrize("parser", PROTOCOLS)


def modern_call(name: str, **headers: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and headers of one modern call without arguments."""
    meta = {PROTOCOL_VERSION_META_KEY: MODERN, CLIENT_CAPABILITIES_META_KEY: {}}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": {}, "_meta": meta},
    }
    told = {
        "Accept": ACCEPT,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    return body, {**told, **headers}


@asynccontextmanager
async def served(transport: Transport = "http", **options: Any) -> AsyncIterator[str]:
    async with serving(await handlers_of(Runs()), transport, **options) as url:
        yield url


async def call(url: str, name: str = "counts", **headers: str) -> httpx2.Response:
    body, told = modern_call(name, **headers)
    async with httpx2.AsyncClient(timeout=10) as http:
        return await http.post(url, json=body, headers=told)


async def raw(url: str, data: bytes) -> bytes:
    """Send bytes as they are, and read until the server closes."""
    async with await dialled(url) as stream:
        await stream.send(data)
        answer = b""
        with anyio.fail_after(10):
            try:
                while True:
                    answer += await stream.receive()
            except anyio.EndOfStream:
                return answer


# --- who may come in -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:80@evil.example"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:80@evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
    ],
)
async def test_a_page_from_elsewhere_cannot_come_in(
    transport: Transport, headers: dict[str, str], status: int
) -> None:
    async with served(transport) as url, httpx2.AsyncClient() as http:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            assert (await http.request(method, url, headers=headers)).status_code == status

        elsewhere = url.replace("/sse", "/messages/").replace("/mcp", "/")
        assert (await http.post(elsewhere, headers=headers)).status_code == status


async def test_pages_and_names_of_this_machine_come_in_with_any_port() -> None:
    async with served() as url:
        for headers in (
            {"Host": "localhost"},
            {"Host": "localhost:1"},
            {"Host": "[::1]:9"},
            {"Origin": "http://localhost:6274"},
            {"Origin": "http://127.0.0.1"},
        ):
            assert (await call(url, **headers)).status_code == 200


async def test_named_hosts_and_origins_come_in() -> None:
    names = {"allowed_hosts": ["bridge.example"], "allowed_origins": ["https://app.example"]}
    async with served(**names) as url:
        assert (await call(url, Host="bridge.example:1")).status_code == 200
        assert (await call(url, Origin="https://app.example")).status_code == 200
        assert (await call(url, Origin="http://app.example")).status_code == 403


@pytest.mark.parametrize("double", [b"Host: localhost\r\n", b"Origin: http://localhost\r\n"])
async def test_a_header_that_comes_twice_is_not_believed(double: bytes) -> None:
    async with served() as url:
        origin = b"Origin: http://localhost\r\n" if double.startswith(b"Origin") else b""
        head = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + origin + double
        status = (await raw(url, head + b"\r\n")).split()[1]
        assert status in (b"400", b"403", b"421")


# --- with which token ------------------------------------------------------------------------


@BOTH
async def test_only_the_token_comes_in(transport: Transport) -> None:
    async with served(transport, token="s3cret") as url, httpx2.AsyncClient() as http:
        for sent in (None, "", "Bearer", "Bearer nope", "Basic s3cret", "Bearer s3cret2"):
            headers = {} if sent is None else {"Authorization": sent}
            for where in (url, f"{url}?access_token=s3cret", url.replace("/sse", "/messages/")):
                refused = await http.post(where, json={}, headers=headers)
                assert refused.status_code == 401
                error = "" if sent is None else ', error="invalid_token"'
                assert refused.headers["www-authenticate"] == f'Bearer realm="bridge"{error}'
                assert "s3cret" not in refused.text

        async with connected(transport, url, MODERN, token="s3cret") as client:
            assert (await client.call_tool("counts", {})).structured_content == {}


async def test_the_principal_of_a_token_reaches_the_tool() -> None:
    seen: list[str] = []

    class Listening(Handlers):
        async def list_tools(
            self, asker: Any, params: Any, on_progress: Any = None
        ) -> dict[str, Any]:
            seen.append(asker.principal)
            return await super().list_tools(asker, params)

    handlers = Listening(await Shelf(*everything(Runs())).offered())
    for era in ERAS:
        async with (
            serving(handlers, token="s3cret") as url,
            connected("http", url, era, token="s3cret") as client,
        ):
            await client.list_tools()

        async with serving(handlers) as url, connected("http", url, era) as client:
            await client.list_tools()

    assert seen == ["token:1ec1c26b50d5", "local"] * 2


@pytest.mark.parametrize("serve", [serve_http, serve_sse])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
async def test_no_server_starts_for_other_machines_without_a_token(
    serve: Callable[..., Awaitable[None]], host: str
) -> None:
    with pytest.raises(ConfigError, match="no token is configured"):
        await serve(await handlers_of(Runs()), host=host, port=0)


# --- with how much ---------------------------------------------------------------------------


@BOTH
async def test_a_body_too_long_is_refused_declared_or_not(transport: Transport) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * 1024 * 1024

    async with served(transport) as url, httpx2.AsyncClient() as http:
        headers = {"Content-Type": "application/json", "Accept": ACCEPT}
        big = b" " * (4 * 1024 * 1024 + 1)
        for where in (url.replace("/sse", "/messages/"), f"{url}/elsewhere"):
            assert (await http.post(where, content=big, headers=headers)).status_code == 413
            assert (await http.post(where, content=endless(), headers=headers)).status_code == 413


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with served(bounds=Bounds(body_seconds=0.1)) as url:
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        assert (await raw(url, head)).startswith(b"HTTP/1.1 408 ")


WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@BOTH
@PARSERS
@pytest.mark.parametrize("before", [b"", WHOLE], ids=["at once", "after a request"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, transport: Transport, parser: str, before: bytes
) -> None:
    monkeypatch.setattr("bridge.downstream.web.PARSER", PROTOCOLS[parser])
    async with served(transport, bounds=Bounds(head_seconds=2)) as url:
        answer = await raw(url, before + b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Drip: ")

    assert answer.startswith(b"HTTP/1.1 200 " if before else b"")
    assert answer.count(b"HTTP/1.1 ") == (1 if before else 0)


@BOTH
@PARSERS
async def test_a_request_may_take_longer_than_its_head(
    monkeypatch: pytest.MonkeyPatch, transport: Transport, parser: str
) -> None:
    monkeypatch.setattr("bridge.downstream.web.PARSER", PROTOCOLS[parser])
    looked: list[int] = []
    handlers = await handlers_of(runs := Runs())

    def looks(server: Any) -> Any:
        looked.append(1)
        return server.server_state.connections

    monkeypatch.setattr("bridge.downstream.web._Uvicorn.connections", looks)
    async with (
        serving(handlers, transport, bounds=Bounds(head_seconds=2)) as url,
        connected(transport, url, "legacy") as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(client.call_tool, "until", {})
        await runs.started.wait()
        before = len(looked)
        await eventually(lambda: len(looked) > before + 5)  # longer than a head may take
        runs.go_on.set()
        assert await is_answered(client)


async def test_whitespace_around_routing_headers_does_not_matter() -> None:
    body, told = modern_call("counts")
    async with served() as url:
        data = str(httpx2.Request("POST", url, json=body).content, "utf-8")
        lines = "".join(
            f"{name}: \t {value} \t\r\n" for name, value in told.items() if name != "Accept"
        )
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: {ACCEPT}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n{lines}\r\n"
        )
        assert (await raw(url, f"{head}{data}".encode())).startswith(b"HTTP/1.1 200 ")


@BOTH
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_too_many_is_refused_and_the_next_one_runs(
    transport: Transport, era: str
) -> None:
    handlers = await handlers_of(runs := Runs())
    async with (
        serving(handlers, transport, bounds=Bounds(calls=1)) as url,
        connected(transport, url, era) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(client.call_tool, "until", {})
        await runs.started.wait()
        refused = await client.call_tool("counts", {})
        assert refused.is_error
        assert "too many calls are running here" in refused.content[0].text
        runs.go_on.set()
        await eventually(lambda: is_answered(client))


async def is_answered(client: Client) -> bool:
    return not (await client.call_tool("counts", {})).is_error


# --- where -----------------------------------------------------------------------------------


@BOTH
async def test_whoever_misses_the_endpoint_is_told_where_it_is(transport: Transport) -> None:
    async with served(transport) as url, httpx2.AsyncClient() as http:
        path = httpx2.URL(url).path
        root = await http.get(url.replace(path, "/"))
        lost = await http.post(url.replace(path, "/elsewhere"), json={})

        text = f"This is an MCP server. Its endpoint is {path}\n"
        assert (root.status_code, root.text) == (200, text)
        assert (lost.status_code, lost.text) == (404, text)


async def test_a_method_that_means_nothing_here_is_not_allowed() -> None:
    async with served() as url, httpx2.AsyncClient() as http:
        refused = await http.put(url)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST, DELETE")


async def test_the_path_is_the_configured_one() -> None:
    async with served(path="/tools/here") as url:
        assert url.endswith("/tools/here")
        assert (await call(url)).status_code == 200

    with pytest.raises(ConfigError, match='the path "mcp" must begin with "/"'):
        await serve_http(await handlers_of(Runs()), port=0, path="mcp")


@pytest.mark.parametrize("serve", [serve_http, serve_sse])
async def test_a_port_in_use_is_said_so(serve: Callable[..., Awaitable[None]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as refused:
            await serve(await handlers_of(Runs()), port=port)

    assert str(refused.value) == (
        f"port {port} on 127.0.0.1 is in use: stop what listens there, or choose another with "
        "--port (0 takes a free one)"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"host": "x" * 64, "token": "t"}, 'x" is no address of this machine'),
        ({"host": "192.0.2.1", "token": "t"}, '"192.0.2.1", port 0, cannot be listened on'),
        ({"allowed_hosts": ["http://x"]}, '"http://x" is not usable'),
    ],
)
async def test_an_address_that_cannot_be_used_is_said_so(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        await serve_http(await handlers_of(Runs()), port=0, **options)

    assert problem in str(refused.value)


async def test_ipv6_works_too() -> None:
    async with served(host="::1") as url, connected("http", url, MODERN) as client:
        assert url.startswith("http://[::1]:")
        assert (await client.call_tool("counts", {})).structured_content == {}


# --- handshakes ------------------------------------------------------------------------------


@BOTH
async def test_a_legacy_request_before_initialize_is_refused(transport: Transport) -> None:
    listing = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    accept = {"Accept": ACCEPT}
    async with served(transport) as url, httpx2.AsyncClient(headers=accept, timeout=10) as http:
        if transport == "http":
            refused = await http.post(url, json=listing)
            assert refused.status_code == 400
            return

        async with http.stream("GET", url) as stream:
            lines = stream.aiter_lines()
            path = await after(lines, "/messages/")
            await http.post(url.replace("/sse", path), json=listing)
            answer = await after(lines, "{")
            assert "tools/list came before initialize" in answer


async def after(lines: AsyncIterator[str], beginning: str) -> str:
    async for line in lines:
        data = line.removeprefix("data: ")
        if data.startswith(beginning):
            return data

    raise AssertionError(beginning)


async def test_a_call_without_an_id_is_no_call() -> None:
    handlers = await handlers_of(runs := Runs())
    body, told = modern_call("add")
    body["params"]["arguments"] = {"a": 1, "b": 2}
    del body["id"]
    async with serving(handlers) as url, httpx2.AsyncClient() as http:
        assert (await http.post(url, json=body, headers=told)).status_code == 202
        assert runs.count == {}


# --- leaving ---------------------------------------------------------------------------------


async def test_a_modern_client_that_leaves_cancels_its_call() -> None:
    handlers = await handlers_of(runs := Runs())
    async with serving(handlers) as url, anyio.create_task_group() as group:
        group.start_soon(call, url, "slow")
        await runs.started.wait()
        group.cancel_scope.cancel()

    await runs.cancelled.wait()


async def test_a_legacy_client_that_only_loses_its_connection_cancels_nothing() -> None:
    handlers = await handlers_of(runs := Runs())
    async with serving(handlers) as url, httpx2.AsyncClient(timeout=10) as http:
        session = await legacy_session(http, url)
        slow = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}}
        async with anyio.create_task_group() as group:
            group.start_soon(partial(http.post, url, json=slow, headers=session))
            await runs.started.wait()
            group.cancel_scope.cancel()

        assert (await http.post(url, json=listing(3), headers=session)).status_code == 200
        assert not runs.cancelled.is_set()
        gone = {"method": "notifications/cancelled", "params": {"requestId": 2}}
        await http.post(url, json={"jsonrpc": "2.0", **gone}, headers=session)
        await runs.cancelled.wait()


async def test_a_legacy_question_comes_on_the_stream_of_the_call_that_asks_it() -> None:
    handlers = await handlers_of(runs := Runs())
    async with serving(handlers) as url, httpx2.AsyncClient(timeout=10) as http:
        session = await legacy_session(http, url, elicitation={})
        buy = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "buy"}}
        yes = {"action": "accept", "content": {"approve": True}}
        async with http.stream("POST", url, json=buy, headers=session) as stream:
            lines = stream.aiter_lines()
            question = json.loads(await after(lines, "{"))
            assert question["method"] == "elicitation/create"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": yes}
            assert (await http.post(url, json=answer, headers=session)).status_code == 202
            assert json.loads(await after(lines, "{"))["id"] == 2

    assert runs.count["buy"] == 1


def listing(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/list"}


async def legacy_session(http: httpx2.AsyncClient, url: str, **capabilities: Any) -> dict[str, str]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "raw", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    opened = await http.post(url, json=opening, headers={"Accept": ACCEPT})
    return {"Accept": ACCEPT, "Mcp-Session-Id": opened.headers["mcp-session-id"]}


# --- closing ---------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("era", ERAS)
async def test_a_server_ends_in_time_with_streams_open_and_a_call_running(
    transport: Transport, era: str
) -> None:
    handlers = await handlers_of(runs := Runs())
    answered = anyio.Event()

    async def calls(client: Client) -> None:
        await client.list_tools()  # else it would after the call, to check the answer
        runs.seen.append(await client.call_tool("slow", {}))
        answered.set()

    async with anyio.create_task_group() as group:
        with anyio.fail_after(20):
            async with serving(handlers, transport, bounds=Bounds(grace=1)) as url:
                client = await group.start(held_open, transport, url, era)
                group.start_soon(calls, client)
                await runs.started.wait()

            await answered.wait()

        group.cancel_scope.cancel()

    assert runs.cancelled.is_set()
    (result,) = runs.seen
    assert result.is_error
    assert result.content[0].text == "this server is closing; whether the call ran is not known"


async def held_open(transport: Transport, url: str, era: str, *, task_status: Any) -> None:
    async with connected(transport, url, era) as client:
        if era == "legacy":
            task_status.started(client)
            await anyio.sleep_forever()

        async with client.listen(tools_list_changed=True) as news:
            task_status.started(client)
            async for _ in news:
                pass

        await anyio.sleep_forever()


async def test_a_call_that_ends_within_the_grace_is_answered() -> None:
    handlers = await handlers_of(runs := Runs())
    ready: list[str] = []
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def serve() -> None:
            with scope:
                await serve_http(handlers, port=0, on_ready=ready.append)

        async def answer() -> None:
            async with connected("http", ready[0], MODERN) as client:
                await client.list_tools()  # else it would after the call, to check the answer
                result = await client.call_tool("until", {})
                runs.seen.append(result.content[0].text)

        group.start_soon(serve)
        await eventually(lambda: ready)
        group.start_soon(answer)
        await runs.started.wait()
        scope.cancel()
        await eventually(lambda: turned_away(ready[0]))
        runs.go_on.set()

    assert runs.seen == ["went on"]


async def turned_away(url: str) -> bool:
    """Whether the server takes nothing new."""
    try:
        return (await call(url)).status_code == 503
    except httpx2.TransportError:
        return True


async def test_a_port_is_free_again_when_its_server_has_ended() -> None:
    async with served() as url:
        port = httpx2.URL(url).port

    ready: list[str] = []
    async with anyio.create_task_group() as group:

        async def serve() -> None:
            await serve_http(await handlers_of(Runs()), port=port or 0, on_ready=ready.append)

        group.start_soon(serve)
        await eventually(lambda: ready)
        group.cancel_scope.cancel()

    assert ready == [url]
