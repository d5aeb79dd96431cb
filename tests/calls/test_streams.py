"""Tools that answer in pieces: joined in a turn, sent one by one in a live session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from bridge.calls.call import Outcome, execute
from bridge.calls.hooks import Hook, Hooks
from bridge.calls.streams import COLLECTED, IN_TURN, PENDING, LiveStreams, Streams
from bridge.core.content import FunctionCall
from bridge.core.context import ToolContext, local_context
from bridge.errors import ConfirmationRequired
from bridge.tools.streaming import streaming_tool
from tests.fakes import CustomTool
from tests.waiting import eventually


class Pieces:
    """A stranger's tool that streams what it is given; an exception is raised."""

    description = "Streams."
    is_long_running = False

    def __init__(self, *gives: Any, name: str = "pieces") -> None:
        self.name = name
        self.gives = gives
        self.taken = 0
        self.closed = False

    def declaration(self) -> None:
        return None

    async def run_stream(self, ctx: ToolContext, args: Any) -> AsyncIterator[Any]:
        try:
            for each in self.gives:
                self.taken += 1
                if isinstance(each, Exception):
                    raise each

                yield each
        finally:
            self.closed = True

    async def run(self, ctx: ToolContext, args: Any) -> Any:
        raise AssertionError("a tool that streams is never run")


async def outcome(tool: Any, streams: Streams = COLLECTED, **options: Any) -> Outcome:
    made = FunctionCall("c", tool.name, {})
    (only,) = await execute([made], {tool.name: tool}, local_context(), streams=streams, **options)
    return only


@pytest.mark.spec("9.1")
@pytest.mark.spec("9.5")
@pytest.mark.spec("system-38")
@pytest.mark.parametrize(
    ("gives", "joined"),
    [
        (("chunk 0", "chunk 1", "chunk 2"), "chunk 0chunk 1chunk 2"),
        (("Tokyo 22°C\n", "Tokyo sunny\n"), "Tokyo 22°C\nTokyo sunny\n"),
        ((), ""),
    ],
)
async def test_pieces_are_joined_by_nothing(gives: tuple[str, ...], joined: str) -> None:
    tool = Pieces(*gives)

    assert (await outcome(tool)).response == {"result": joined}
    assert tool.closed


@pytest.mark.spec("9.6")
async def test_what_was_streamed_before_a_failure_is_lost() -> None:
    tool = Pieces("one", OSError("boom"), "two")
    result = await outcome(tool)

    assert result.response == {"error": "boom"}
    assert (tool.taken, tool.closed) == (2, True)


async def test_a_piece_that_is_no_text_is_a_failure() -> None:
    tool = Pieces("one", 2)

    assert (await outcome(tool)).response == {
        "error": '"pieces" streamed a int; a streaming tool yields text'
    }
    assert tool.closed


async def test_there_is_a_bound_to_what_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.calls.streams.LONGEST_TEXT", 5)
    tool = Pieces(*["abc"] * 100)

    assert "more than 5 characters" in str((await outcome(tool)).error)
    assert (tool.taken, tool.closed) == (2, True)


@pytest.mark.spec("9.7")
@pytest.mark.spec("system-38")
async def test_no_hook_sees_a_stream() -> None:
    log: list[str] = []

    class Noting(Hook):
        async def before_tool(self, *given: Any) -> None:
            log.append("before")

        async def on_tool_error(self, *given: Any) -> None:
            log.append("error")

        async def after_tool(self, *given: Any) -> None:
            log.append("after")

    for tool in (Pieces("a"), Pieces(OSError("b"))):
        await outcome(tool, hooks=Hooks([Noting()]))

    assert log == []


async def test_a_stream_that_waits_for_a_person_says_so() -> None:
    @streaming_tool(require_confirmation=True)
    async def guarded() -> AsyncIterator[str]:
        yield "never"

    result = await outcome(guarded, IN_TURN)

    assert isinstance(result.error, ConfirmationRequired)
    assert list(result.actions.requested_tool_confirmations) == ["c"]
    assert result.actions.skip_summarization


async def test_outside_of_an_agent_stop_streaming_is_a_name_like_any_other() -> None:
    tool = CustomTool("stop_streaming", answer={"mine": True})

    assert (await outcome(tool)).response == {"mine": True}


@pytest.mark.spec("9.4")
@pytest.mark.parametrize("named", [{"function_name": "pieces"}, {"function_name": 3}, {}])
async def test_in_a_turn_there_is_nothing_to_stop(named: dict[str, Any]) -> None:
    stop = FunctionCall("s", "stop_streaming", named)
    tools = {"stop_streaming": CustomTool("stop_streaming"), "pieces": Pieces()}
    (result,) = await execute([stop], tools, local_context(), streams=IN_TURN)

    name = "pieces" if named.get("function_name") == "pieces" else ""
    assert result.response == {"status": f"No streaming function named {name} is running."}
    assert result.error is None


