"""Where something fails decides what becomes of it: of the step, of the call, or of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.content import Result
from bridge.core.context import ToolContext
from bridge.core.event import Event
from bridge.core.session import Session
from bridge.errors import StoreError, ToolsetError
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemorySessionService
from bridge.tools.function import function_tool
from tests.agents.talk import CONFIRMATION, Talk, answer, asked, brief, call, content, reply
from tests.agents.tools import InstructionOnly, Probe
from tests.fakes import ScriptedToolset


def fails(*given: Any) -> Any:
    raise OSError("broken")


async def fails_later(*given: Any) -> Any:
    raise OSError("broken")


class FailingToolset(ScriptedToolset):
    """A toolset that cannot prepare a request."""

    async def process_request(self, *given: Any) -> None:
        raise OSError("broken")


def guarded(**options: Any) -> Any:
    async def work(n: int = 0) -> dict[str, bool]:
        """Work."""
        return {"ok": True}

    return function_tool(work, **options)


@dataclass
class Position:
    """Where it breaks, and whether the step ends there or the call alone does."""

    agent: dict[str, Any] = field(default_factory=dict)
    args: dict[str, Any] = field(default_factory=dict)
    ends_step: bool = False
    says: str = "broken"


POSITIONS = {
    "listing a toolset": Position(
        {"toolsets": [ScriptedToolset("set", [OSError("broken")])]}, ends_step=True
    ),
    "preparing by a tool": Position({"tools": [InstructionOnly(edit=fails)]}, ends_step=True),
    "preparing by a toolset": Position({"toolsets": [FailingToolset("set", [[]])]}, ends_step=True),
    "working out the instruction": Position({"instruction": fails_later}, ends_step=True),
    "before the model": Position({"before_model": fails}, ends_step=True),
    "an unknown tool": Position(says="does not exist"),
    "arguments": Position({"tools": [guarded()]}, {"n": "x"}, says="do not fit"),
    "whoever decides whether to ask": Position(
        {"tools": [guarded(require_confirmation=fails)]}, says="needs confirmation"
    ),
    "before a tool": Position({"tools": [Probe()], "before_tool": fails}),
    "a tool": Position({"tools": [Probe(gives=OSError("broken"))]}),
    "on a tool's error": Position(
        {"tools": [Probe(gives=OSError("first"))], "on_tool_error": fails}
    ),
    "after a tool": Position({"tools": [Probe()], "after_tool": fails}),
    "a result": Position({"tools": [Probe(gives=[1])]}, says="returns a dict or None"),
}


@pytest.mark.spec("20.1")
@pytest.mark.spec("20.3")
@pytest.mark.spec("system-25")
@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS.keys())
async def test_preparing_ends_the_step_and_a_call_fails_alone(position: Position) -> None:
    model = ScriptedModel([asked(call("c", "work", **position.args), call("d", "fine")), "Done."])
    fine = Probe("fine")
    given = {**position.agent, "tools": [*position.agent.get("tools", ()), fine]}
    if "before_tool" in given or "after_tool" in given:
        given = {**given, **_only_for_work(given)}

    talk = Talk(Agent("w", model, **given))
    if position.ends_step:
        with pytest.raises((ToolsetError, OSError), match="broken"):
            await talk.say()

        assert (model.requests, len((await talk.session()).events)) == ([], 1)
        return

    events = await talk.say()
    failed, sound = brief(events[1])
    assert position.says in failed[3]["error"]
    assert sound == ("answer", "d", "fine", {"ok": True})
    is_waiting = bool(events[1].actions.requested_tool_confirmations)
    assert len(model.requests) == (1 if is_waiting else 2)


def _only_for_work(stages: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """The callbacks, for the tool that is to fail."""

    def narrowed(callback: Any) -> Callable[..., Any]:
        return lambda ctx, tool, *rest: callback() if tool.name == "work" else None

    names = ("before_tool", "after_tool")
    return {name: narrowed(stages[name]) for name in names if name in stages}


@pytest.mark.spec("20.1")
async def test_a_decision_that_cannot_be_read_ends_the_step() -> None:
    model = ScriptedModel(["never"])
    talk = Talk(Agent("w", model))

    with pytest.raises(Exception, match="cannot be read"):
        await talk.say(reply("q", {"confirmed": 3}))

    assert model.requests == []


@pytest.mark.spec("20.3")
async def test_waiting_for_a_person_is_seen_in_the_control_fields_whatever_the_words() -> None:
    agent = Agent(
        "w",
        ScriptedModel([call("c", "work")]),
        tools=[guarded(require_confirmation=True)],
        after_tool=lambda *given: {"status": "please hold the line"},
    )
    talk = Talk(agent)
    events = await talk.say()

    assert brief(events[1]) == [("answer", "c", "work", {"status": "please hold the line"})]
    assert events[1].actions.skip_summarization
    assert list(events[1].actions.requested_tool_confirmations) == ["c"]
    assert events[2].function_calls()[0].name == CONFIRMATION


@pytest.mark.spec("20.3")
async def test_an_event_that_cannot_be_stored_ends_the_run() -> None:
    class Full(InMemorySessionService):
        async def append_event(self, session: Session, event: Event) -> None:
            if event.function_responses():
                raise StoreError("the disk is full")

            await super().append_event(session, event)

    tool = Probe()
    model = ScriptedModel([call("c", "work"), "never"])
    talk = Talk(Agent("w", model, tools=[tool]), sessions=Full())
    with pytest.raises(StoreError, match="the disk is full"):
        await talk.say()

    assert (len(tool.calls), len(model.requests)) == (1, 1)


class ReadOnly(dict[str, Any]):
    """State that a broken backend lets nobody write to."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise OSError("read-only")


class BrokenSessions(InMemorySessionService):
    """Hands out sessions whose live state refuses every write."""

    async def create(self, *given: Any, **options: Any) -> Session:
        session = await super().create(*given, **options)
        session.state = ReadOnly(session.state)
        return session


@pytest.mark.spec("19.7")
@pytest.mark.spec("system-52")
async def test_state_that_the_session_refused_is_in_the_event_all_the_same() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        ctx.state.set("last_city", "Hangzhou")
        return {"never": "said"}

    agent = Agent("w", ScriptedModel([call("c", "work"), "Ok."]), tools=[Probe(body=body)])
    talk = Talk(agent, sessions=BrokenSessions())
    events = await talk.say()

    assert brief(events[1]) == [("answer", "c", "work", {"error": "read-only"})]
    assert events[1].actions.state_delta == {"last_city": "Hangzhou"}
    assert (await talk.session()).state == {"last_city": "Hangzhou"}


async def test_an_answer_to_no_call_ends_the_step() -> None:
    model = ScriptedModel(["Hello.", "never"])
    talk = Talk(Agent("w", model))
    await talk.say("Hi")

    with pytest.raises(Exception, match='no call for the answers with these ids: "x"'):
        await talk.say(content(answer("x", "y", {})))

    assert len(model.requests) == 1
