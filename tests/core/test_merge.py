"""Several answers become one event: exact rules, and nothing shared with what went in."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Content, FunctionResponse, Part
from bridge.core.event import Event
from bridge.core.merge import merge_actions, merge_events

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
deltas = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
confirmations = st.builds(ToolConfirmation, st.text(max_size=2), st.booleans(), values)
actions = st.builds(
    EventActions,
    state_delta=deltas,
    artifact_delta=st.dictionaries(st.sampled_from("fg"), st.integers(-3, 9), max_size=2),
    requested_tool_confirmations=st.dictionaries(st.sampled_from("12"), confirmations),
    skip_summarization=st.booleans(),
    transfer_to_agent=st.sampled_from(["", "x", "y"]),
    escalate=st.booleans(),
)

ASKED = ToolConfirmation("sure?")
ASKED_AGAIN = ToolConfirmation("really?")


def state(**delta: Any) -> EventActions:
    return EventActions(state_delta=delta)


def artifacts(**delta: int) -> EventActions:
    return EventActions(artifact_delta=delta)


def without(field: str) -> EventActions:
    """Actions as another runtime may leave them: a map that is not there at all."""
    made = EventActions()
    setattr(made, field, None)
    return made


CASES = {
    "both absent": (None, None, None),
    "other absent": (state(a=1), None, state(a=1)),
    "base absent": (None, state(a=1), state(a=1)),
    "other keys": (state(a=1), state(b=2), state(a=1, b=2)),
    "same key": (state(a="original"), state(a="overwritten"), state(a="overwritten")),
    "mappings": (
        state(outer={"a": 1, "b": 2}),
        state(outer={"b": 3, "c": 4}),
        state(outer={"a": 1, "b": 3, "c": 4}),
    ),
    "lists replace": (state(a=[1, 2]), state(a=[3]), state(a=[3])),
    "a mapping replaces a scalar": (state(a=1), state(a={"b": 2}), state(a={"b": 2})),
    "a scalar replaces a mapping": (state(a={"b": 2}), state(a=None), state(a=None)),
    "an empty mapping clears nothing": (state(a={"b": 2}), state(a={}), state(a={"b": 2})),
    "no state in base": (without("state_delta"), state(a=1), state(a=1)),
    "no state in other": (state(a=1), without("state_delta"), state(a=1)),
    "a flag and a delta": (
        EventActions(skip_summarization=True),
        state(a=1),
        EventActions(state_delta={"a": 1}, skip_summarization=True),
    ),
    "no artifacts in other": (artifacts(f1=1), without("artifact_delta"), artifacts(f1=1)),
    "no artifacts in base": (without("artifact_delta"), artifacts(f1=1), artifacts(f1=1)),
    "other artifacts": (artifacts(f1=1), artifacts(f2=2), artifacts(f1=1, f2=2)),
    "highest version": (
        artifacts(f1=1, f2=100),
        artifacts(f1=10, f2=10),
        artifacts(f1=10, f2=100),
    ),
    "versions apart": (
        artifacts(f1=1, f2=100),
        artifacts(f2=2, f3=3),
        artifacts(f1=1, f2=100, f3=3),
    ),
    "a negative version": (None, artifacts(f1=-1), artifacts(f1=-1)),
    "a negative version that is new": (artifacts(f1=2), artifacts(f2=-1), artifacts(f1=2, f2=-1)),
    "skip": (
        EventActions(),
        EventActions(skip_summarization=True),
        EventActions(skip_summarization=True),
    ),
    "skip stays": (
        EventActions(skip_summarization=True),
        EventActions(),
        EventActions(skip_summarization=True),
    ),
    "escalate": (EventActions(), EventActions(escalate=True), EventActions(escalate=True)),
    "escalate stays": (EventActions(escalate=True), EventActions(), EventActions(escalate=True)),
    "transfer": (
        EventActions(transfer_to_agent="agent1"),
        EventActions(transfer_to_agent="agent2"),
        EventActions(transfer_to_agent="agent2"),
    ),
    "transfer is not cleared": (
        EventActions(transfer_to_agent="agent1"),
        EventActions(),
        EventActions(transfer_to_agent="agent1"),
    ),
    "confirmations": (
        EventActions(requested_tool_confirmations={"1": ASKED, "2": ASKED}),
        EventActions(requested_tool_confirmations={"2": ASKED_AGAIN}),
        EventActions(requested_tool_confirmations={"1": ASKED, "2": ASKED_AGAIN}),
    ),
    "everything": (
        EventActions({"a": 1}, {"f": 2}, {"1": ASKED}, False, "x", False),
        EventActions({"b": 2}, {"f": 1}, {"2": ASKED}, True, "y", True),
        EventActions({"a": 1, "b": 2}, {"f": 2}, {"1": ASKED, "2": ASKED}, True, "y", True),
    ),
}


@pytest.mark.spec("5.3")
@pytest.mark.parametrize(("base", "other", "merged"), CASES.values(), ids=CASES)
def test_actions_merge(
    base: EventActions | None, other: EventActions | None, merged: EventActions | None
) -> None:
    assert merge_actions(base, other) == merged


@given(actions, actions)
def test_merging_changes_neither_of_the_two_and_shares_nothing_with_them(
    base: EventActions, other: EventActions
) -> None:
    before = deepcopy((base, other))

    merged = merge_actions(base, other)

    assert (base, other) == before
    given_boxes = {id(box) for box in [*boxes(base), *boxes(other)]}
    assert [box for box in boxes(merged) if id(box) in given_boxes] == []


@given(actions, actions)
def test_merging_is_deterministic(base: EventActions, other: EventActions) -> None:
    assert merge_actions(base, other) == merge_actions(deepcopy(base), deepcopy(other))


@given(actions)
def test_nothing_is_added_by_nothing(given_actions: EventActions) -> None:
    assert merge_actions(given_actions, EventActions()) == given_actions
    assert merge_actions(EventActions(), given_actions) == given_actions


def boxes(value: Any) -> list[Any]:
    """Every dict and list inside, at whatever depth."""
    inside: list[Any] = []
    if isinstance(value, EventActions):
        delta, asked = value.state_delta, value.requested_tool_confirmations
        inside = [delta, value.artifact_delta, asked, *(q.payload for q in asked.values())]
        return [box for item in inside for box in boxes(item)]

    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list):
        inside = value
    else:
        return []

    return [value, *(box for item in inside for box in boxes(item))]


def answer(name: str, **changes: Any) -> Event:
    part = Part(function_response=FunctionResponse(name, name, {"result": name}))
    return Event(
        id=f"event-{name}",
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        author=f"agent-{name}",
        content=Content("user", (part,)),
        **changes,
    )


@pytest.mark.spec("5.4")
def test_slots_without_an_answer_are_left_out_and_the_first_answer_carries_the_rest() -> None:
    a, b, c = answer("a"), answer("b"), answer("c")

    one = merge_events([None, b])
    both = merge_events([a, None, c])

    assert one == b
    assert both is not None
    assert (both.id, both.author, both.timestamp) == (a.id, a.author, a.timestamp)
    assert [found.id for found in both.function_responses()] == ["a", "c"]
    assert merge_events([None, None]) is None
    assert merge_events([]) is None


def test_a_single_slot_is_returned_as_it_is() -> None:
    only = answer("a")
    silent = Event()

    assert merge_events([only]) is only
    assert merge_events([silent]) is silent
    assert merge_events([None]) is None


def test_an_event_without_content_carries_nothing_and_gives_nothing() -> None:
    merged = merge_events([Event(id="silent", actions=state(a=1)), answer("b"), answer("c")])

    assert merged is not None
    assert (merged.id, merged.actions) == ("event-b", EventActions())


@pytest.mark.spec("5.7")
def test_of_two_calls_that_write_one_key_the_later_asked_one_stands() -> None:
    tokyo = answer("tokyo", actions=state(last_city="Tokyo"))
    osaka = answer("osaka", actions=state(last_city="Osaka"))

    merged = merge_events([tokyo, osaka])

    assert merged is not None
    assert merged.actions.state_delta == {"last_city": "Osaka"}
    assert tokyo.actions.state_delta == {"last_city": "Tokyo"}


def test_one_call_that_ends_summarising_ends_it_for_its_siblings() -> None:
    merged = merge_events([answer("a"), answer("b", actions=EventActions(skip_summarization=True))])

    assert merged is not None
    assert merged.is_final_response()


def test_merging_does_not_reach_the_live_session() -> None:
    live = {"trip": {"from": "Tokyo"}}
    first = answer("a", actions=EventActions(state_delta={"trip": live["trip"]}))
    second = answer("b", actions=state(trip={"to": "Osaka"}))

    merged = merge_events([first, second])

    assert merged is not None
    assert merged.actions.state_delta == {"trip": {"from": "Tokyo", "to": "Osaka"}}
    assert live == {"trip": {"from": "Tokyo"}}
