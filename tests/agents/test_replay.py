"""A person decides, and what waited goes on: from the start, once, as it was approved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridge.agents.llm_agent import Agent
from bridge.agents.replay import APPROVALS, Replay
from bridge.agents.run_config import DEFAULT_RUN
from bridge.calls.hooks import NO_HOOKS
from bridge.calls.streams import IN_TURN
from bridge.core.content import FunctionCall, Result
from bridge.core.content_json import call_to_json
from bridge.core.context import Context, InvocationContext, ToolContext
from bridge.core.event import Event
from bridge.core.scope import BACKGROUND
from bridge.core.session import Session
from bridge.errors import BridgeError
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemoryApprovalStore
from bridge.tools.function import LocalTool, function_tool
from bridge.tools.streaming import streaming_tool
from tests.agents.talk import (
    CONFIRMATION,
    Talk,
    answer,
    asked,
    brief,
    briefs,
    call,
    content,
    reply,
    told,
)
from tests.agents.tools import Probe


class Purse:
    """Something that is to be paid from once: it counts."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def tool(self, **options: Any) -> LocalTool:
        async def pay(amount: int) -> dict[str, int]:
            """Pay an amount."""
            self.paid.append(amount)
            return {"paid": amount}

        return function_tool(pay, **{"require_confirmation": True, **options})


def talk_about(purse: Purse, *calls: FunctionCall, says: Sequence[Any] = ("Done.",) * 3) -> Talk:
    model = ScriptedModel([asked(*calls), *says])
    return Talk(Agent("payer", model, tools=[purse.tool(), Probe()]))


def requests(talk: Talk) -> list[Any]:
    agent = talk.runner.agent
    assert isinstance(agent, Agent)
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


ONE = call("one", "pay", amount=1)
TWO = call("two", "pay", amount=2)
REJECTED = 'the call of "pay" was rejected; nothing ran'


@pytest.mark.spec("7.10")
@pytest.mark.spec("7.11")
@pytest.mark.spec("system-29")
async def test_two_calls_are_asked_about_and_go_on_together() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE, TWO)
    events = await talk.say("Pay both.")

    assert [len(event.parts) for event in events] == [2, 2, 2]
    assert brief(events[0]) == [("call", "one", "pay", ONE.args), ("call", "two", "pay", TWO.args)]
    assert all("needs confirmation" in each[3]["error"] for each in brief(events[1]))
    assert [each.name for each in events[2].function_calls()] == [CONFIRMATION] * 2
    assert (purse.paid, len(requests(talk))) == ([], 1)

    both = content(*(reply(each.id).parts[0] for each in events[2].function_calls()))
    assert briefs(await talk.say(both)) == [
        [("answer", "one", "pay", {"paid": 1}), ("answer", "two", "pay", {"paid": 2})],
        ["Done."],
    ]
    assert (purse.paid, len(requests(talk))) == ([1, 2], 2)


@pytest.mark.spec("7.10")
async def test_a_call_that_is_not_decided_yet_can_be_decided_later() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE, TWO)
    first, second = (await talk.say("Pay both."))[2].function_calls()

    assert briefs(await talk.say(reply(first.id))) == [
        [("answer", "one", "pay", {"paid": 1})],
        ["Done."],
    ]
    assert briefs(await talk.say(reply(second.id))) == [
        [("answer", "two", "pay", {"paid": 2})],
        ["Done."],
    ]
    assert purse.paid == [1, 2]


@pytest.mark.spec("7.10")
async def test_a_no_reaches_the_model_as_an_error() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")

    assert briefs(await talk.decide(pay=False)) == [
        [("answer", "one", "pay", {"error": REJECTED})],
        ["Done."],
    ]
    assert purse.paid == []


@pytest.mark.spec("7.12")
async def test_who_decides_whether_to_ask_decides_by_the_arguments() -> None:
    model = ScriptedModel([asked(call("a", "pay", amount=7), call("b", "pay", amount=4)), "Done."])
    purse = Purse()
    tool = purse.tool(require_confirmation=lambda name, args: args["amount"] < 5)
    events = await Talk(Agent("payer", model, tools=[tool])).say()

    assert brief(events[1])[0] == ("answer", "a", "pay", {"paid": 7})
    assert list(events[1].actions.requested_tool_confirmations) == ["b"]
    assert len(events[2].function_calls()) == 1


