"""Streamable HTTP, byte by byte: one JSON body or a stream, sessions, and what can be resumed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.declaration import Declaration
from bridge.downstream.guard import Bounds
from bridge.downstream.handlers import Handlers
from tests.downstream.fronts import handlers_of, serving
from tests.downstream.offer import Runs, Shelf, everything
from tests.waiting import eventually

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
KEY = "io.modelcontextprotocol/"
ENVELOPE = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": {}}


@asynccontextmanager
async def client(url: str, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=url.removesuffix("/mcp"), timeout=20, headers={**ACCEPT, **headers}
    ) as http:
        yield http


def request(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def tool_call(name: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return request("tools/call", number, name=name, arguments={}, **params)


async def begun(http: httpx2.AsyncClient, version: str = "2025-11-25") -> dict[str, str]:
    """The headers of a new legacy session."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t"}}
    answer = await http.post("/mcp", json=request("initialize", 0, **hello))
    assert answer.status_code == 200
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": version}
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post("/mcp", json=told, headers=session)).status_code == 202
    return session


def modern(method: str, **headers: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **headers}


def events(text: str) -> list[tuple[str | None, Any]]:
    """Each event's id and data, as they came; comments are none."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if "data" in lines or "id" in lines:
            data = lines.get("data", "").strip()
            found.append((lines.get("id"), json.loads(data) if data else None))

    return found


# --- one body, or a stream -------------------------------------------------------------------


async def test_an_answer_is_one_json_body_unless_something_comes_before_it() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        quiet = await http.post("/mcp", json=tool_call("steps"), headers=session)
        loud = tool_call("steps", 2, _meta={"progressToken": "p"})
        told = await http.post("/mcp", json=loud, headers=session)

    assert quiet.headers["content-type"] == "application/json"
    assert quiet.json()["id"] == 1
    assert told.headers["content-type"] == "text/event-stream"
    heard = events(told.text)
    assert heard[0][1] is None  # the event that primes a client to resume
    assert [one["method"] for _, one in heard[1:-1]] == ["notifications/progress"] * 3
    assert heard[-1][1]["result"]["content"][0]["text"] == "progress"
    assert quiet.json()["result"]["content"][0]["text"] == "silence"
    assert all(name for name, _ in heard)


async def test_an_old_client_is_sent_no_event_without_data() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http, "2025-06-18")
        loud = tool_call("steps", 2, _meta={"progressToken": "p"})
        told = await http.post("/mcp", json=loud, headers=session)

    assert all(data is not None for _, data in events(told.text))


async def test_a_client_that_takes_no_stream_gets_the_answer_alone() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        loud = tool_call("steps", 2, _meta={"progressToken": "p"})
        plain = {**session, "Accept": "application/json"}
        told = await http.post("/mcp", json=loud, headers=plain)

    assert told.headers["content-type"] == "application/json"
    assert "result" in told.json()


async def test_a_modern_stream_has_no_ids_and_ends_with_the_result() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        body = tool_call("steps", _meta={**ENVELOPE, "progressToken": 7})
        told = await http.post(
            "/mcp", json=body, headers=modern("tools/call", **{"Mcp-Name": "steps"})
        )

    heard = events(told.text)
    assert [name for name, _ in heard] == [None] * 4
    assert [one["params"]["progressToken"] for _, one in heard[:3]] == [7] * 3
    assert heard[3][1]["result"]["resultType"] == "complete"


# --- sessions --------------------------------------------------------------------------------


async def test_a_session_ends_with_delete_and_so_does_what_runs_in_it() -> None:
    handlers = await handlers_of(runs := Runs())
    async with serving(handlers) as url, client(url) as http, anyio.create_task_group() as group:
        session = await begun(http)
        group.start_soon(partial(http.post, "/mcp", json=tool_call("slow"), headers=session))
        await runs.started.wait()

        assert (await http.delete("/mcp", headers=session)).status_code == 200
        await runs.cancelled.wait()
        after = await http.post("/mcp", json=request("tools/list"), headers=session)
        assert after.status_code == 404
        assert "initialize" in after.text
        assert (await http.delete("/mcp", headers=session)).status_code == 404


async def test_a_request_names_its_session() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        none = await http.post("/mcp", json=request("tools/list"))
        other = await http.post(
            "/mcp", json=request("tools/list"), headers={"Mcp-Session-Id": "f" * 32}
        )

    assert (none.status_code, other.status_code) == (400, 404)


async def test_a_session_that_nobody_uses_ends() -> None:
    bounds = Bounds(sessions=1, session_seconds=0.05)
    async with serving(await handlers_of(Runs()), bounds=bounds) as url, client(url) as http:
        session = await begun(http)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}

        async def has_room() -> bool:
            answer = await http.post("/mcp", json=request("initialize", **hello))
            return answer.status_code == 200

        await eventually(has_room)
        assert (await http.delete("/mcp", headers=session)).status_code == 404


async def test_one_session_too_many_is_refused_until_another_ends() -> None:
    bounds = Bounds(sessions=1)
    async with serving(await handlers_of(Runs()), bounds=bounds) as url, client(url) as http:
        session = await begun(http)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        refused = await http.post("/mcp", json=request("initialize", **hello))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
        await http.delete("/mcp", headers=session)
        await begun(http)


async def test_an_initialize_that_fails_leaves_no_session() -> None:
    bounds = Bounds(sessions=1)
    async with serving(await handlers_of(Runs()), bounds=bounds) as url, client(url) as http:
        for _ in range(3):
            answer = await http.post("/mcp", json=request("initialize"))
            assert answer.json()["error"]["code"] == -32602

        await begun(http)


async def test_a_version_nobody_knows_is_answered_with_the_newest_of_its_era() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {}}
        answer = await http.post("/mcp", json=request("initialize", **hello))

    assert answer.json()["result"]["protocolVersion"] == "2025-11-25"


# --- what can be resumed ---------------------------------------------------------------------


async def test_a_response_that_was_cut_off_goes_on_where_it_stopped() -> None:
    handlers = await handlers_of(runs := Runs())
    async with serving(handlers) as url, client(url) as http:
        session = await begun(http)
        last = await cut_off(http, session)
        runs.go_on.set()
        rest = await http.get("/mcp", headers={**session, "Last-Event-ID": last})

    heard = [one for _, one in events(rest.text) if one is not None]
    assert heard[-1]["id"] == 5
    assert heard[-1]["result"]["content"][0]["text"]


async def cut_off(http: httpx2.AsyncClient, session: dict[str, str]) -> str:
    """Lose the response of a call that waits, after its first event; returns that event's id."""
    body = tool_call("until", 5, _meta={"progressToken": "p"})
    async with http.stream("POST", "/mcp", json=body, headers=session) as response:
        text = ""
        async for piece in response.aiter_text():
            text += piece
            if len(heard := events(text)) >= 2:
                return str(heard[1][0])

    raise AssertionError("the response ended")


