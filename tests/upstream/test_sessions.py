"""Who shares an upstream's session, who has one of their own, and when that ends."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.content import Result
from bridge.core.context import ToolContext, local_context
from bridge.errors import ConfigError, Overloaded, UpstreamUnavailable
from bridge.upstream.channel import Limits, Options
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.protocol import Era
from bridge.upstream.sessions import Policy, Sessions
from bridge.upstream.toolset import MCPToolset
from tests import nursery
from tests.processes import is_alive
from tests.upstream.clients import FORM, Client, Json
from tests.waiting import eventually

ASKING = str(Path(__file__).parent.parent / "servers" / "asking.py")
ASK = ["ask", "elicitation/create", {"message": "?"}]
SAMPLING: Json = {"sampling": {"tools": {}}}


def connection(era: str = "legacy", known: Era | None = None) -> Connection:
    command = Command(tuple(nursery.server(ASKING, era)))
    return Connection("up", command, limits=Limits(close_grace=0.5), era=known)


@asynccontextmanager
async def upstream(
    policy: Policy = "auto", era: str = "legacy", **bounds: Any
) -> AsyncIterator[Sessions]:
    """A server that was connected once, as a listing does."""
    sessions = Sessions(connection(era), policy, **bounds)
    try:
        await sessions.shared.link()
        yield sessions
    finally:
        await sessions.aclose()
        await sessions.shared.aclose()


async def call(sessions: Sessions, caller: Client | None, *steps: list[Any]) -> Json:
    """What the server tells: its process, what it got and was told since it began."""
    params = {"name": "do", "arguments": {"do": list(steps)}}
    options = Options(60, caller=caller)
    answer: Result = await sessions.of(caller).request("tools/call", params, options)
    told: Json = answer["structuredContent"]
    return told


def declared(told: Json) -> Json:
    """The capabilities that the server's session began with."""
    (greeting,) = (one for one in told["told"] if one["method"] == "initialize")
    capabilities: Json = greeting["params"]["capabilities"]
    return capabilities


async def test_client_that_can_be_asked_has_a_legacy_session_of_its_own() -> None:
    one, other = Client("a"), Client("b", capabilities={**SAMPLING, "experimental": {"x": {}}})
    async with upstream() as sessions:
        shared = await call(sessions, None)
        first = await call(sessions, one, ASK)
        second = await call(sessions, other)
        again = await call(sessions, Client("a"))

    assert len({told["pid"] for told in (shared, first, second)}) == 3
    assert again["pid"] == first["pid"]
    assert [declared(told) for told in (shared, first, second)] == [{}, FORM, SAMPLING]
    assert one.asked == [("elicitation/create", {"message": "?"})]
    assert first["replies"][0]["result"]["action"] == "accept"


async def test_capabilities_decide_beside_the_key() -> None:
    async with upstream() as sessions:
        first = await call(sessions, Client("a"))
        second = await call(sessions, Client("a", capabilities=SAMPLING))

    assert first["pid"] != second["pid"]


async def test_extensions_are_declared_to_a_session_of_a_client_and_tasks_are_not() -> None:
    ui = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
    extensions = {**ui, "io.modelcontextprotocol/tasks": {}}
    client = Client(modern=True, capabilities={**FORM, "extensions": extensions, "tasks": {}})
    async with upstream() as sessions:
        assert declared(await call(sessions, client)) == {**FORM, "extensions": ui}


async def test_what_a_task_has_come_to_is_told_with_whose_session_told_it() -> None:
    one, nobody = Client("a"), Client("b", capabilities={})
    status = {"taskId": "t", "status": "working", "unknown": [None]}
    step = ["tell", "notifications/tasks/status", status]
    heard: list[tuple[str, Json]] = []
    async with upstream() as sessions:
        sessions.on_task_status.append(lambda key, params: heard.append((key, params)))
        sessions.shared.on_news.append(lambda method, params: heard.append((method, params)))
        await call(sessions, one, step)
        await call(sessions, nobody, step)
        apart = [sessions.is_apart(client) for client in (one, nobody)]

    assert heard == [("a", status), ("notifications/tasks/status", status)]
    assert (apart, one.told, nobody.told) == ([True, False], [], [])