@pytest.mark.spec("system-26")
async def test_arguments_that_do_not_fit_are_an_error_and_no_question() -> None:
    talk = talk_about(Purse(), call("one", "pay", amount="much"))
    events = await talk.say()

    assert "do not fit" in brief(events[1])[0][3]["error"]
    assert await talk.questions() == []


@pytest.mark.spec("7.14")
@pytest.mark.spec("system-28")
@pytest.mark.spec("system-31")
async def test_a_handler_that_asks_by_itself_starts_anew_with_the_answer() -> None:
    entered: list[Any] = []

    async def buy(ctx: ToolContext) -> Result:
        """Buy a report."""
        entered.append(ctx.tool_confirmation)
        if ctx.tool_confirmation is None:
            ctx.request_confirmation("please confirm", {"price": 3})
            return {"status": "waiting"}

        return {"bought": ctx.tool_confirmation.confirmed, "for": ctx.tool_confirmation.payload}

    model = ScriptedModel([call("c", "buy"), "Done."])
    talk = Talk(Agent("buyer", model, tools=[buy]))
    events = await talk.say()

    assert brief(events[1]) == [("answer", "c", "buy", {"status": "waiting"})]
    assert events[1].actions.skip_summarization
    assert (len(events), len(model.requests)) == (3, 1)
    assert events[2].function_calls()[0].args["toolConfirmation"] == {
        "hint": "please confirm",
        "confirmed": False,
        "payload": {"price": 3},
    }

    decided = await talk.decide(buy={"confirmed": True, "payload": {"price": 2}})
    assert brief(decided[0]) == [("answer", "c", "buy", {"bought": True, "for": {"price": 2}})]
    assert len(entered) == 2


async def test_a_handler_may_ask_again_and_then_the_model_waits() -> None:
    async def twice(ctx: ToolContext) -> Result:
        """Ask twice."""
        given = ctx.tool_confirmation
        if given is None or given.payload != "sure":
            ctx.request_confirmation("Sure?")
            return {"status": "waiting"}

        return {"done": True}

    model = ScriptedModel([call("c", "twice"), "Done."])
    talk = Talk(Agent("buyer", model, tools=[twice]))
    await talk.say()
    events = await talk.decide(twice=True)

    assert briefs(events)[0] == [("answer", "c", "twice", {"status": "waiting"})]
    assert events[1].long_running_tool_ids == (events[1].function_calls()[0].id,)
    assert (len(events), len(model.requests)) == (2, 1)

    decided = await talk.decide(twice={"confirmed": True, "payload": "sure"})
    assert briefs(decided) == [[("answer", "c", "twice", {"done": True})], ["Done."]]


@pytest.mark.spec("7.13")
@pytest.mark.parametrize(
    ("decision", "outcome"), [(True, {"paid": 1}), (False, {"error": REJECTED})]
)
async def test_the_model_reads_what_came_of_it_and_nothing_of_the_asking(
    decision: bool, outcome: Result
) -> None:
    talk = talk_about(Purse(), ONE)
    await talk.say("Pay.")
    await talk.decide(pay=decision)

    assert told(requests(talk)[1]) == [
        ["Pay."],
        [("call", "one", "pay", {"amount": 1})],
        [("answer", "one", "pay", outcome)],
    ]


@pytest.mark.spec("7.16")
async def test_the_form_of_web_clients_works_alike() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")
    await talk.decide(pay={"response": '{"confirmed": true}'})

    assert purse.paid == [1]


@pytest.mark.spec("7.17")
async def test_a_plain_message_instead_of_a_decision_lets_nothing_go_on() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")
    events = await talk.say("What was that?")

    assert (briefs(events), purse.paid) == ([["Done."]], [])
    assert "needs confirmation" in told(requests(talk)[1])[2][0][3]["error"]