async def test_an_event_that_is_kept_no_more_is_said_so() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        for last in ("99_1", "nonsense", "", "1_x"):
            answer = await http.get("/mcp", headers={**session, "Last-Event-ID": last})
            assert answer.status_code == 404


async def test_what_nobody_asked_for_comes_on_the_stream_of_a_get() -> None:
    shelf = Shelf(*everything(Runs()))
    catalog = await shelf.offered()
    handlers = Handlers(catalog, name="tests", version="1")
    async with serving(handlers) as url, client(url) as http:
        session = await begun(http)
        async with http.stream("GET", "/mcp", headers=session) as response:
            shelf.listing = shelf.listing[1:]
            await catalog.refresh(local_context())
            text = ""
            async for piece in response.aiter_text():
                text += piece
                if "list_changed" in text:
                    break

    assert events(text)[-1][1]["method"] == "notifications/tools/list_changed"


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_modern_era_has_nothing_but_post(method: str) -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        answer = await http.request(method, "/mcp", headers={"MCP-Protocol-Version": MODERN})

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b"[" + json.dumps(request("ping")).encode() + b"]", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0"}', -32600),
    ],
)
async def test_what_is_no_message_is_answered_with_an_error(body: bytes, code: int) -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        kind = {"Content-Type": "application/json"}
        legacy = await http.post("/mcp", content=body, headers={**session, **kind})
        new = await http.post("/mcp", content=body, headers={**modern("ping"), **kind})

    assert (legacy.status_code, legacy.json()["error"]["code"]) == (400, code)
    assert (new.status_code, new.json()["error"]["code"]) == (400, code)


async def test_a_body_that_does_not_say_that_it_is_json_is_refused() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        answer = await http.post("/mcp", content=b"{}", headers={"Content-Type": "text/plain"})

    assert answer.status_code == 415


