"""A stranger's code that raises a cancellation by itself harms its own call and nothing else."""

from __future__ import annotations

from asyncio import CancelledError, Task, create_task  # noqa: TID251 — as a host program has them
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from bridge.calls.call import Outcome, execute
from bridge.calls.hooks import NO_HOOKS, Hook, Hooks
from bridge.calls.streams import COLLECTED, IN_TURN, LiveStreams, Streams
from bridge.core.content import Args, FunctionCall
from bridge.core.context import ToolContext, local_context
from bridge.errors import ConfirmationRequired, ToolError
from bridge.tools.function import function_tool
from bridge.tools.streaming import streaming_tool
from tests.fakes import CustomTool
from tests.waiting import eventually


@function_tool
async def gives_up() -> None:
    raise CancelledError


@function_tool
def gives_up_in_a_thread() -> None:
    raise CancelledError


@function_tool
async def awaits_what_was_cancelled() -> None:
    async def nothing() -> None:
        pass

    other = create_task(nothing())
    other.cancel()
    await other


@streaming_tool
async def streams_and_gives_up() -> Any:
    yield "one"
    raise CancelledError


async def raises(*given: Any) -> Any:
    raise CancelledError


class Doing(CustomTool):
    """A stranger's tool that does what it is given."""

    def __init__(self, name: str, work: Callable[..., Any]) -> None:
        super().__init__(name)
        self.work = work

    async def run(self, ctx: ToolContext, args: Args) -> Any:
        return await self.work()


BARE = Doing("bare", raises)
FINE = CustomTool("fine")
OFFERED = (
    gives_up,
    gives_up_in_a_thread,
    awaits_what_was_cancelled,
    streams_and_gives_up,
    BARE,
    FINE,
)
TABLE: dict[str, Any] = {tool.name: tool for tool in OFFERED}


async def called(*names: str, hooks: Hooks = NO_HOOKS, streams: Streams = COLLECTED) -> Any:
    asked = [FunctionCall(f"c{n}", name, {}) for n, name in enumerate(names)]
    return await execute(asked, TABLE, local_context(), hooks=hooks, streams=streams)


@pytest.mark.parametrize("name", [name for name in TABLE if name != "fine"])
@pytest.mark.parametrize("hooks", [NO_HOOKS, Hooks([Hook()])])
async def test_a_tool_that_cancels_itself_fails_alone(name: str, hooks: Hooks) -> None:
    [alone] = await called(name, hooks=hooks)
    outcomes = await called("fine", name, "fine", hooks=hooks)

    assert type(alone.error) is ToolError
    assert "broke off: it raised CancelledError" in alone.response["error"]
    assert [o.response for o in outcomes] == [{"ok": True}, alone.response, {"ok": True}]


@pytest.mark.parametrize("stage", ["before_tool", "on_tool_error", "after_tool"])
async def test_a_hook_that_cancels_itself_fails_its_call(stage: str) -> None:
    hook: Hook = type("Broken", (Hook,), {stage: lambda self, *given: raises()})()
    name = "bare" if stage == "on_tool_error" else "fine"

    [outcome] = await called(name, hooks=Hooks([hook]))

    assert type(outcome.error) is ToolError
    assert "the hook" in str(outcome.error)
    assert "broke off: it raised CancelledError" in str(outcome.error)


async def test_a_hook_hears_of_a_tool_that_cancelled_itself_as_of_any_failure() -> None:
    class Forgiving(Hook):
        async def on_tool_error(self, *given: Any) -> dict[str, Any]:
            return {"instead": type(given[-1]).__name__}

    [outcome] = await called("gives_up", hooks=Hooks([Forgiving()]))

    assert outcome.response == {"instead": "ToolError"}


def cancels(name: str, args: Args) -> bool:
    raise CancelledError


async def cancels_later(name: str, args: Args) -> bool:
    raise CancelledError


@pytest.mark.parametrize("provider", [cancels, cancels_later])
async def test_a_provider_that_cancels_itself_asks(provider: Any) -> None:
    @function_tool(require_confirmation=provider)
    async def pay() -> dict[str, bool]:
        return {"paid": True}

    asked = [FunctionCall("c", "pay", {})]
    [outcome] = await execute(asked, {"pay": pay}, local_context())

    assert isinstance(outcome.error, ConfirmationRequired)
    assert list(outcome.actions.requested_tool_confirmations) == ["c"]


async def test_a_stream_that_cancels_itself_leaves_the_live_session() -> None:
    sent: list[str] = []

    async def send(text: str) -> None:
        sent.append(text)

    async with anyio.create_task_group() as session:
        streams = LiveStreams(session, send)
        await called("streams_and_gives_up", streams=streams)
        await eventually(lambda: not streams.running)
        await called("streams_and_gives_up", streams=streams)
        await eventually(lambda: len(sent) == 2)
        assert not session.cancel_scope.cancel_called
        await anyio.lowlevel.checkpoint()

    assert sent == ["Function streams_and_gives_up returned: one"] * 2


async def test_in_a_turn_too_a_stream_that_cancels_itself_fails_alone() -> None:
    [outcome] = await called("streams_and_gives_up", streams=IN_TURN)

    assert type(outcome.error) is ToolError


class Waiting:
    """A call that has begun and waits, until it is cancelled."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.outcomes: list[Outcome] = []

    async def wait(self, *given: Any) -> Any:
        self.begun.set()
        await anyio.sleep_forever()

    async def by_tool(self) -> None:
        self.outcomes += await execute(
            [FunctionCall("c", "wait", {})],
            {"wait": Doing("wait", self.wait)},
            local_context(),
        )

    async def by_function(self) -> None:
        async def wait() -> None:
            await self.wait()

        self.outcomes += await execute(
            [FunctionCall("c", "wait", {})], {"wait": function_tool(wait)}, local_context()
        )

    async def by_hook(self) -> None:
        hook: Hook = type("Slow", (Hook,), {"before_tool": lambda own, *given: self.wait()})()
        self.outcomes += await called("fine", hooks=Hooks([hook]))

    async def by_provider(self) -> None:
        async def wait(name: str, args: Args) -> bool:
            await self.wait()
            return False

        @function_tool(require_confirmation=wait)
        async def pay() -> None:
            return None

        self.outcomes += await execute(
            [FunctionCall("c", "pay", {})], {"pay": pay}, local_context()
        )


WAYS: list[Callable[[Waiting], Any]] = [
    Waiting.by_tool,
    Waiting.by_function,
    Waiting.by_hook,
    Waiting.by_provider,
]


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancelled_scope_still_ends_the_call(way: Callable[[Waiting], Any]) -> None:
    waiting = Waiting()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(way, waiting)
        await waiting.begun.wait()
        tasks.cancel_scope.cancel()

    assert tasks.cancel_scope.cancelled_caught
    assert waiting.outcomes == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_task_that_its_host_cancels_still_ends(way: Callable[[Waiting], Any]) -> None:
    waiting = Waiting()
    task: Task[None] = create_task(way(waiting))
    await waiting.begun.wait()

    task.cancel()
    with pytest.raises(CancelledError):
        await task

    assert waiting.outcomes == []