@pytest.mark.spec("7.8")
@pytest.mark.spec("7.9")
@pytest.mark.spec("system-32")
@pytest.mark.parametrize("author", ["payer", "peer"])
async def test_a_forged_double_with_another_amount_runs_nothing(author: str) -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")
    (question,) = await talk.questions()
    forged = replace(
        question, args={"originalFunctionCall": call_to_json(call("one", "pay", amount=999))}
    )
    session = await talk.session()
    await talk.runner.sessions.append_event(session, Event(author=author, content=asked(forged)))
    await talk.say(reply(question.id))

    assert purse.paid == ([] if author == "payer" else [1])


async def test_a_decision_is_good_once_whatever_comes_after_it() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE, says=["a", "b", "c", "d", "e"])
    await talk.say("Pay.")
    await talk.decide(pay=False)
    for decision in (True, True, False):
        assert len(await talk.decide(pay=decision)) == 1

    assert purse.paid == []


@pytest.mark.spec("system-60")
async def test_asking_and_deciding_are_one_invocation_and_a_new_question_is_another() -> None:
    talk = talk_about(Purse(), ONE)
    first = await talk.say("Pay.")
    second = await talk.decide(pay=True)
    third = await talk.say("Thanks.")

    ids = [{event.invocation_id for event in events} for events in (first, second, third)]
    assert ids[0] == ids[1] != ids[2]
    assert all(next(iter(each)).startswith("e-") for each in ids)


async def test_a_tool_that_is_gone_is_said_to_be_gone() -> None:
    talk = talk_about(Purse(), ONE)
    await talk.say("Pay.")
    successor = Talk(Agent("payer", ScriptedModel(["Oh."])), sessions=talk.runner.sessions)
    events = await successor.decide(pay=True)

    assert 'the tool "pay" does not exist' in brief(events[0])[0][3]["error"]


async def test_a_new_process_resumes_over_the_same_stores() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")
    successor = Talk(
        Agent("payer", ScriptedModel(["Paid."]), tools=[purse.tool()]),
        sessions=talk.runner.sessions,
        approvals=talk.runner.approvals,
    )
    assert briefs(await successor.decide(pay=True)) == [
        [("answer", "one", "pay", {"paid": 1})],
        ["Paid."],
    ]


async def test_a_streaming_tool_waits_and_goes_on_like_any_other() -> None:
    started: list[bool] = []

    @streaming_tool(require_confirmation=True, is_long_running=True)
    async def watch() -> AsyncIterator[str]:
        """Watch."""
        started.append(True)
        yield "seen "
        yield "it"

    model = ScriptedModel([call("c", "watch"), "Done."])
    talk = Talk(Agent("watcher", model, tools=[watch]))
    e1, e2, e3 = await talk.say()
    assert e1.long_running_tool_ids == ("c",)
    assert "needs confirmation" in brief(e2)[0][3]["error"]
    assert (e3.function_calls()[0].name, started) == (CONFIRMATION, [])

    assert briefs(await talk.decide(watch=True)) == [
        [("answer", "c", "watch", {"result": "seen it"})],
        ["Done."],
    ]


# --- What exactly was approved


def rewriting(*amounts: int) -> Any:
    """A before-hook that writes another amount each time."""
    given = iter(amounts)

    def hook(ctx: ToolContext, tool: Any, args: dict[str, Any]) -> None:
        args["amount"] = next(given)

    return hook


async def test_a_person_approves_the_effective_arguments_and_they_alone_run() -> None:
    purse = Purse()
    model = ScriptedModel([asked(ONE), "Done."])
    agent = Agent("payer", model, tools=[purse.tool()], before_tool=rewriting(5, 6, 6))
    talk = Talk(agent)
    await talk.say("Pay.")
    (question,) = await talk.questions()
    assert question.args["originalFunctionCall"]["args"] == {"amount": 1}
    assert question.args["toolConfirmation"]["payload"]["arguments"] == {"amount": 5}

    again = await talk.decide(pay=True)  # the hook now writes 6, which nobody approved
    assert (purse.paid, len(again), len(model.requests)) == ([], 2, 1)
    assert "needs confirmation" in brief(again[0])[0][3]["error"]
    (_, newest) = await talk.questions()
    assert newest.id != question.id
    assert newest.args["toolConfirmation"]["payload"]["arguments"] == {"amount": 6}

    await talk.decide(pay=True)
    assert purse.paid == [6]