# --- Live


class Live:
    """A live session's streams, and what they sent."""

    def __init__(self, tasks: Any) -> None:
        self.sent: list[str] = []
        self.fails = False
        self.streams = LiveStreams(tasks, self._send)

    async def _send(self, text: str) -> None:
        if self.fails:
            raise OSError("the session is gone")

        self.sent.append(text)

    async def call(self, tool: Any, name: str = "", call_id: str = "c", **args: Any) -> Outcome:
        made = FunctionCall(call_id, name or tool.name, args)
        tools = {} if tool is None else {tool.name: tool}
        (only,) = await execute([made], tools, local_context(), streams=self.streams)
        return only


@pytest.mark.spec("9.2")
@pytest.mark.spec("system-39")
async def test_live_the_answer_is_pending_and_every_piece_is_sent_by_itself() -> None:
    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        tool = Pieces("chunk 0", "chunk 1", "chunk 2", name="test_stream")
        result = await live.call(tool)
        assert result.response == {"status": PENDING}
        assert live.streams.running == {"test_stream": ("c",)}

    assert live.sent == [f"Function test_stream returned: chunk {n}" for n in range(3)]
    assert (live.streams.running, tool.closed) == ({}, True)


def endless(ended: list[str]) -> Any:
    @streaming_tool
    async def count_forever(ctx: ToolContext) -> AsyncIterator[str]:
        try:
            yield "started"
            await anyio.sleep_forever()
        finally:
            ended.append(ctx.function_call_id)

    return count_forever


@pytest.mark.spec("9.3")
@pytest.mark.spec("system-40")
async def test_one_stop_ends_every_instance_of_a_name_and_no_other() -> None:
    ended: list[str] = []
    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        tool = endless(ended)
        for call_id in ("a", "b"):
            await live.call(tool, call_id=call_id)

        other = endless(ended).relabelled("other")
        await live.call(other, call_id="o")
        await eventually(lambda: len(live.sent) == 3)
        assert live.streams.running == {"count_forever": ("a", "b"), "other": ("o",)}

        stopped = await live.call(None, "stop_streaming", function_name="count_forever")
        assert stopped.response == {"status": "Stopped every running instance of count_forever."}
        assert live.streams.running == {"other": ("o",)}
        await eventually(lambda: sorted(ended) == ["a", "b"])

        again = await live.call(None, "stop_streaming", function_name="count_forever")
        assert again.response == {"status": "No streaming function named count_forever is running."}
        await live.call(None, "stop_streaming", function_name="other")


@pytest.mark.spec("system-40")
async def test_a_tool_that_does_not_heed_being_stopped_sends_nothing_more() -> None:
    go_on = anyio.Event()
    ended: list[str] = []

    class Stubborn(Pieces):
        async def run_stream(self, ctx: ToolContext, args: Any) -> AsyncIterator[Any]:
            yield "first"
            with anyio.CancelScope(shield=True):
                await go_on.wait()
            ended.append("went on")
            yield "second"

    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        await live.call(Stubborn(name="stubborn"))
        await eventually(lambda: live.sent)
        await live.call(None, "stop_streaming", function_name="stubborn")
        go_on.set()

    assert live.sent == ["Function stubborn returned: first"]
    assert ended == ["went on"]


@pytest.mark.parametrize("break_it", ["tool", "send", "type"])
async def test_a_stream_that_fails_ends_alone_and_tells_the_model_nothing(break_it: str) -> None:
    gives: dict[str, tuple[Any, ...]] = {
        "tool": (OSError("boom"),),
        "send": ("one", "two"),
        "type": (2,),
    }
    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        live.fails = break_it == "send"
        tool = Pieces(*gives[break_it])
        assert (await live.call(tool)).response == {"status": PENDING}

    assert (live.sent, live.streams.running, tool.taken, tool.closed) == ([], {}, 1, True)


async def test_live_a_stream_passes_its_gate_before_it_is_pending() -> None:
    @streaming_tool(require_confirmation=True)
    async def guarded() -> AsyncIterator[str]:
        yield "never"

    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        result = await live.call(guarded)
        assert isinstance(result.error, ConfirmationRequired)
        assert list(result.actions.requested_tool_confirmations) == ["c"]
        assert live.streams.running == {}


async def test_a_question_that_is_asked_while_streaming_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @streaming_tool
    async def late(ctx: ToolContext) -> AsyncIterator[str]:
        ctx.request_confirmation("Sure?")
        yield "asked"

    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        await live.call(late)

    assert "nobody is asked" in caplog.text


async def test_the_end_of_the_session_ends_its_streams() -> None:
    ended: list[str] = []
    async with anyio.create_task_group() as tasks:
        live = Live(tasks)
        await live.call(endless(ended))
        await eventually(lambda: live.sent)
        tasks.cancel_scope.cancel()

    assert (ended, live.streams.running) == (["c"], {})
