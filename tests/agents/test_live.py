"""Live conversations: both sides speak at any time, and tools run beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.agents.live import InMemoryLiveModel, LiveModel
from bridge.agents.live_session import LiveSession
from bridge.agents.llm_agent import Agent
from bridge.agents.plugin import Plugin
from bridge.core.content import Content
from bridge.core.context import Context, ToolContext
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError, ToolsetError
from bridge.models.scripted import ScriptedModel
from bridge.tools.function import function_tool
from bridge.tools.streaming import streaming_tool
from tests.agents.talk import (
    CONFIRMATION,
    Talk,
    brief,
    briefs,
    call,
    content,
    declared,
    reply,
    text,
    told,
)
from tests.agents.tools import Probe
from tests.fakes import ScriptedToolset
from tests.waiting import eventually


class Phone(Talk):
    """A live conversation whose events are taken as they come, into `events`."""

    def __init__(self, *tools: Any, **options: Any) -> None:
        self.model = InMemoryLiveModel()
        agent = Agent("w", self.model, tools=tools, **options.pop("agent", {}))
        super().__init__(agent, **options)
        self.events: list[Event] = []
        self.ended = anyio.Event()

    @asynccontextmanager
    async def call_up(self) -> AsyncIterator[LiveSession]:
        async with self.runner.live() as session, anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, session)
            yield session
            tasks.cancel_scope.cancel()

    async def heard(self, number: int) -> list[list[Any]]:
        """The events so far, once there are that many."""
        await eventually(lambda: len(self.events) >= number)
        return briefs(self.events)

    async def _listen(self, session: LiveSession) -> None:
        async for event in session.events():
            self.events.append(event)

        self.ended.set()


async def test_what_is_said_by_either_side_reaches_the_other_and_is_stored() -> None:
    phone = Phone()
    async with phone.call_up() as session:
        await session.send("Hello?")
        assert await phone.model.hear() == text("Hello?")
        await phone.model.say("Hello!")
        await phone.heard(1)

    assert [(event.author, brief(event)) for event in (await phone.session()).events] == [
        ("user", ["Hello?"]),
        ("w", ["Hello!"]),
    ]
    assert isinstance(phone.model, LiveModel)


async def test_a_live_model_is_connected_with_what_was_said_before() -> None:
    phone = Phone(Probe(), agent={"instruction": "Be brief."})
    session = await phone.session()
    for author, said in (("user", text("Hi")), ("w", text("Hello.", "model"))):
        await phone.runner.sessions.append_event(session, Event(author=author, content=said))

    async with phone.call_up():
        await eventually(lambda: phone.model.requests)

    (request,) = phone.model.requests
    assert told(request)[:2] == [["Hi"], ["Hello."]]
    assert declared(request) == ["work"]


async def test_a_live_conversation_is_not_handed_over() -> None:
    phone = Phone(agent={"sub_agents": [Agent("helper")]})
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)

    assert declared(phone.model.requests[0]) == []


async def test_tools_are_run_and_their_answers_told_to_the_model() -> None:
    phone = Phone(Probe())
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("c", "work"))
        assert brief(await phone.model.hear()) == [("answer", "c", "work", {"ok": True})]
        await phone.model.say("Done.")
        events = await phone.heard(3)

    assert events == [
        [("call", "c", "work", {})],
        [("answer", "c", "work", {"ok": True})],
        ["Done."],
    ]


@pytest.mark.spec("9.2")
@pytest.mark.spec("system-39")
async def test_pieces_are_told_as_texts_of_the_user_without_a_call() -> None:
    @streaming_tool
    async def test_stream(n: int) -> AsyncIterator[str]:
        """Stream."""
        for each in range(n):
            yield f"chunk {each}"

    phone = Phone(test_stream)
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)
        assert declared(phone.model.requests[0]) == ["test_stream", "stop_streaming"]
        await phone.model.say(call("c", "test_stream", n=3))
        told_model = [await phone.model.hear() for _ in range(4)]

    said = [each for each in briefs(told_model) if isinstance(each[0], str)]
    assert said == [[f"Function test_stream returned: chunk {n}"] for n in range(3)]
    ((kind, call_id, _, response),) = next(
        each for each in briefs(told_model) if not isinstance(each[0], str)
    )
    assert (kind, call_id, list(response)) == ("answer", "c", ["status"])
    assert all(each.role == "user" for each in told_model)
    assert briefs((await phone.session()).events) == await phone.heard(2)


@pytest.mark.spec("9.3")
@pytest.mark.spec("9.4")
@pytest.mark.spec("system-40")
async def test_a_model_stops_what_streams() -> None:
    ended: list[str] = []

    @streaming_tool
    async def count_forever(ctx: ToolContext) -> AsyncIterator[str]:
        """Count."""
        try:
            await anyio.sleep_forever()
            yield "never"
        finally:
            ended.append(ctx.function_call_id)

    phone = Phone(count_forever)
    async with phone.call_up() as session:
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("a", "count_forever"), call("b", "count_forever"))
        await phone.model.hear()
        assert session.streaming == {"count_forever": ("a", "b")}

        stop = call("s", "stop_streaming", function_name="count_forever")
        await phone.model.say(stop)
        (stopped,) = brief(await phone.model.hear())
        assert stopped[3] == {"status": "Stopped every running instance of count_forever."}
        await eventually(lambda: sorted(ended) == ["a", "b"])
        assert session.streaming == {}

        await phone.model.say(call("t", "stop_streaming", function_name="unknown"))
        (nothing,) = brief(await phone.model.hear())
        assert nothing[3] == {"status": "No streaming function named unknown is running."}


async def test_leaving_ends_everything_that_streams() -> None:
    ended: list[str] = []

    @streaming_tool
    async def forever(ctx: ToolContext) -> AsyncIterator[str]:
        """Go on."""
        try:
            yield "started"
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    phone = Phone(forever)
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("c", "forever"))
        await phone.model.hear()
        await phone.model.hear()

    assert ended == ["ended"]


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_question_is_put_and_its_decision_runs_the_call_and_is_told(
    confirmed: bool,
) -> None:
    paid: list[int] = []

    async def pay(amount: int) -> dict[str, int]:
        """Pay."""
        paid.append(amount)
        return {"paid": amount}

    phone = Phone(function_tool(pay, require_confirmation=True))
    async with phone.call_up() as session:
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("c", "pay", amount=1))
        assert "needs confirmation" in brief(await phone.model.hear())[0][3]["error"]
        await phone.heard(3)
        (question,) = phone.events[2].function_calls()
        assert question.name == CONFIRMATION

        await session.send(reply(question.id, confirmed))
        (answered,) = brief(await phone.model.hear())

    assert paid == ([1] if confirmed else [])
    assert answered[:3] == ("answer", "c", "pay")
    assert (answered[3] == {"paid": 1}) is confirmed


async def test_a_gated_stream_that_is_approved_streams() -> None:
    @streaming_tool(require_confirmation=True)
    async def watch() -> AsyncIterator[str]:
        """Watch."""
        yield "seen"

    phone = Phone(watch)
    async with phone.call_up() as session:
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("c", "watch"))
        await phone.model.hear()
        await phone.heard(3)
        await session.send(reply(phone.events[2].function_calls()[0].id))
        said = briefs([await phone.model.hear(), await phone.model.hear()])

    assert ["Function watch returned: seen"] in said


async def test_a_completed_task_ends_the_conversation() -> None:
    phone = Phone(Probe("task_completed"))
    async with phone.call_up() as session:
        await eventually(lambda: phone.model.requests)
        await phone.model.say(call("c", "task_completed"))
        await phone.ended.wait()
        with pytest.raises(BridgeError, match="the live conversation is over"):
            await session.send("Anybody there?")

    assert briefs(phone.events)[-1] == [("answer", "c", "task_completed", {"ok": True})]


async def test_a_model_that_hangs_up_ends_the_conversation() -> None:
    phone = Phone()
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)
        await phone.model.say("Bye.")
        phone.model.hang_up()
        await phone.ended.wait()

    assert briefs(phone.events) == [["Bye."]]


@pytest.mark.spec("15.9")
async def test_a_plugin_may_answer_in_the_place_of_a_live_conversation() -> None:
    ended: list[bool] = []

    class Closed(Plugin):
        async def before_run(self, ctx: Context) -> Content:
            return text("We are closed.", "model")

        async def after_run(self, ctx: Context) -> None:
            ended.append(True)

    phone = Phone(plugins=[Closed()])
    async with phone.call_up() as session:
        await phone.ended.wait()
        with pytest.raises(BridgeError, match="over"):
            await session.send("Hello?")

    assert [(event.author, brief(event)) for event in phone.events] == [("w", ["We are closed."])]
    assert (phone.model.requests, ended) == ([], [True])
    assert briefs((await phone.session()).events) == [["We are closed."]]


async def test_what_fails_is_raised_where_the_events_are_taken() -> None:
    toolset = ScriptedToolset("files", [OSError("disk gone")])
    agent = Agent("w", InMemoryLiveModel(), toolsets=[toolset])
    with pytest.raises(ToolsetError, match="disk gone"):
        async with Talk(agent).runner.live() as session:
            async for _ in session.events():
                pass


async def test_what_the_caller_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Talk(Agent("w", InMemoryLiveModel())).runner.live():
            raise ZeroDivisionError


async def test_pieces_and_interruptions_are_passed_on_and_pieces_not_stored() -> None:
    phone = Phone()
    async with phone.call_up():
        await eventually(lambda: phone.model.requests)
        await phone.model.say(LLMResponse(content=text("He", "model"), partial=True))
        await phone.model.say(LLMResponse(interrupted=True))
        await phone.heard(2)

    assert [(event.partial, event.interrupted) for event in phone.events] == [
        (True, False),
        (False, True),
    ]
    assert len((await phone.session()).events) == 1


async def test_an_agent_with_an_ordinary_model_cannot_be_spoken_with_live() -> None:
    with pytest.raises(BridgeError, match='"w" cannot be spoken with live'):
        async with Talk(Agent("w", ScriptedModel([]))).runner.live():
            pass


async def test_a_live_model_cannot_be_asked_turn_by_turn() -> None:
    with pytest.raises(BridgeError, match=r"can only be spoken with live: use Runner\.live"):
        await Talk(Agent("w", InMemoryLiveModel())).say()


async def test_a_live_model_in_memory_has_one_conversation_at_a_time() -> None:
    model = InMemoryLiveModel()
    with pytest.raises(BridgeError, match="in no conversation"):
        await model.say("Hello?")

    async with model.connect(LLMRequest()):
        with pytest.raises(BridgeError, match="in a conversation already"):
            async with model.connect(LLMRequest()):
                pass

    async with model.connect(LLMRequest()) as connection:
        await connection.send(content())
        assert await model.hear() == content()
