"""Every `tools/call` is told of once, with what became of it."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Any

import anyio
import pytest

from bridge.calls.observing import CallRecord, Observers
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.rpc import RpcError
from bridge.downstream.asker import Asker
from bridge.downstream.jsonrpc import InvalidParams
from bridge.downstream.observed import LONGEST_NAME, ObservedHandlers
from bridge.errors import (
    InvalidArguments,
    OutcomeUnknown,
    Overloaded,
    ToolError,
    UpstreamUnavailable,
)
from tests.downstream.fronts import ERAS, answering, connected, handlers_of, serving
from tests.downstream.offer import Runs, Shelf, everything, servers_tool, text
from tests.waiting import eventually


class Kept:
    """An observer with a memory."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def called(self, record: CallRecord) -> None:
        self.records.append(record)

    @property
    def timeless(self) -> list[CallRecord]:
        """The records, without when it was and how long it took."""
        return [record._replace(when=0, seconds=0) for record in self.records]

    @property
    def last(self) -> CallRecord:
        """The one record."""
        [record] = self.timeless
        return record


def record(tool: str, kind: Any, **more: Any) -> CallRecord:
    """What is told of a call by nobody in particular, of a tool of the stand-in server's."""
    told: dict[str, Any] = {"upstream": "stand-in", "own_name": tool, "arguments": {}, **more}
    return CallRecord(0, 0, "local", told.pop("session", ""), tool, kind=kind, **told)


async def watched(runs: Runs | None = None, *more: Any) -> tuple[ObservedHandlers, Kept]:
    kept = Kept()
    catalog = await Shelf(*everything(runs or Runs()), *more).offered()
    return ObservedHandlers(Observers([kept]), catalog, name="tests", version="1"), kept


async def call(
    handlers: ObservedHandlers, name: str, asker: Asker | None = None, **args: Any
) -> Result:
    asker = asker or Asker(modern=False)
    return await handlers.call_tool(asker, {"name": name, "arguments": args})


async def test_a_call_is_told_of_with_who_asked_what_and_how_long_it_took() -> None:
    handlers, kept = await watched()
    before = time.time()

    await call(handlers, "add", Asker("token:1", "conversation", modern=False), a=1, b=2)

    [told] = kept.records
    assert before <= told.when <= time.time()
    assert 0 < told.seconds < time.time() - before + 1
    mark = hashlib.sha256(b"conversation").hexdigest()[:16]
    expected = CallRecord(
        0, 0, "token:1", mark, "add", "local", "add", {"a": 1, "b": 2}, "ok", None, 0, False, None
    )
    assert kept.last == expected


async def test_a_renamed_tool_is_told_of_with_both_names() -> None:
    async def answer(ctx: ToolContext, args: Args) -> Result:
        return text("yes")

    tool = replace(servers_tool("own", answer), name="offered")
    handlers, kept = await watched(None, tool)

    await call(handlers, "offered")

    assert kept.last == record("offered", "ok", own_name="own")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UpstreamUnavailable("gone"), "unavailable"),
        (Overloaded("too many"), "unavailable"),
        (OutcomeUnknown("sent"), "unknown"),
        (InvalidArguments("no"), "tool_error"),
        (ToolError("no"), "tool_error"),
        (KeyError("a mistake"), "tool_error"),
    ],
)
async def test_a_failure_is_told_of_as_what_it_means_for_the_caller(
    error: Exception, kind: str
) -> None:
    async def fail(ctx: ToolContext, args: Args) -> Result:
        raise error

    handlers, kept = await watched(None, servers_tool("failing", fail))

    answer = await call(handlers, "failing")

    assert answer["isError"]
    assert kept.last == record("failing", kind)


async def test_an_answer_that_says_it_is_an_error_is_told_of_as_one() -> None:
    handlers, kept = await watched()

    await call(handlers, "odd")

    assert kept.last == record("odd", "tool_error")


async def test_a_json_rpc_error_is_told_of_with_its_code() -> None:
    handlers, kept = await watched()

    with pytest.raises(RpcError):
        await call(handlers, "broken")

    assert kept.last == record("broken", "error", code=-32050)


async def test_a_name_that_is_not_offered_is_told_of_as_no_tool_and_not_at_any_length() -> None:
    handlers, kept = await watched()

    with pytest.raises(InvalidParams):
        await call(handlers, "x" * 100_000)

    assert kept.last == record("x" * LONGEST_NAME, "error", upstream="", own_name="", code=-32602)


@pytest.mark.parametrize("params", [{}, {"name": 1}, {"name": "add", "arguments": [1]}])
async def test_what_is_no_call_is_told_of_without_arguments(params: dict[str, Any]) -> None:
    handlers, kept = await watched()

    with pytest.raises(InvalidParams):
        await handlers.call_tool(Asker(), params)

    assert (kept.last.kind, kept.last.code, kept.last.arguments) == ("error", -32602, {})


async def test_a_call_that_its_client_gives_up_is_told_of_as_cancelled() -> None:
    runs = Runs()
    handlers, kept = await watched(runs)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, handlers, "slow")
        await runs.started.wait()
        tasks.cancel_scope.cancel()

    assert kept.last == record("slow", "cancelled")


async def test_calls_at_once_are_not_mixed_up() -> None:
    runs = Runs()
    handlers, kept = await watched(runs)
    asker = Asker(modern=False)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, handlers, "until", asker)
        await runs.started.wait()
        await call(handlers, "odd", asker)
        runs.go_on.set()

    assert kept.timeless == [record("odd", "tool_error"), record("until", "ok")]


async def test_a_tool_that_asks_nobody_is_told_of_as_refused() -> None:
    handlers, kept = await watched()

    await call(handlers, "buy")

    assert kept.last == record("buy", "refused", questions=1)


@pytest.mark.parametrize("era", ERAS)
async def test_a_yes_is_told_of_with_what_it_names(era: str) -> None:
    handlers, kept = await watched()
    person = answering("accept", approve=True)

    async with serving(handlers) as url, connected("http", url, era, person) as client:
        result = await client.call_tool("buy", {"city": "Oslo"})
        assert not result.is_error
        told = await eventually(lambda: kept.timeless)

    assert told[-1].approval is not None
    assert len(told[-1].approval) == 64
    args = {"city": "Oslo"}
    ran = told[-1]._replace(approval=None, session="")
    if era == "legacy":
        assert [ran] == [record("buy", "ok", questions=1, approved=True, arguments=args)]
        assert len(told[0].session) == 16
    else:
        assert told[0] == record("buy", "asked", questions=1, arguments=args)
        assert ran == record("buy", "ok", approved=True, arguments=args)


@pytest.mark.parametrize("era", ERAS)
async def test_a_no_is_told_of_as_refused(era: str) -> None:
    handlers, kept = await watched()

    no = answering("decline")
    async with serving(handlers) as url, connected("http", url, era, no) as client:
        result = await client.call_tool("buy", {"city": "Oslo"})
        assert result.is_error

    kinds = [told.kind for told in kept.records]
    assert kinds == (["refused"] if era == "legacy" else ["asked", "refused"])
    assert [told.approved for told in kept.records] == [False] * len(kinds)


async def test_an_answer_is_the_same_whether_anybody_looks_on_or_not() -> None:
    handlers, _ = await watched()
    alone = await handlers_of(Runs())
    params = {"name": "rich", "arguments": {}}

    assert await handlers.call_tool(Asker(), params) == await alone.call_tool(Asker(), params)