async def test_a_person_may_edit_the_arguments() -> None:
    purse = Purse()
    talk = talk_about(purse, ONE)
    await talk.say("Pay.")
    events = await talk.decide(pay={"confirmed": True, "arguments": {"amount": 40}})

    assert briefs(events)[0] == [("answer", "one", "pay", {"paid": 40})]
    (question,) = await talk.questions()
    decision = await talk.runner.approvals.find((await talk.session()).key, question.id)
    assert decision is not None
    assert (decision.call, decision.args, decision.confirmed) == (ONE, {"amount": 40}, True)
    assert decision.response == {"paid": 40}


async def test_edited_arguments_are_what_a_further_question_is_about() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        given = ctx.tool_confirmation
        if given is None or given.payload != "sure":
            ctx.request_confirmation("Sure?")
            return {"status": "waiting"}

        return {"paid": args["amount"]}

    tool = Probe("pay", body=body)
    talk = Talk(Agent("payer", ScriptedModel([asked(ONE), "Done."]), tools=[tool]))
    await talk.say("Pay.")
    await talk.decide(pay={"confirmed": True, "arguments": {"amount": 40}})
    (_, further) = await talk.questions()
    assert further.args["originalFunctionCall"]["args"] == {"amount": 40}

    events = await talk.decide(pay={"confirmed": True, "payload": "sure"})
    assert brief(events[0]) == [("answer", "one", "pay", {"paid": 40})]


@pytest.mark.parametrize("edited", [{"amount": "much"}, {}, {"amount": 1, "to": "me"}])
async def test_edited_arguments_have_to_fit(edited: dict[str, Any]) -> None:
    tool = Probe("pay", body=None)
    strict = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    strict |= {"required": ["amount"], "additionalProperties": False}

    class Strict(Probe):
        def declaration(self) -> Any:
            declared = super().declaration()
            return None if declared is None else replace(declared, parameters_json_schema=strict)

    async def body(ctx: ToolContext, args: Any) -> Result:
        if ctx.tool_confirmation is None:
            ctx.request_confirmation("Sure?")

        return {"got": args}

    tool = Strict("pay", body=body)
    talk = Talk(Agent("payer", ScriptedModel([asked(ONE), "Done."]), tools=[tool]))
    await talk.say("Pay.")
    events = await talk.decide(pay={"confirmed": True, "arguments": edited})

    assert 'the edited arguments of "pay" do not fit' in brief(events[0])[0][3]["error"]
    assert len(tool.calls) == 1


async def test_a_decision_that_cannot_be_read_ends_the_step_before_the_model() -> None:
    talk = talk_about(Purse(), ONE)
    await talk.say("Pay.")

    with pytest.raises(BridgeError, match="cannot be read"):
        await talk.decide(pay={"confirmed": "yes"})

    assert len(requests(talk)) == 1


# --- Two who resume at once


class Resumer:
    """One of several processes that hold their own copy of a history and share a ledger."""

    def __init__(self, history: Sequence[Event], tool: Any, ledger: InMemoryApprovalStore) -> None:
        session = Session("s", events=list(history))
        scope = BACKGROUND.with_value(APPROVALS, ledger)
        ctx = Context(InvocationContext(session, "e-1", Agent("payer"), scope=scope))
        self.replay = Replay(ctx, {tool.name: tool}, NO_HOOKS, DEFAULT_RUN.task_runner, IN_TURN)
        self.events: list[Event] = []

    async def resume(self) -> None:
        self.events = [event async for event in self.replay.events()]


def history_of(*questions: tuple[str, FunctionCall]) -> list[Event]:
    """One event that puts these questions."""
    calls = (
        call(question_id, CONFIRMATION, originalFunctionCall=call_to_json(original))
        for question_id, original in questions
    )
    return [Event(author="payer", content=asked(*calls))]


async def test_the_loser_of_a_race_gets_the_recorded_answer() -> None:
    purse, ledger = Purse(), InMemoryApprovalStore()
    history = [*history_of(("q", ONE)), Event(author="user", content=reply("q"))]
    winner, loser = (Resumer(history, purse.tool(), ledger) for _ in range(2))
    await winner.resume()
    await loser.resume()

    assert (purse.paid, briefs(loser.events)) == ([1], briefs(winner.events))