async def test_headers_and_envelope_must_agree() -> None:
    body = tool_call("counts", _meta=ENVELOPE)
    wrong = [
        {"Mcp-Method": "tools/list"},
        {"Mcp-Name": "buy"},
        {"MCP-Protocol-Version": "2027-01-01"},
    ]
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        right = modern("tools/call", **{"Mcp-Name": "counts"})
        assert (await http.post("/mcp", json=body, headers=right)).status_code == 200
        for headers in wrong:
            answer = await http.post("/mcp", json=body, headers={**right, **headers})
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)

        old = {**ENVELOPE, f"{KEY}protocolVersion": "2027-01-01"}
        body = tool_call("counts", _meta=old)
        headers = {**right, "MCP-Protocol-Version": "2027-01-01"}
        answer = await http.post("/mcp", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32022)
        assert answer.json()["error"]["data"]["supported"] == [MODERN]


async def test_a_method_that_is_not_there_is_404_in_the_modern_era_alone() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        legacy = await http.post("/mcp", json=request("no/such"), headers=session)
        body = request("no/such", _meta=ENVELOPE)
        new = await http.post("/mcp", json=body, headers=modern("no/such"))

    assert (legacy.status_code, legacy.json()["error"]["code"]) == (200, -32601)
    assert (new.status_code, new.json()["error"]["code"]) == (404, -32601)


async def test_ping_and_initialize_are_no_methods_of_the_modern_era() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        for method in ("ping", "initialize", "logging/setLevel"):
            body = request(method, _meta=ENVELOPE)
            answer = await http.post("/mcp", json=body, headers=modern(method))
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


async def test_a_get_is_for_clients_that_take_a_stream() -> None:
    async with serving(await handlers_of(Runs())) as url, client(url) as http:
        session = await begun(http)
        answer = await http.get("/mcp", headers={**session, "Accept": "application/json"})

    assert answer.status_code == 406


# --- changes, for modern clients -------------------------------------------------------------


async def test_a_subscription_grants_tells_and_ends_with_a_result() -> None:
    shelf = Shelf(*everything(Runs()))
    catalog = await shelf.offered()
    handlers = Handlers(catalog, name="tests", version="1")
    wanted = {"toolsListChanged": True, "promptsListChanged": False}
    body = request("subscriptions/listen", 9, _meta=ENVELOPE, notifications=wanted)
    text = ""
    async with client("http://unused") as http, anyio.create_task_group() as group:
        is_heard = anyio.Event()

        async def listen(url: str) -> None:
            nonlocal text
            headers = modern("subscriptions/listen")
            async with http.stream("POST", url, json=body, headers=headers) as response:
                async for piece in response.aiter_text():
                    text += piece
                    if "acknowledged" in text:
                        is_heard.set()

        async with serving(handlers) as url:
            group.start_soon(listen, url)
            await is_heard.wait()
            shelf.listing = shelf.listing[1:]
            await catalog.refresh(local_context())
            await eventually(lambda: "list_changed" in text)

    heard = [one for _, one in events(text)]
    meta = {f"{KEY}subscriptionId": 9}
    assert [one.get("method") for one in heard] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        None,
    ]
    assert heard[0]["params"] == {"notifications": {"toolsListChanged": True}, "_meta": meta}
    assert heard[1]["params"] == {"_meta": meta}
    assert heard[2]["id"] == 9
    assert heard[2]["result"]["_meta"][f"{KEY}subscriptionId"] == 9


async def test_what_a_server_says_after_its_answer_comes_on_the_stream_of_a_get() -> None:
    late = Late()
    handlers = Handlers(await Shelf(late).offered(), name="tests", version="1")
    async with serving(handlers) as url, client(url) as http:
        session = await begun(http)
        answer = await http.post("/mcp", json=tool_call("late"), headers=session)
        assert answer.json()["result"]["structuredContent"] == {"said": "now"}
        assert late.caller is not None
        late.caller.tell("notifications/message", {"level": "info", "data": "later"})
        async with http.stream("GET", "/mcp", headers=session) as response:
            text = ""
            async for piece in response.aiter_text():
                text += piece
                if "later" in text:
                    break

    assert events(text)[-1][1]["params"] == {"level": "info", "data": "later"}


class Late:
    """A tool that keeps its caller."""

    name, description, is_long_running = "late", "", False

    def __init__(self) -> None:
        self.caller: Any = None

    def declaration(self) -> Declaration:
        return Declaration(self.name)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        self.caller = ctx.caller
        return {"said": "now"}
