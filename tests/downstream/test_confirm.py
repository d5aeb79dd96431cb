"""A call that waits for a person, over every transport and in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskStatus
from mcp import Client
from mcp_types import ElicitResult, ErrorData, InputRequiredResult

from bridge.calls.hooks import Hook, Hooks
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.tool import Tool
from bridge.downstream.asker import Asker
from bridge.downstream.confirm import FORM
from bridge.downstream.handlers import MOST_QUESTIONS, Handlers
from bridge.tools.function import function_tool
from tests.downstream.fronts import (
    ERAS,
    TRANSPORTS,
    Transport,
    answering,
    connected,
    counts,
    endpoint,
    handlers_of,
    serving,
)
from tests.downstream.offer import Runs, Shelf, everything, servers_tool, text
from tests.waiting import eventually

MODERN = "2026-07-28"
YES = {"approval": {"action": "accept", "content": {"approve": True}}}

every_era = pytest.mark.parametrize("era", ERAS)
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def words(result: Any) -> str:
    return str(result.content[0].text)


async def buy(client: Client, city: str = "Tokyo", **more: Any) -> Any:
    """Call the guarded tool without letting the client answer by itself."""
    return await client.session.call_tool("buy", {"city": city}, allow_input_required=True, **more)


async def bought(client: Client) -> int:
    return (await counts(client)).get("buy", 0)


# --- what a person's answer does -------------------------------------------------------------


@every_era
@every_transport
async def test_a_yes_is_one_run(transport: Transport, era: str) -> None:
    person = answering("accept", approve=True)
    async with endpoint(transport) as where, connected(transport, where, era, person) as client:
        result = await client.call_tool("buy", {"city": "Tokyo"})
        assert (words(result), result.is_error) == ("bought Tokyo", False)
        assert await bought(client) == 1


NOES: list[tuple[str, dict[str, Any]]] = [
    ("decline", {}),
    ("accept", {}),
    ("cancel", {}),
    ("accept", {"approve": False}),
    ("accept", {"approve": "true"}),
    ("accept", {"approve": 1}),
    ("decline", {"approve": True}),
    ("cancel", {"approve": True}),
]


@every_era
@pytest.mark.parametrize(
    ("transport", "action", "content"),
    [
        *(("http", *no) for no in NOES),
        *(("sse", *no) for no in NOES[:3]),
        *(("stdio", *no) for no in NOES[:2]),
    ],
)
async def test_anything_but_a_yes_runs_nothing(
    transport: Transport, era: str, action: str, content: dict[str, Any]
) -> None:
    person = answering(action, **content)
    async with endpoint(transport) as where, connected(transport, where, era, person) as client:
        result = await client.call_tool("buy", {"city": "Tokyo"})
        assert result.is_error
        assert words(result) == 'the call of "buy" was not approved; nothing ran'
        assert await bought(client) == 0


@every_era
@every_transport
async def test_a_client_that_cannot_ask_gets_a_refusal(transport: Transport, era: str) -> None:
    async with endpoint(transport) as where, connected(transport, where, era) as client:
        result = await client.call_tool("buy", {"city": "Tokyo"})
        assert result.is_error
        assert "needs a person's approval, and this client cannot ask" in words(result)
        assert await bought(client) == 0


@every_era
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_two_calls_alike_are_two_questions(transport: Transport, era: str) -> None:
    asked = 0

    async def one_yes(context: Any, params: Any) -> ElicitResult:
        nonlocal asked
        asked += 1
        return ElicitResult(action="accept", content={"approve": asked == 1})

    async with endpoint(transport) as where, connected(transport, where, era, one_yes) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "buy", {"city": "Tokyo"})
            group.start_soon(client.call_tool, "buy", {"city": "Tokyo"})

        assert (asked, await bought(client)) == (2, 1)


@every_era
@every_transport
async def test_the_person_is_shown_the_server_the_tool_and_the_arguments(
    transport: Transport, era: str
) -> None:
    shown: list[Any] = []

    async def reads(context: Any, params: Any) -> ElicitResult:
        shown.append(params)
        return ElicitResult(action="cancel")

    async with endpoint(transport) as where, connected(transport, where, era, reads) as client:
        await client.call_tool("buy", {"city": "To\u202ekyo\x1b[8m", "n": 2**60})

    assert shown[0].message.splitlines() == [
        "Allow this call?",
        "",
        "server: stand-in",
        "tool: buy",
        "arguments: {",
        r'  "city": "To\u202ekyo\u001b[8m",',
        '  "n": 1152921504606846976',
        "}",
    ]
    assert shown[0].requested_schema == FORM


# --- modern: a sealed question that comes back -----------------------------------------------


@asynccontextmanager
async def asked(
    transport: Transport, where: str, city: str = "Tokyo"
) -> AsyncIterator[tuple[Client, str]]:
    """A modern client that has been asked, and the sealed question it holds."""
    person = answering("accept", approve=True)
    async with connected(transport, where, MODERN, person) as client:
        result = await buy(client, city)
        assert isinstance(result, InputRequiredResult)
        assert result.request_state is not None
        yield client, result.request_state


def assert_asked_anew(result: Any, old: str) -> None:
    assert isinstance(result, InputRequiredResult)
    assert result.request_state not in (None, old)
    assert list(result.input_requests or {}) == ["approval"]


@every_transport
async def test_a_question_that_was_answered_counts_no_second_time(transport: Transport) -> None:
    async with endpoint(transport) as where, asked(transport, where) as (client, state):
        first = await buy(client, input_responses=YES, request_state=state)
        second = await buy(client, input_responses=YES, request_state=state)

        assert words(first) == "bought Tokyo"
        assert_asked_anew(second, state)
        assert await bought(client) == 1


@every_transport
async def test_a_no_spends_the_question_too(transport: Transport) -> None:
    no = {"approval": {"action": "decline"}}
    async with endpoint(transport) as where, asked(transport, where) as (client, state):
        refused = await buy(client, input_responses=no, request_state=state)
        then_yes = await buy(client, input_responses=YES, request_state=state)

        assert "was not approved" in words(refused)
        assert_asked_anew(then_yes, state)
        assert await bought(client) == 0


@every_transport
async def test_a_yes_to_other_arguments_is_asked_anew(transport: Transport) -> None:
    async with endpoint(transport) as where, asked(transport, where) as (client, state):
        other = await buy(client, "Kyoto", input_responses=YES, request_state=state)

        assert_asked_anew(other, state)
        assert await bought(client) == 0
        assert words(await buy(client, input_responses=YES, request_state=state)) == "bought Tokyo"


@pytest.mark.parametrize(
    ("transport", "state"),
    [("http", ""), ("http", "v1.AAAA"), ("http", "v1." + "A" * 200), ("sse", "x"), ("stdio", "x")],
)
async def test_a_question_that_is_not_ours_is_asked_anew(transport: Transport, state: str) -> None:
    person = answering("accept", approve=True)
    async with endpoint(transport) as where, connected(transport, where, MODERN, person) as client:
        result = await buy(client, input_responses=YES, request_state=state)
        assert_asked_anew(result, state)
        assert await bought(client) == 0


@every_transport
async def test_a_question_without_an_answer_is_asked_anew(transport: Transport) -> None:
    async with endpoint(transport) as where, asked(transport, where) as (client, state):
        for responses in ({}, {"other": YES["approval"]}):
            result = await buy(client, input_responses=responses, request_state=state)
            assert_asked_anew(result, state)

        assert await bought(client) == 0


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_of_many_yeses_to_one_question_one_runs(transport: Transport) -> None:
    async with endpoint(transport) as where, asked(transport, where) as (client, state):

        async def say_yes() -> None:
            await buy(client, input_responses=YES, request_state=state)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(say_yes)

        assert await bought(client) == 1


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_answer_of_another_principal_runs_nothing(transport: Transport) -> None:
    handlers = await handlers_of(runs := Runs())
    async with (
        serving(handlers, transport) as where,
        serving(handlers, transport, token="one") as ones,
        asked(transport, where) as (_, state),
    ):
        result = await buy_with_token(transport, ones, "one", state)
        assert_asked_anew(result, state)
        assert runs.count["buy"] == 0


async def buy_with_token(transport: Transport, where: str, token: str, state: str) -> Any:
    person = answering("accept", approve=True)
    async with connected(transport, where, MODERN, person, token=token) as client:
        return await buy(client, input_responses=YES, request_state=state)


async def test_an_answer_from_another_sse_session_runs_nothing() -> None:
    person = answering("accept", approve=True)
    async with (
        endpoint("sse") as where,
        asked("sse", where) as (_, state),
        connected("sse", where, MODERN, person) as other,
    ):
        result = await buy(other, input_responses=YES, request_state=state)
        assert_asked_anew(result, state)
        assert await bought(other) == 0


@every_transport
async def test_a_question_does_not_survive_a_restart(transport: Transport) -> None:
    async with endpoint(transport) as where, asked(transport, where) as (_, state):
        pass

    async with endpoint(transport) as where, asked(transport, where) as (client, _):
        result = await buy(client, input_responses=YES, request_state=state)
        assert_asked_anew(result, state)
        assert await bought(client) == 0


# --- legacy: a question while the call waits -------------------------------------------------


@every_transport
async def test_silence_is_no_answer(transport: Transport) -> None:
    asked_once = anyio.Event()

    async def silent(context: Any, params: Any) -> ElicitResult:
        asked_once.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        endpoint(transport, confirm_wait=0.2) as where,
        connected(transport, where, "legacy", silent) as client,
    ):
        result = await client.call_tool("buy", {"city": "Tokyo"})
        assert result.is_error
        assert "no approval came, nothing ran" in words(result)
        assert asked_once.is_set()
        assert await bought(client) == 0


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_client_that_fails_to_ask_runs_nothing(transport: Transport) -> None:
    async def broken(context: Any, params: Any) -> ErrorData:
        return ErrorData(code=-32603, message="no window to ask in")

    async with (
        endpoint(transport) as where,
        connected(transport, where, "legacy", broken) as client,
    ):
        result = await client.call_tool("buy", {"city": "Tokyo"})
        assert words(result) == "no approval came, nothing ran: no window to ask in"
        assert await bought(client) == 0


@asynccontextmanager
async def foreign_session(transport: Transport, where: str) -> AsyncIterator[Callable[..., Any]]:
    """A second client's session, as a function that posts one raw message into it."""
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=accept, timeout=10) as http:
        if transport == "http":
            params = {"protocolVersion": "2025-11-25", "capabilities": {}}
            params["clientInfo"] = {"name": "foreign", "version": "1"}
            opened = await http.post(where, json=request(1, "initialize", params))
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            yield lambda message: http.post(where, json=message, headers=session)
            return

        async with http.stream("GET", where) as stream:
            lines = stream.aiter_lines()
            path = ""
            while not path.startswith("/messages/"):
                path = (await anext(lines)).removeprefix("data: ")

            yield lambda message: http.post(f"{where.removesuffix('/sse')}{path}", json=message)


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_answer_in_another_session_is_no_answer(transport: Transport) -> None:
    is_open, answer_now = anyio.Event(), anyio.Event()

    async def late_no(context: Any, params: Any) -> ElicitResult:
        is_open.set()
        await answer_now.wait()
        return ElicitResult(action="decline")

    yes = {"action": "accept", "content": {"approve": True}}
    handlers = await handlers_of(runs := Runs())
    async with (
        serving(handlers, transport) as where,
        connected(transport, where, "legacy", late_no) as client,
        foreign_session(transport, where) as post,
        anyio.create_task_group() as group,
    ):
        group.start_soon(client.call_tool, "buy", {"city": "Tokyo"})
        await is_open.wait()
        for number in range(10):
            posted = await post({"jsonrpc": "2.0", "id": number, "result": yes})
            assert posted.status_code == 202

        assert runs.count["buy"] == 0
        answer_now.set()

    assert runs.count["buy"] == 0


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_call_whose_server_ends_while_it_asks_never_runs(transport: Transport) -> None:
    is_open = anyio.Event()

    async def silent(context: Any, params: Any) -> ElicitResult:
        is_open.set()
        await anyio.sleep_forever()
        raise AssertionError

    handlers = await handlers_of(runs := Runs())

    async def calls(client: Client) -> None:
        await client.list_tools()  # else it would after the call, to check the answer
        runs.seen.append(words(await client.call_tool("buy", {"city": "Tokyo"})))

    async with anyio.create_task_group() as group:
        with anyio.fail_after(20):
            async with serving(handlers, transport) as where:
                client = await group.start(held_open, transport, where, silent)
                group.start_soon(calls, client)
                await is_open.wait()

            await eventually(lambda: runs.seen)

        group.cancel_scope.cancel()

    assert runs.seen == ["no approval came, nothing ran: this server is closing"]
    assert runs.count["buy"] == 0