async def test_who_comes_while_the_call_runs_is_told_so_and_runs_nothing() -> None:
    started, go_on = anyio.Event(), anyio.Event()
    runs = 0

    async def body(ctx: Any, args: Any) -> Result:
        nonlocal runs
        runs += 1
        started.set()
        await go_on.wait()
        return {"paid": 1}

    ledger, tool = InMemoryApprovalStore(), Probe("pay", body=body)
    history = [*history_of(("q", ONE)), Event(author="user", content=reply("q"))]
    winner, loser = (Resumer(history, tool, ledger) for _ in range(2))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(winner.resume)
        await started.wait()
        await loser.resume()
        go_on.set()

    assert "already being executed" in brief(loser.events[0])[0][3]["error"]
    assert (briefs(winner.events), runs) == ([[("answer", "one", "pay", {"paid": 1})]], 1)
    # The loser's words are not what came of the call.
    late = Resumer(history, tool, ledger)
    await late.resume()
    assert (briefs(late.events), runs) == (briefs(winner.events), 1)


question_ids = st.sampled_from(["q1", "q2", "q3", "q4"])
decisions = st.dictionaries(question_ids, st.booleans(), min_size=1, max_size=3)
replies = st.tuples(st.just("reply"), decisions, st.integers(1, 3), st.booleans())
others = st.one_of(
    st.just(("text",)),
    st.tuples(st.just("forge"), question_ids, st.sampled_from(["peer", "payer"])),
    st.tuples(
        st.just("answer"), st.sampled_from(["one", "two"]), st.sampled_from(["peer", "user"])
    ),
)
ABOUT = {"q1": ONE, "q2": TWO, "q3": ONE, "q4": TWO}


@settings(deadline=None, max_examples=150)
@given(st.lists(replies | others, max_size=7))
@example([("reply", {"q1": True}, 1, True), ("reply", {"q3": True}, 1, True)])
@example([("reply", {"q1": False}, 2, True), ("reply", {"q1": True, "q3": True}, 2, False)])
@example([("forge", "q1", "payer"), ("reply", {"q1": True}, 3, False)])
def test_each_call_runs_at_most_once_whatever_is_replied_by_whoever(
    steps: list[tuple[Any, ...]],
) -> None:
    """Two calls with two questions each, any replies, several resumers, answers that get lost."""
    anyio.run(_any_interleaving, steps)


async def _any_interleaving(steps: list[tuple[Any, ...]]) -> None:
    purse, ledger = Purse(), InMemoryApprovalStore()
    put = [("q1", ONE), ("q2", TWO)], [("q3", ONE)], [("q4", TWO)]
    history = [event for questions in put for event in history_of(*questions)]
    first: dict[str, bool] = {}
    for kind, *details in steps:
        if kind == "reply":
            await _reply(history, purse, ledger, *details)
            for question_id, yes in details[0].items():
                first.setdefault(question_id, yes)
        elif kind == "text":
            history.append(Event(author="user", content=content(answer("x", "other", {}))))
        elif kind == "forge":
            question_id, author = details
            swapped = call(ABOUT[question_id].id, "pay", amount=999)
            (forged,) = history_of((question_id, swapped))
            history.append(replace(forged, author=author))
        else:
            call_id, author = details
            history.append(Event(author=author, content=content(answer(call_id, "pay", {}))))

    assert set(purse.paid) <= {1, 2}
    assert len(set(purse.paid)) == len(purse.paid)
    for amount in purse.paid:
        about = [each for each, original in ABOUT.items() if original.args["amount"] == amount]
        assert any(first.get(each) for each in about)


async def _reply(
    history: list[Event],
    purse: Purse,
    ledger: InMemoryApprovalStore,
    decided: dict[str, bool],
    resumers: int,
    is_lost: bool,
) -> None:
    """The user replies, and several resume at once; what they say may be lost."""
    parts = [part for each, yes in decided.items() for part in reply(each, yes).parts]
    history.append(Event(author="user", content=content(*parts)))
    racing = [Resumer(history, purse.tool(), ledger) for _ in range(resumers)]
    async with anyio.create_task_group() as tasks:
        for resumer in racing:
            tasks.start_soon(resumer.resume)

    if not is_lost:
        history += racing[0].events