@pytest.mark.parametrize("caller", [None, Client(capabilities={}), Client(capabilities={"x": {}})])
async def test_who_cannot_be_asked_shares_the_session(caller: Client | None) -> None:
    async with upstream() as sessions:
        assert sessions.of(caller) is sessions.shared
        assert not sessions.may_ask(caller)


async def test_modern_server_has_one_connection_for_all() -> None:
    async with upstream(era="modern") as sessions:
        assert sessions.of(Client()) is sessions.shared
        assert (sessions.may_ask(Client()), sessions.policy_chosen) == (False, "shared")


async def test_client_that_can_be_asked_is_apart_while_the_era_is_unknown() -> None:
    sessions = Sessions(connection())
    assert (sessions.may_ask(Client()), sessions.policy_chosen) == (True, "shared")
    told = await call(sessions, Client())
    await sessions.aclose()

    assert declared(told) == FORM


@pytest.mark.parametrize(
    ("policy", "era", "chosen", "may_ask", "is_shared"),
    [
        ("auto", "legacy", "per-client", True, False),
        ("shared", "legacy", "shared", False, True),
        ("per-client", "legacy", "per-client", True, False),
        ("auto", "modern", "shared", False, True),
        ("shared", "modern", "shared", False, True),
        ("per-client", "modern", "per-client", False, False),
    ],
)
def test_policy_decides(
    policy: Policy, era: Era, chosen: str, may_ask: bool, is_shared: bool
) -> None:
    sessions = Sessions(connection(era, era), policy)

    assert sessions.policy_chosen == chosen
    assert sessions.may_ask(Client()) is may_ask
    assert (sessions.of(Client()) is sessions.shared) is is_shared
    assert sessions.of(None) is sessions.shared


async def test_nothing_is_declared_on_a_session_that_is_shared_by_wish() -> None:
    async with upstream("shared") as sessions:
        assert declared(await call(sessions, Client())) == {}


async def test_client_without_capabilities_is_apart_by_wish() -> None:
    async with upstream("per-client") as sessions:
        client = Client(capabilities={})
        told, shared = await call(sessions, client), await call(sessions, None)

    assert (told["pid"] != shared["pid"], declared(told)) == (True, {})


async def test_two_modern_calls_of_one_key_never_share_a_session_at_a_time() -> None:
    async with upstream() as sessions, anyio.create_task_group() as tasks:
        first = Client("anyone", modern=True)
        tasks.start_soon(call, sessions, first, ["wait", "end"])
        await eventually(lambda: len(sessions) == 1)
        second = await call(sessions, Client("anyone", modern=True))
        third = await call(sessions, Client("anyone", modern=True))
        assert (second["pid"], len(sessions)) == (third["pid"], 2)
        tasks.cancel_scope.cancel()


async def test_legacy_calls_of_one_client_share_its_session() -> None:
    async with upstream() as sessions, anyio.create_task_group() as tasks:
        tasks.start_soon(call, sessions, Client(), ["wait", "end"])
        await eventually(lambda: len(sessions) == 1)
        await call(sessions, Client())
        assert len(sessions) == 1
        tasks.cancel_scope.cancel()


async def test_client_that_leaves_takes_its_sessions_along() -> None:
    async with upstream() as sessions:
        gone = await call(sessions, Client("a"))
        more = await call(sessions, Client("a", capabilities=SAMPLING))
        stays = await call(sessions, Client("b"))
        held = sessions.of(Client("a"))
        await sessions.leave("a")
        await sessions.leave("nobody")

        await eventually(lambda: not any(is_alive(told["pid"]) for told in (gone, more)))
        assert is_alive(stays["pid"])
        assert len(sessions) == 1
        with pytest.raises(UpstreamUnavailable, match="is closed"):
            await held.request("tools/list", {})

        assert (await call(sessions, Client("a")))["pid"] != gone["pid"]


async def test_session_that_nobody_uses_is_closed_and_made_anew_when_needed() -> None:
    async with upstream(idle_seconds=0.3) as sessions:
        client = Client()
        told = await call(sessions, client)
        await eventually(lambda: not is_alive(told["pid"]))
        assert len(sessions) == 0
        assert (await call(sessions, client))["pid"] != told["pid"]


