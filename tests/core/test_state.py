"""State as a call reads and writes it: what shows where, and what stays when a write fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.core.actions import EventActions
from bridge.core.context import Context, InvocationContext, ToolContext
from bridge.core.session import Session
from bridge.core.state import ScopedState, State, split_state, temporary_state
from bridge.errors import BridgeError, NoSuchStateKey


class FullState(dict[str, Any]):
    """A session's state that takes no more."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise OSError("no space left")


@pytest.mark.spec("13.1")
@pytest.mark.spec("system-52")
def test_a_write_shows_in_the_delta_in_the_session_and_to_the_writer() -> None:
    run = InvocationContext(Session("s", state={"last_city": "Beijing"}))
    ctx = ToolContext(run, "call-1")

    ctx.state.set("last_city", "Hangzhou")

    assert ctx.actions.state_delta == {"last_city": "Hangzhou"}
    assert run.session.state == {"last_city": "Hangzhou"}
    assert ctx.state.get("last_city") == "Hangzhou"


@pytest.mark.spec("13.2")
@pytest.mark.spec("system-52")
def test_a_write_that_the_session_refuses_stays_filed() -> None:
    run = InvocationContext(Session("s", state=FullState(last_city="Beijing")))
    ctx = ToolContext(run, "call-1")

    with pytest.raises(OSError, match="no space left"):
        ctx.state.set("last_city", "Hangzhou")

    assert ctx.actions.state_delta == {"last_city": "Hangzhou"}
    assert ctx.state.get("last_city") == "Hangzhou"
    assert list(ctx.state.all()) == [("last_city", "Beijing")]
    assert ctx.readonly_state["last_city"] == "Beijing"


def test_a_value_that_is_only_filed_shows_to_get_alone() -> None:
    ctx = ToolContext(InvocationContext(Session("s", state={"a": 1})), "call-1")
    ctx.actions.state_delta["a"] = None

    assert ctx.state.get("a") is None
    assert list(ctx.state.all()) == [("a", 1)]
    assert ctx.readonly_state["a"] == 1


def test_a_missing_key_is_an_error_that_names_it_unless_there_is_a_default() -> None:
    state = State({}, {})

    with pytest.raises(NoSuchStateKey) as caught:
        state.get("city")

    assert isinstance(caught.value, KeyError)
    assert str(caught.value).startswith('the state has no key "city"')
    assert state.get("city", None) is None
    assert state.get("city", "Tokyo") == "Tokyo"


@pytest.mark.parametrize(
    "use",
    [lambda s: s.get("a"), lambda s: s.set("a", 2), lambda s: s.all()],
    ids=["get", "set", "all"],
)
def test_a_state_without_a_session_says_so(use: Callable[[State], object]) -> None:
    with pytest.raises(BridgeError, match="there is no session"):
        use(State(None, {}))


def test_what_is_filed_can_be_read_without_a_session() -> None:
    delta: dict[str, Any] = {}
    state = State(None, delta)

    with pytest.raises(BridgeError):
        state.set("a", 1)

    assert (state.get("a"), delta) == (1, {"a": 1})


@pytest.mark.spec("system-52")
def test_a_change_in_place_is_filed_nowhere() -> None:
    ctx = ToolContext(InvocationContext(Session("s", state={"cities": ["Tokyo"]})), "call-1")

    ctx.state.get("cities").append("Osaka")

    assert ctx.actions.state_delta == {}


def test_a_listing_may_be_written_to_while_it_is_read() -> None:
    ctx = ToolContext(InvocationContext(Session("s", state={"a": 1, "b": 2})), "call-1")

    for key, value in ctx.state.all():
        ctx.state.set(f"{key}{key}", value)

    assert ctx.actions.state_delta == {"aa": 1, "bb": 2}


def test_a_whole_context_writes_to_the_session_and_files_nothing() -> None:
    ctx = Context(InvocationContext(Session("s")))

    ctx.state.set("a", 1)

    assert (ctx.session.state, ctx.actions) == ({"a": 1}, None)


def test_two_calls_file_apart_and_write_to_one_session() -> None:
    run = InvocationContext(Session("s"))
    first, second = ToolContext(run, "1"), ToolContext(run, "2", EventActions())

    first.state.set("last_city", "Tokyo")
    second.state.set("last_city", "Osaka")

    assert first.actions.state_delta == {"last_city": "Tokyo"}
    assert first.state.get("last_city") == "Tokyo"
    assert run.session.state == {"last_city": "Osaka"}


def test_prefixes_say_who_shares_a_key() -> None:
    state = {"app:a": 1, "user:b": 2, "temp:c": 3, "d": 4, "application": 5, "app:": 6}

    split = split_state(state)

    assert split == ScopedState({"a": 1, "": 6}, {"b": 2}, {"d": 4, "application": 5})
    assert temporary_state(state) == {"temp:c": 3}
    assert split.merged() == {key: state[key] for key in state if key != "temp:c"}