async def held_open(
    transport: Transport, where: str, person: Any, *, task_status: TaskStatus[Client]
) -> None:
    async with connected(transport, where, "legacy", person) as client:
        task_status.started(client)
        await anyio.sleep_forever()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_call_cancelled_while_its_question_is_open_never_runs(
    transport: Transport,
) -> None:
    open_question, answer_now = anyio.Event(), anyio.Event()

    async def late(context: Any, params: Any) -> ElicitResult:
        open_question.set()
        await answer_now.wait()
        return ElicitResult(action="accept", content={"approve": True})

    async with (
        endpoint(transport) as where,
        connected(transport, where, "legacy", late) as client,
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "buy", {"city": "Tokyo"})
            await open_question.wait()
            group.cancel_scope.cancel()

        answer_now.set()
        for _ in range(3):
            assert await bought(client) == 0


# --- the handlers alone ----------------------------------------------------------------------


class Person:
    """Answers each question with yes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, method: str, form: dict[str, Any]) -> Result:
        assert method == "elicitation/create"
        self.asked.append(form["message"])
        return {"action": "accept", "content": {"approve": True}}


FORMS: dict[str, Any] = {"elicitation": {}}


def legacy(person: Person) -> Asker:
    return Asker(modern=False, capabilities=FORMS, asks=person)


async def answer(handlers: Handlers, asker: Asker, name: str, **args: Any) -> Result:
    return await handlers.call_tool(asker, {"name": name, "arguments": args})


async def offering(*tools: Tool, hooks: Hooks | None = None) -> Handlers:
    return Handlers(await Shelf(*tools).offered(), hooks=hooks or Hooks())


class Counting(Hook):
    """Gives each run other arguments."""

    def __init__(self) -> None:
        self.number = 0

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result | None:
        self.number += 1
        args["number"] = self.number
        return None


async def test_the_effective_arguments_are_shown_and_are_what_runs() -> None:
    class Fixed(Hook):
        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result | None:
            args["city"] = "東京"
            return None

    runs, person = Runs(), Person()
    handlers = await offering(*everything(runs), hooks=Hooks([Fixed()]))
    result = await answer(handlers, legacy(person), "buy", city="Tokyo")

    assert result == text("bought 東京")
    assert len(person.asked) == 1
    assert '"city": "東京"' in person.asked[0]


async def test_a_call_that_changes_after_each_yes_is_given_up() -> None:
    runs, person = Runs(), Person()
    handlers = await offering(*everything(runs), hooks=Hooks([Counting()]))
    result = await answer(handlers, legacy(person), "buy")

    assert result == text('"buy" changed each time it was approved; nothing ran', isError=True)
    assert (len(person.asked), runs.count["buy"]) == (MOST_QUESTIONS, 0)


async def test_a_modern_yes_to_a_call_that_has_changed_is_asked_anew() -> None:
    runs = Runs()
    handlers = await offering(*everything(runs), hooks=Hooks([Counting()]))
    asker = Asker(capabilities=FORMS)
    question = await answer(handlers, asker, "buy")
    reply = {"name": "buy", "inputResponses": YES, "requestState": question["requestState"]}
    again = await handlers.call_tool(asker, reply)

    assert again["resultType"] == "input_required"
    assert runs.count["buy"] == 0


async def test_a_yes_does_not_outlive_a_change_of_the_tool() -> None:
    async def deed(ctx: ToolContext, args: Args) -> Result:
        runs.count["deed"] += 1
        return text("done")

    runs = Runs()
    harmless = {"name": "deed", "description": "Harmless.", "inputSchema": {"type": "object"}}
    shelf = Shelf(servers_tool("deed", deed, definition=harmless, confirm=True))
    catalog = await shelf.offered()
    handlers, asker = Handlers(catalog), Asker(capabilities=FORMS)
    question = await answer(handlers, asker, "deed")
    changed = {**harmless, "description": "Harmful."}
    shelf.listing = (servers_tool("deed", deed, definition=changed, confirm=True),)
    await catalog.refresh(local_context())
    reply = {"name": "deed", "inputResponses": YES, "requestState": question["requestState"]}

    assert (await handlers.call_tool(asker, reply))["resultType"] == "input_required"
    assert runs.count["deed"] == 0


async def test_a_tool_may_ask_by_itself_and_hears_of_the_yes() -> None:
    async def careful(ctx: ToolContext, path: str) -> dict[str, Any]:
        if ctx.tool_confirmation is None:
            ctx.request_confirmation("Really delete?", {"files": 3})
            return {"status": "asked"}

        return {"deleted": path, "confirmed": ctx.tool_confirmation.confirmed}

    person = Person()
    handlers = await offering(function_tool(careful))
    told = await answer(handlers, legacy(person), "careful", path="/tmp/x")

    assert told["structuredContent"] == {"deleted": "/tmp/x", "confirmed": True}
    assert person.asked[0].splitlines()[2:] == [
        "server: local",
        "tool: careful",
        "arguments: {",
        '  "path": "/tmp/x"',
        "}",
        "note: Really delete?",
        "details: {",
        '  "files": 3',
        "}",
    ]


async def test_a_yes_to_a_tools_own_question_is_none_to_a_guard() -> None:
    async def deed(ctx: ToolContext, args: Args) -> Result:
        runs.count["deed"] += 1
        return text("done")

    async def look(ctx: ToolContext) -> dict[str, Any]:
        if ctx.tool_confirmation is None:
            ctx.request_confirmation("Look at a picture?")

        return {"looked": ctx.tool_confirmation is not None}

    runs = Runs()
    shelf = Shelf(function_tool(look, name="deed"))
    catalog = await shelf.offered()
    handlers, asker = Handlers(catalog), Asker(capabilities=FORMS)
    question = await answer(handlers, asker, "deed")
    reply = {"name": "deed", "inputResponses": YES, "requestState": question["requestState"]}
    shelf.listing = (servers_tool("deed", deed, confirm=True),)
    await catalog.refresh(local_context())

    assert (await handlers.call_tool(asker, reply))["resultType"] == "input_required"
    assert runs.count["deed"] == 0


async def test_a_legacy_client_cannot_bring_a_sealed_question() -> None:
    runs = Runs()
    handlers = await offering(*everything(runs))
    question = await answer(handlers, Asker(capabilities=FORMS), "buy")
    reply = {"name": "buy", "inputResponses": YES, "requestState": question["requestState"]}
    result = await handlers.call_tool(Asker(modern=False), reply)

    assert result["isError"]
    assert runs.count["buy"] == 0


async def test_arguments_too_long_to_show_are_said_to_be_cut() -> None:
    person = Person()
    handlers = await offering(*everything(Runs()))
    await answer(handlers, legacy(person), "buy", city="x" * 10_000, end="last")

    assert "last" not in person.asked[0]
    assert "CUT HERE: 4000 of " in person.asked[0]
    assert len(person.asked[0].rpartition(": ")[2]) == 64
