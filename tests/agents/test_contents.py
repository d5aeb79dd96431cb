"""What of a history a model is told: filtered, rearranged, merged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contents import CONTINUE, Reader, contents_for
from bridge.agents.rearrange import rearranged
from bridge.core.content import Blob, Content, Part
from bridge.core.event import Event
from bridge.errors import BridgeError
from tests.agents.talk import answer, asked, brief, briefs, call, content, text

AGENT = "tester"
READER = Reader(AGENT)


def by_user(said: Content, **given: Any) -> Event:
    return Event(author="user", content=said, **given)


def by_agent(said: Content, **given: Any) -> Event:
    return Event(**{"author": AGENT, "content": said, **given})


def told(*events: Event, reader: Reader = READER, whole: bool = True) -> list[list[Any]]:
    """What the model is told, without the made-up ending."""
    contents = contents_for(reader, events, whole=whole)
    if contents and contents[-1] == text(CONTINUE):
        contents.pop()

    return briefs(contents)


def lro(progress: Any) -> Part:
    return answer("long", "work", {"status": progress})


def test_a_conversation_is_told_as_it_was() -> None:
    events = [by_user(text("Hello")), by_agent(text("Hi", "model")), by_user(text("Bye"))]

    assert contents_for(READER, events) == [text("Hello"), text("Hi", "model"), text("Bye")]


@pytest.mark.parametrize("events", [[], [Event(author="user")], [by_user(Content("", ()))]])
def test_events_that_say_nothing_are_not_told(events: list[Event]) -> None:
    assert contents_for(READER, events) == []


@pytest.mark.spec("21.5")
def test_a_conversation_that_ends_with_the_model_is_continued() -> None:
    contents = contents_for(READER, [by_user(text("Hi")), by_agent(text("Hello", "model"))])

    assert contents == [text("Hi"), text("Hello", "model"), text(CONTINUE)]


@pytest.mark.spec("21.5")
def test_empty_parts_are_dropped() -> None:
    said = content(Part(text=""), Part(), Part(text="Hi"), role="model")
    only_empty = by_agent(content(Part(text=""), role="model"))
    signed = by_agent(content(Part(thought_signature=b"s"), role="model"))

    assert told(by_agent(said), only_empty, by_user(text("?"))) == [["Hi"], ["?"]]
    assert len(told(signed, by_user(text("?")))) == 2


@pytest.mark.spec("13.14")
def test_a_branch_sees_itself_and_its_ancestors_but_no_sibling() -> None:
    branches = ["", "branch1", "branch1.task1", "branch12", "branch2", "branch1.task10"]
    events = [by_user(text(f"in {branch}"), branch=branch) for branch in branches]
    reader = Reader(AGENT, branch="branch1.task1")

    assert told(*events, reader=reader) == [["in "], ["in branch1"], ["in branch1.task1"]]


@pytest.mark.spec("13.15")
def test_an_isolation_scope_sees_only_what_is_its_own() -> None:
    events = [
        by_user(text("open")),
        by_user(text("mine"), isolation_scope="task-1"),
        by_user(text("other"), isolation_scope="task-2"),
    ]

    assert told(*events, reader=Reader(AGENT, isolation_scope="task-1")) == [["mine"]]
    assert told(*events) == [["open"]]


@pytest.mark.spec("13.16")
def test_the_current_turn_starts_where_the_agent_can_see_somebody_else_speak() -> None:
    earlier, turn = by_user(text("long ago")), by_user(text("now"))
    scoped = by_user(text("scoped"), isolation_scope="task-1")
    sibling = Event(author="other", branch="b2", content=text("sibling", "model"))
    reader = Reader(AGENT, branch="b1")

    assert told(earlier, turn, scoped, whole=False) == [["now"]]
    assert told(earlier, turn, sibling, reader=reader, whole=False) == [["now"]]
    assert told(by_agent(text("alone", "model")), whole=False) == [["alone"]]


def test_the_current_turn_has_the_calls_of_the_turn_in_it() -> None:
    events = [
        by_user(text("long ago")),
        by_agent(text("an answer", "model")),
        by_user(text("now")),
        by_agent(asked(call("c", "work"))),
        by_agent(content(answer("c", "work", {"ok": 1}))),
    ]

    assert told(*events, whole=False) == [
        ["now"],
        [("call", "c", "work", {})],
        [("answer", "c", "work", {"ok": 1})],
    ]


@pytest.mark.parametrize("name", ["adk_request_confirmation", "adk_request_credential"])
def test_what_is_between_us_and_a_person_is_not_told(name: str) -> None:
    events = [
        by_user(text("Hi")),
        by_agent(content(Part(text="Wait"), Part(function_call=call("q", name)), role="model")),
        by_user(content(answer("q", name, {"confirmed": True}))),
    ]

    assert told(*events) == [["Hi"]]


@pytest.mark.spec("21.6")
def test_what_another_agent_did_is_retold_as_context() -> None:
    blob = Part(inline_data=Blob("image/png", b"p"))
    said = content(
        Part(text="Hm.", thought=True),
        Part(text="Sure"),
        Part(function_call=call("c", "find", city="東京", n=1)),
        answer("c", "find", {"sky": "clear"}),
        blob,
        role="model",
    )
    (contents,) = contents_for(READER, [Event(author="other", content=said)])

    assert contents.role == "user"
    assert brief(contents) == [
        "For context:",
        "[other] said: Sure",
        '[other] called tool `find` with parameters: {"city":"東京","n":1}',
        '[other] `find` tool returned result: {"sky":"clear"}',
        blob.inline_data,
    ]


def test_the_mere_thoughts_of_another_agent_are_nobodys_business() -> None:
    thought = content(Part(text="Hm.", thought=True), role="model")

    assert told(Event(author="other", content=thought), by_user(text("Hi"))) == [["Hi"]]


def test_what_was_heard_is_told_as_one_text_a_side() -> None:
    def heard(words: str) -> Event:
        return Event(author="user", input_transcription={"text": words})

    def spoken(words: str) -> Event:
        return Event(author=AGENT, output_transcription={"text": words})

    contents = contents_for(READER, [heard("How "), heard("are you?"), spoken("Fi"), spoken("ne")])

    assert contents[:2] == [text("How are you?"), text("Fine", "model")]


def test_ids_that_were_made_here_are_not_told() -> None:
    made, given_id = call("adk-1", "work"), call("c-2", "work")
    events = [
        by_user(text("Hi")),
        by_agent(asked(made, given_id)),
        by_agent(content(answer("adk-1", "work", {}), answer("c-2", "work", {}))),
    ]

    assert told(*events)[1:] == [
        [("call", "", "work", {}), ("call", "c-2", "work", {})],
        [("answer", "", "work", {}), ("answer", "c-2", "work", {})],
    ]
    assert events[1].function_calls()[0].id == "adk-1"


@pytest.mark.parametrize(
    ("reader", "first"),
    [
        (Reader(AGENT, isolation_scope="task-1"), '{"goal":"win"}'),
        (Reader(AGENT, isolation_scope="task-9", user_content=text("given")), "given"),
    ],
)
def test_a_scoped_agent_is_told_its_task_first(reader: Reader, first: str) -> None:
    delegated = Event(author="boss", content=asked(call("task-1", "delegate", goal="win")))
    mine = by_user(text("mine"), isolation_scope=reader.isolation_scope)

    assert told(delegated, mine, reader=reader) == [[first], ["mine"]]


@pytest.mark.spec("21.2")
@pytest.mark.spec("8.2")
def test_a_late_answer_takes_the_place_of_the_pending_one() -> None:
    start = [by_user(text("Work")), by_agent(asked(call("long", "work")))]
    pending = by_agent(content(lro("pending")))
    chat = by_agent(text("Still at it", "model"))
    final = by_user(content(lro("done")))
    wanted = [["Work"], [("call", "long", "work", {})], brief(content(lro("done")))]

    assert told(*start, pending, chat, final) == wanted
    assert told(*start, pending, by_user(text("And?")), final) == wanted


@pytest.mark.spec("21.4")
def test_answers_in_the_middle_of_a_history_go_to_their_calls() -> None:
    events = [
        by_user(text("Work")),
        by_agent(asked(call("long", "work"))),
        by_agent(content(lro("pending"))),
        by_agent(text("Still at it", "model")),
        by_user(content(lro("done"))),
        by_agent(text("Done!", "model")),
        by_user(text("Thanks")),
    ]

    assert told(*events) == [
        ["Work"],
        [("call", "long", "work", {})],
        brief(content(lro("done"))),
        ["Still at it"],
        ["Done!"],
        ["Thanks"],
    ]


@pytest.mark.spec("21.2")
def test_unrelated_calls_between_a_call_and_its_late_answer_stay() -> None:
    events = [
        by_user(text("Work and search")),
        by_agent(asked(call("long", "work"))),
        by_agent(content(lro("pending"))),
        by_agent(asked(call("s", "search"))),
        by_agent(content(answer("s", "search", {"n": 2}))),
        by_user(content(lro("done"))),
    ]

    assert told(*events) == [
        ["Work and search"],
        [("call", "long", "work", {})],
        brief(content(lro("done"))),
        [("call", "s", "search", {})],
        [("answer", "s", "search", {"n": 2})],
    ]


@pytest.mark.spec("21.3")
@pytest.mark.parametrize("ending", [(), (by_agent(text("Both", "model")), by_user(text("Next")))])
def test_one_of_two_answers_is_brought_up_to_date_in_its_place(ending: tuple[Event, ...]) -> None:
    calls = asked(call("long", "work"), call("s", "search"))
    found = answer("s", "search", {"n": 2})
    events = [
        by_user(text("Work and search")),
        by_agent(calls),
        by_agent(content(lro("pending"), found)),
        by_agent(text("Searched", "model")),
        by_user(content(lro("done"))),
        *ending,
    ]

    assert told(*events)[:3] == [
        ["Work and search"],
        brief(calls),
        brief(content(lro("done"), found)),
    ]


@pytest.mark.spec("21.3")
def test_texts_beside_answers_survive() -> None:
    events = [
        by_user(text("Before")),
        by_agent(content(Part(text="At it"), *asked(call("long", "work")).parts, role="model")),
        by_user(content(Part(text="prefix"), lro("pending"), Part(text="middle"))),
        by_agent(text("Still at it", "model")),
        by_user(content(Part(text="last prefix"), lro("done"), Part(text="suffix"))),
    ]

    assert told(*events)[2] == [
        "prefix",
        *brief(content(lro("done"))),
        "middle",
        "last prefix",
        "suffix",
    ]


@pytest.mark.spec("21.1")
def test_an_answer_to_no_call_is_an_error_that_names_it() -> None:
    orphan = by_user(content(answer("nobody", "work", {})))

    with pytest.raises(BridgeError, match='no call for the answers with these ids: "nobody"'):
        contents_for(READER, [by_user(text("Hi")), orphan])


@pytest.mark.spec("21.1")
def test_an_answer_to_calls_of_two_events_is_an_error_that_names_the_stray() -> None:
    events = [
        by_agent(asked(call("a", "work"))),
        by_agent(asked(call("b", "work"))),
        by_user(text("Hm")),
        by_user(content(answer("a", "work", {}), answer("b", "work", {}))),
    ]

    with pytest.raises(BridgeError, match='not made together: "a" are not among "b"'):
        contents_for(READER, events)


def test_one_event_that_answers_calls_of_two_is_told_behind_each_as_far_as_it_answers_it() -> None:
    events = [
        by_agent(asked(call("a", "work"))),
        by_agent(asked(call("b", "work"))),
        by_agent(content(answer("a", "work", {"n": 1}), answer("b", "work", {"n": 2}))),
        by_user(text("Next")),
    ]

    assert told(*events) == [
        [("call", "a", "work", {})],
        [("answer", "a", "work", {"n": 1})],
        [("call", "b", "work", {})],
        [("answer", "b", "work", {"n": 2})],
        ["Next"],
    ]


def test_an_answer_right_behind_its_call_may_come_with_a_stray() -> None:
    events = [
        by_agent(asked(call("a", "work"))),
        by_user(content(answer("a", "work", {"n": 1}), answer("stray", "work", {}))),
    ]

    assert told(*events) == [[("call", "a", "work", {})], [("answer", "a", "work", {"n": 1})]]


def test_an_answer_that_is_all_there_is_is_let_through() -> None:
    assert told(by_user(content(answer("x", "y", {})))) == [[("answer", "x", "y", {})]]


@pytest.mark.spec("7.13")
@pytest.mark.parametrize("outcome", [{"days_approved": 5}, {"error": "rejected"}])
def test_after_a_decision_only_its_outcome_is_told(outcome: dict[str, Any]) -> None:
    leave = call("leave", "request_days", days=5)
    events = [
        by_user(text("Five days off, please")),
        by_agent(asked(leave)),
        by_agent(content(answer("leave", "request_days", {"error": "needs confirmation"}))),
        by_agent(asked(call("q", "adk_request_confirmation", originalFunctionCall={}))),
        by_user(content(answer("q", "adk_request_confirmation", {"confirmed": True}))),
        by_agent(content(answer("leave", "request_days", outcome))),
    ]

    assert told(*events) == [
        ["Five days off, please"],
        [("call", "leave", "request_days", {"days": 5})],
        [("answer", "leave", "request_days", outcome)],
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """A history in which every call is made once, and answers come whenever they come."""
    events = [by_user(text("start"))]
    open_ids: list[str] = []
    fresh = iter("abcdefgh")
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["say", "call", "answer"]))
        if kind == "call":
            made = [each for each, _ in zip(fresh, range(draw(st.integers(1, 2))), strict=False)]
            open_ids += made
            events += [by_agent(asked(*(call(each, "work") for each in made)))] if made else []
        elif kind == "answer" and open_ids:
            chosen = draw(st.sampled_from(open_ids))
            given_answer = answer(chosen, "work", {"n": draw(st.integers(0, 9))})
            events.append(by_agent(content(given_answer)))
        else:
            events.append(by_agent(text("said", "model")))

    return [*events, by_user(text("end"))]


@given(histories())
def test_every_call_is_followed_by_its_newest_answers_and_nothing_is_invented(
    history: list[Event],
) -> None:
    before = briefs(history)
    result = rearranged(history)

    newest = {each.id: each.response for event in history for each in event.function_responses()}
    for index, event in enumerate(result):
        wanted = [each.id for each in event.function_calls() if each.id in newest]
        following = result[index + 1].function_responses() if wanted else []
        assert {each.id: each.response for each in following} == {
            call_id: newest[call_id] for call_id in wanted
        }

    plain = [event for event in history if not event.function_responses()]
    assert [event for event in result if not event.function_responses()] == plain
    assert briefs(history) == before
    assert rearranged(result) == result