async def test_session_with_a_call_under_way_is_not_idle() -> None:
    async def thinks(method: str, params: Json) -> Result:
        await anyio.sleep(1.0)
        return {}

    async with upstream(idle_seconds=0.2) as sessions:
        told = await call(sessions, Client(answer=thinks), ASK)

    assert told["replies"] == [{"result": {}}]


async def test_sessions_have_a_bound_that_is_named() -> None:
    async with upstream(most=2) as sessions:
        await call(sessions, Client("a"))
        await call(sessions, Client("b"))
        with pytest.raises(Overloaded, match='upstream "up": 2 clients have a session there'):
            await call(sessions, Client("c"))

        await call(sessions, Client("a"))
        await call(sessions, None)
        await sessions.leave("a")
        await call(sessions, Client("c"))


async def test_session_that_never_came_to_be_holds_no_place_for_ever() -> None:
    nothing = Connection("up", Command(("/nonexistent/program",)), era="legacy")
    sessions = Sessions(nothing, most=1, idle_seconds=0.1)
    with pytest.raises(UpstreamUnavailable):
        await call(sessions, Client("a"))

    with pytest.raises(Overloaded):
        sessions.of(Client("b"))

    assert await eventually(lambda: _made(sessions))
    await sessions.aclose()


def _made(sessions: Sessions) -> bool:
    try:
        return sessions.of(Client("b")) is not sessions.shared
    except Overloaded:
        return False


async def test_question_outside_calls_is_the_sessions_clients() -> None:
    first, latest = Client(), Client()
    async with upstream() as sessions:
        await call(sessions, first)
        session = sessions.of(latest)
        params = {"name": "do", "arguments": {"do": [ASK]}}
        await session.request("tools/call", params)  # for nobody in particular

    assert (first.asked, latest.asked) == ([], [("elicitation/create", {"message": "?"})])


async def test_news_of_a_client_reach_its_own_sessions_alone() -> None:
    news = "notifications/roots/list_changed"
    roots: Json = {"roots": {"listChanged": True}}
    async with upstream() as sessions:
        one, other = Client("a", capabilities=roots), Client("b", capabilities=roots)
        await call(sessions, one)
        await call(sessions, other)
        await sessions.tell("a", news, {})
        await sessions.tell("nobody", news, {})
        heard = [await call(sessions, who) for who in (one, other, None)]

    told = [[one["method"] for one in some["told"]] for some in heard]
    assert [news in methods for methods in told] == [True, False, False]


async def test_closing_ends_every_clients_session_and_not_the_shared_one() -> None:
    async with upstream() as sessions:
        mine, shared = await call(sessions, Client()), await call(sessions, None)
        await sessions.aclose()
        await sessions.aclose()
        await eventually(lambda: not is_alive(mine["pid"]))
        assert is_alive(shared["pid"])


async def test_copy_begins_without_anything_alive() -> None:
    async with upstream("per-client", most=7, idle_seconds=8.0) as sessions:
        await call(sessions, Client())
        copy: Sessions = pickle.loads(pickle.dumps(sessions))

    kept = (copy.policy, copy.most, copy.idle_seconds, copy.shared.name, len(copy))
    assert kept == ("per-client", 7, 8.0, "up", 0)


async def test_toolset_says_who_shares_and_closes_its_clients_sessions() -> None:
    command = nursery.server(ASKING, "legacy")
    async with MCPToolset(command, limits=Limits(close_grace=0.5)) as toolset:
        (tool,) = await toolset.tools(local_context())
        ctx = ToolContext(local_context(), caller=Client())
        told = (await tool.run(ctx, {"do": [ASK]}))["output"]
        assert toolset.status().session == "per-client"
        assert is_alive(told["pid"])

    assert told["replies"] == [{"result": await Client().answer("elicitation/create", {})}]
    await eventually(lambda: not is_alive(told["pid"]))


def test_toolset_refuses_a_policy_that_it_does_not_know() -> None:
    unknown: Any = "x"
    with pytest.raises(ConfigError, match="session is 'auto' or 'shared' or 'per-client', not 'x'"):
        MCPToolset(["x"], session=unknown)
