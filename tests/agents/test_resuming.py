"""Which calls a reply lets go on: only this agent's own, decided newest, each at most once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.resuming import resumable
from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall
from bridge.core.content_json import call_to_json
from bridge.core.event import Event
from bridge.errors import BridgeError
from tests.agents.talk import CONFIRMATION, answer, asked, call, content, reply, text

AGENT = "tester"
HASH = "f" * 64


def question(question_id: str, original: FunctionCall | Any) -> FunctionCall:
    if isinstance(original, FunctionCall):
        original = call_to_json(original)

    return call(question_id, CONFIRMATION, originalFunctionCall=original)


def put(*questions: FunctionCall, author: str = AGENT) -> Event:
    return Event(author=author, content=asked(*questions))


def replied(**decisions: Any) -> Event:
    parts = [part for each, yes in decisions.items() for part in reply(each, yes).parts]
    return Event(author="user", content=content(*parts))


def answered(*ids: str, author: str = AGENT) -> Event:
    return Event(author=author, content=content(*(answer(each, "pay", {}) for each in ids)))


def pay(call_id: str, amount: int = 1) -> FunctionCall:
    return call(call_id, "pay", amount=amount)


def resumed(*events: Event) -> list[list[tuple[str, bool]]]:
    """The ids of the calls that go on, with their decision, by batch."""
    return [
        [(each.call.id, each.confirmation.confirmed) for each in batch]
        for batch in resumable(events, AGENT)
    ]


@pytest.mark.spec("7.4")
@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([], []),
        ([put(question("q", pay("a")))], []),
        ([put(question("q", pay("a"))), Event(author="user", content=text("Yes!"))], []),
        ([put(question("q", pay("a"))), answered("q", author="user")], []),
        ([put(question("q", pay("a"))), replied(other=True)], []),
        ([put(question("q", pay("a"))), replied(q=True)], [[("a", True)]]),
        ([put(question("q", pay("a"))), replied(q=False)], [[("a", False)]]),
    ],
)
def test_only_a_decision_on_a_question_that_was_put_lets_a_call_go_on(
    events: list[Event], wanted: Any
) -> None:
    assert resumed(*events) == wanted


@pytest.mark.spec("7.17")
@pytest.mark.spec("system-30")
def test_a_newer_message_of_the_user_takes_a_decision_back() -> None:
    events = [put(question("q", pay("a"))), replied(q=True)]

    assert resumed(*events, Event(author="user", content=text("Wait!"))) == []
    assert resumed(*events, answered("other", author="user")) == []


@pytest.mark.spec("7.5")
@pytest.mark.spec("system-31")
def test_calls_go_on_in_the_order_of_the_questions() -> None:
    order = ["c3", "c1", "c5", "c2", "c6", "c4"]
    questions = put(*(question(f"q_{each}", pay(each)) for each in order))
    replies = replied(**{f"q_{each}": True for each in reversed(order)})

    assert resumed(questions, replies) == [[(each, True) for each in order]]


@pytest.mark.spec("7.6")
def test_what_was_answered_after_the_reply_is_over() -> None:
    questions = put(*(question(f"q_{each}", pay(each)) for each in "bac"))
    replies = replied(q_a=True, q_b=True, q_c=True)

    for author in (AGENT, "somebody", "user_proxy"):
        assert resumed(questions, replies, answered("a", author=author)) == [
            [("b", True), ("c", True)]
        ]
    assert resumed(questions, replies, answered("a"), answered("b", "c")) == []


def test_what_was_answered_between_question_and_reply_is_over_too() -> None:
    assert resumed(put(question("q", pay("a"))), answered("a"), replied(q=True)) == []
    assert resumed(answered("a"), put(question("q", pay("a"))), replied(q=True)) == [[("a", True)]]


@pytest.mark.spec("7.7")
def test_one_call_with_two_questions_goes_on_once_and_spends_both() -> None:
    questions = put(question("q1", pay("a")), question("q2", pay("a")))
    (batch,) = resumable([questions, replied(q1=True, q2=True)], AGENT)

    assert [(each.call.id, each.question_ids) for each in batch] == [("a", ("q1", "q2"))]


def test_one_call_with_questions_in_two_events_goes_on_once_and_spends_both() -> None:
    questions = [put(question("q1", pay("a"))), put(question("q2", pay("a")))]
    for decisions in ({"q1": True, "q2": True}, {"q1": True}, {"q2": True}):
        ((only,),) = resumable([*questions, replied(**decisions)], AGENT)
        assert only.question_ids == ("q1", "q2")


def test_of_several_decisions_on_one_call_a_single_no_is_enough() -> None:
    for questions in (
        [put(question("q1", pay("a")), question("q2", pay("a")))],
        [put(question("q1", pay("a"))), put(question("q2", pay("a")))],
    ):
        assert resumed(*questions, replied(q1=False, q2=True)) == [[("a", False)]]
        assert resumed(*questions, replied(q1=True, q2=False)) == [[("a", False)]]


def test_what_asked_before_a_call_waited_anew_is_another_matter() -> None:
    waiting = EventActions(requested_tool_confirmations={"a": ToolConfirmation()})
    history = [
        replace(answered("a"), actions=waiting),
        put(question("q1", pay("a"))),
        replied(q1=True),
        replace(answered("a"), actions=waiting),
        put(question("q2", pay("a"))),
    ]
    ((only,),) = resumable([*history, replied(q2=True)], AGENT)

    assert only.question_ids == ("q2",)
    assert resumed(*history, replied(q1=True)) == []


@pytest.mark.spec("7.8")
@pytest.mark.spec("system-32")
@pytest.mark.parametrize("author", ["some_other_party", "user", ""])
def test_only_this_agents_own_questions_count(author: str) -> None:
    assert resumed(put(question("q", pay("a")), author=author), replied(q=True)) == []


@pytest.mark.spec("7.9")
@pytest.mark.spec("system-32")
@pytest.mark.parametrize("forged_first", [True, False])
def test_a_question_that_stands_for_two_calls_lets_neither_go_on(forged_first: bool) -> None:
    events = [put(question("q", pay("a", 100))), put(question("q", pay("a", 999)))]
    if forged_first:
        events.reverse()

    assert resumed(*events, replied(q=True)) == []
    # The same call twice over is no conflict, whatever the order of its keys.
    again = put(question("q", {"args": {"amount": 100}, "name": "pay", "id": "a"}))
    assert resumed(events[1 if forged_first else 0], again, replied(q=True)) == [[("a", True)]]


def test_a_foreign_or_unreadable_double_is_no_conflict() -> None:
    own = put(question("q", pay("a", 100)))
    foreign = put(question("q", pay("a", 999)), author="peer")
    unreadable = put(question("q", {"id": 3}))

    assert resumed(own, foreign, unreadable, replied(q=True)) == [[("a", True)]]


@pytest.mark.parametrize("original", [{"id": 3}, "pay", None])
def test_a_question_without_a_readable_call_lets_nothing_go_on(original: Any) -> None:
    assert resumed(put(question("q", original)), replied(q=True)) == []


def test_a_question_in_the_last_event_is_not_considered() -> None:
    assert resumed(replied(q=True), put(question("q", pay("a")))) == []


def test_questions_of_several_events_go_on_newest_event_first() -> None:
    events = [put(question("q1", pay("a"))), put(question("q2", pay("b")))]

    assert resumed(*events, replied(q1=True, q2=False)) == [[("b", False)], [("a", True)]]


def test_a_decision_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(BridgeError, match="cannot be read"):
        resumed(put(question("q", pay("a"))), replied(q={"confirmed": "yes"}))


def test_a_yes_is_bound_to_what_the_gate_has_shown() -> None:
    shown = {"arguments": {"amount": 1}, "hash": HASH, "tool": "pay", "upstream": "local"}
    asked_by_gate = call(
        "q",
        CONFIRMATION,
        originalFunctionCall=call_to_json(pay("a")),
        toolConfirmation={"hint": "Sure?", "confirmed": False, "payload": shown},
    )

    def bound(decision: Any) -> str | None:
        ((only,),) = resumable([put(asked_by_gate), replied(q=decision)], AGENT)
        return only.confirmation.hash

    assert bound(True) == HASH
    assert bound({"confirmed": True, "hash": "another"}) == "another"
    assert bound({"confirmed": True, "arguments": {"amount": 2}}) is None


def test_edited_arguments_of_a_no_are_nothing() -> None:
    decisions = {"q1": {"confirmed": True, "arguments": {"amount": 2}}}
    decisions["q2"] = {"confirmed": False, "arguments": {"amount": 2}}
    questions = put(question("q1", pay("a")), question("q2", pay("b")))
    (batch,) = resumable([questions, replied(**decisions)], AGENT)

    assert [each.effective.args for each in batch] == [{"amount": 2}, {"amount": 1}]
    assert [each.call for each in batch] == [pay("a"), pay("b")]


def test_what_a_tool_does_to_its_arguments_does_not_change_the_question() -> None:
    event = put(question("q", pay("a")))
    ((only,),) = resumable([event, replied(q=True)], AGENT)
    only.effective.args["amount"] = 999

    assert event.function_calls()[0].args["originalFunctionCall"]["args"] == {"amount": 1}


authors = st.sampled_from([AGENT, AGENT, "peer", "user"])
question_ids = st.sampled_from(["q1", "q2", "q3"])
originals = st.builds(pay, st.sampled_from(["a", "b"]), st.sampled_from([1, 999]))
events = st.one_of(
    st.builds(
        lambda made, author: put(*(question(*each) for each in made), author=author),
        st.lists(st.tuples(question_ids, originals), min_size=1, max_size=2),
        authors,
    ),
    st.builds(
        lambda decisions: replied(**decisions),
        st.dictionaries(question_ids, st.booleans(), min_size=1, max_size=2),
    ),
    st.builds(lambda each, author: answered(each, author=author), st.sampled_from("ab"), authors),
    st.just(Event(author="user", content=text("Hm."))),
)


@given(st.lists(events, max_size=8))
def test_whatever_the_history_nothing_goes_on_that_nobody_decided(history: list[Event]) -> None:
    batches = list(resumable(history, AGENT))

    said = [event for event in history if event.author == "user"]
    newest = said[-1].function_responses() if said else []
    decided = {each.id: each.response for each in newest if each.name == CONFIRMATION}
    own: dict[str, list[Any]] = {}
    for event in history:
        for each in event.function_calls() if event.author == AGENT else ():
            own.setdefault(each.id, []).append(each.args["originalFunctionCall"])

    going = [each for batch in batches for each in batch]
    assert len({each.call.id for each in going}) == len(going)
    for each in going:
        answers = [decided[one]["confirmed"] for one in each.question_ids if one in decided]
        assert answers
        assert each.confirmation.confirmed == all(answers)
        assert any(
            set(map(str, own[one])) == {str(call_to_json(each.call))}
            for one in each.question_ids
            if one in decided
        )
