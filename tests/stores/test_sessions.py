"""What every session service does, in memory, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.core.context import InvocationContext, ToolContext
from bridge.core.event import Event, NodeInfo, RequestInput
from bridge.core.session import Session, SessionKey
from bridge.core.stores import SessionService
from bridge.errors import SessionExists, SessionNotFound, StaleSession, StoreError

KEY = SessionKey("app", "u1", "s1")
THEN = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def said(text: str, at: datetime = THEN, **state: Any) -> Event:
    """An event that says something and writes state."""
    return Event(
        id=f"event-{text}",
        timestamp=at,
        author="user",
        content=Content("user", (Part(text=text),)),
        actions=EventActions(state_delta=state),
    )


# --- create, get, list, delete -------------------------------------------------------------


async def test_a_new_session_is_empty_and_can_be_found(sessions: SessionService) -> None:
    created = await sessions.create(KEY, {"k": "v"})

    assert created == await sessions.get(KEY)
    assert created == Session(
        "s1", "u1", "app", {"k": "v"}, [], created.updated_at, created.revision
    )
    assert created.key == KEY


async def test_a_session_without_an_id_gets_one(sessions: SessionService) -> None:
    one = await sessions.create(SessionKey("app", "u1"))
    other = await sessions.create(SessionKey("app", "u1"))

    assert one.id
    assert one.id != other.id
    assert (await sessions.get(one.key)).id == one.id


async def test_a_taken_key_is_refused_and_what_has_it_is_unchanged(
    sessions: SessionService,
) -> None:
    await sessions.create(KEY, {"k": "v"})

    with pytest.raises(SessionExists, match='"s1"'):
        await sessions.create(KEY, {"k": "other", "app:k": "other"})

    assert (await sessions.get(KEY)).state == {"k": "v"}


async def test_one_id_may_be_used_by_two_users_and_two_apps(sessions: SessionService) -> None:
    keys = [KEY, SessionKey("app", "u2", "s1"), SessionKey("app2", "u1", "s1")]
    for key in keys:
        await sessions.create(key, {"mine": key.user_id})

    assert [(await sessions.get(key)).state for key in keys] == [
        {"mine": "u1"},
        {"mine": "u2"},
        {"mine": "u1"},
    ]


@pytest.mark.spec("14.9")
async def test_of_many_who_create_one_session_at_once_one_succeeds(
    sessions: SessionService,
) -> None:
    outcomes: list[bool] = []

    async def create() -> None:
        try:
            await sessions.create(KEY)
        except SessionExists:
            outcomes.append(False)
        else:
            outcomes.append(True)

    async with anyio.create_task_group() as group:
        for _ in range(512):
            group.start_soon(create)

    assert (len(outcomes), sum(outcomes)) == (512, 1)


@pytest.mark.spec("14.10")
async def test_ids_and_times_come_from_the_makers_that_are_given(
    make_sessions: Callable[..., SessionService],
) -> None:
    sessions = make_sessions(clock=lambda: THEN, new_id=lambda: "fixed")

    created = await sessions.create(SessionKey("app", "u1"))

    assert (created.id, created.updated_at) == ("fixed", THEN)
    assert (await sessions.get(created.key)).updated_at == THEN


@pytest.mark.parametrize(
    "key",
    [
        SessionKey("", "u1", "s1"),
        SessionKey("app", "", "s1"),
        SessionKey("app", "u1", "s\0"),
        SessionKey("app", "u1", "\ud800"),
        SessionKey("app", "u1", "s" * 256),
    ],
    ids=["no app", "no user", "NUL", "surrogate", "too long"],
)
async def test_a_key_that_names_nothing_is_refused(
    sessions: SessionService, key: SessionKey
) -> None:
    with pytest.raises(StoreError, match=r"the (app name|user id|session id) "):
        await sessions.create(key)

    with pytest.raises(StoreError, match=r"the (app name|user id|session id) "):
        await sessions.get(key)


async def test_a_session_that_is_not_there_is_not_found(sessions: SessionService) -> None:
    with pytest.raises(SessionNotFound, match='"s1"'):
        await sessions.get(KEY)

    with pytest.raises(StoreError, match="the session id is missing"):
        await sessions.get(SessionKey("app", "u1"))


async def test_the_newest_events_are_chosen_first_then_the_later_ones(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY)
    moments = [THEN + timedelta(seconds=second) for second in range(5)]
    for number, moment in enumerate(moments):
        await sessions.append_event(held, said(str(number), moment))

    async def found(**filters: Any) -> str:
        events = (await sessions.get(KEY, **filters)).events
        return "".join(event.id.removeprefix("event-") for event in events)

    assert await found() == "01234"
    assert await found(newest=2) == "34"
    assert await found(newest=9) == "01234"
    assert await found(newest=0) == ""
    assert await found(after=moments[3]) == "34"
    assert await found(after=moments[3] + timedelta(microseconds=1)) == "4"
    assert await found(newest=3, after=moments[1]) == "234"
    assert await found(newest=3, after=moments[4]) == "4"
    assert await found(after=THEN + timedelta(days=1)) == ""


async def test_a_part_of_the_history_can_be_appended_to(sessions: SessionService) -> None:
    held = await sessions.create(KEY)
    for number in range(3):
        await sessions.append_event(held, said(str(number)))

    part = await sessions.get(KEY, newest=1)
    await sessions.append_event(part, said("3"))

    assert [event.id for event in (await sessions.get(KEY)).events] == [
        f"event-{number}" for number in range(4)
    ]


async def test_sessions_are_listed_without_events(sessions: SessionService) -> None:
    keys = [
        SessionKey("app", "u1", "s1"),
        SessionKey("app", "u1", "s2"),
        SessionKey("app", "u2", "s1"),
    ]
    for key in reversed(keys):
        await sessions.create(key, {"mine": key.session_id, "user:name": key.user_id})

    await sessions.create(SessionKey("app2", "u1", "s1"))
    held = await sessions.get(keys[0])
    await sessions.append_event(held, said("hi", **{"app:theme": "dark"}))

    every = await sessions.list("app")
    assert [session.key for session in every] == keys
    assert [session.state for session in every] == [
        {"mine": "s1", "app:theme": "dark", "user:name": "u1"},
        {"mine": "s2", "app:theme": "dark", "user:name": "u1"},
        {"mine": "s1", "app:theme": "dark", "user:name": "u2"},
    ]
    assert [session.events for session in every] == [[], [], []]
    assert every[0].updated_at == THEN
    assert [session.key for session in await sessions.list("app", "u2")] == keys[2:]
    assert list(await sessions.list("nobody's app")) == []


async def test_a_deleted_session_is_gone_and_what_is_shared_stays(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY, {"k": "v", "user:name": "Ann", "app:theme": "dark"})
    await sessions.append_event(held, said("hi"))
    await sessions.create(SessionKey("app", "u1", "s2"))

    await sessions.delete(KEY)
    await sessions.delete(KEY)

    with pytest.raises(SessionNotFound):
        await sessions.get(KEY)

    assert (await sessions.get(SessionKey("app", "u1", "s2"))).state == {
        "user:name": "Ann",
        "app:theme": "dark",
    }
    anew = await sessions.create(KEY)
    assert (anew.events, "k" in anew.state) == ([], False)
    assert await sessions.get(KEY) == anew


async def test_a_copy_of_a_deleted_session_does_not_write_into_its_successor(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY)
    await sessions.delete(KEY)
    with pytest.raises(SessionNotFound):
        await sessions.append_event(held, said("hi"))

    await sessions.create(KEY)
    with pytest.raises(StaleSession):
        await sessions.append_event(held, said("hi"))

    assert (await sessions.get(KEY)).events == []


# --- append --------------------------------------------------------------------------------

RICH = Event(
    id="rich",
    timestamp=THEN,
    invocation_id="e-1",
    author="planner",
    branch="root.planner",
    isolation_scope="task-1",
    content=Content(
        "model",
        (
            Part(text="天气 🌤 \ud800 \0", thought=True, thought_signature=b"\x00\xff"),
            Part(function_call=FunctionCall("1", "f", {"n": 2**70, "x": 0.1, "none": None})),
            Part(function_response=FunctionResponse("1", "f", {"ok": [True, {}]})),
            Part(inline_data=Blob("image/png", bytes(range(256)))),
        ),
    ),
    actions=EventActions(
        artifact_delta={"report.pdf": 2},
        requested_tool_confirmations={"1": ToolConfirmation("sure?", payload={"a": 1}, hash="ab")},
        skip_summarization=True,
        transfer_to_agent="writer",
        escalate=True,
    ),
    long_running_tool_ids=("1",),
    routes=("reviewer",),
    requested_input=RequestInput(interrupt_id="i", message="?", payload=[1]),
    output={"summary": "ok"},
    node_info=NodeInfo(path="wf/a@1", output_for=("wf",)),
    usage_metadata={"totalTokenCount": 3},
)


@pytest.mark.spec("14.8")
async def test_an_event_comes_back_whole(sessions: SessionService) -> None:
    held = await sessions.create(KEY)

    await sessions.append_event(held, RICH)

    assert held.events == [RICH]
    assert (await sessions.get(KEY)).events == [RICH]
    assert held == await sessions.get(KEY)


@pytest.mark.spec("14.1")
async def test_a_partial_event_changes_nothing(sessions: SessionService) -> None:
    held = await sessions.create(KEY)
    before = deepcopy(held)

    await sessions.append_event(held, replace(said("hi", k="v"), partial=True))

    assert held == before == await sessions.get(KEY)


@pytest.mark.spec("14.2")
async def test_an_event_of_no_session_is_refused(sessions: SessionService) -> None:
    held = Session("s1", "u1", "app")

    with pytest.raises(SessionNotFound, match='"s1"'):
        await sessions.append_event(held, said("hi", k="v"))

    assert held == Session("s1", "u1", "app")


async def test_what_is_no_session_and_what_is_no_event_are_refused(
    sessions: SessionService,
) -> None:
    held: Any = await sessions.create(KEY)
    nothing: Any = None

    with pytest.raises(TypeError, match="a Session is appended to, not a NoneType"):
        await sessions.append_event(nothing, said("hi"))

    with pytest.raises(TypeError, match="an Event is appended, not a NoneType"):
        await sessions.append_event(held, nothing)


async def test_an_append_reaches_what_rests_and_what_is_held(sessions: SessionService) -> None:
    held = await sessions.create(KEY, {"a": 1})

    await sessions.append_event(held, said("hi", b={"c": [2]}))

    assert held.state == {"a": 1, "b": {"c": [2]}}
    assert held.updated_at == THEN
    assert held == await sessions.get(KEY)


@pytest.mark.spec("14.3")
async def test_state_of_the_app_is_seen_by_all_its_users(sessions: SessionService) -> None:
    held = await sessions.create(KEY, {"app:k1": "v1"})
    await sessions.append_event(held, said("hi", **{"app:k2": "v2"}))

    other = await sessions.create(SessionKey("app", "u2", "s2"))
    foreign = await sessions.create(SessionKey("app2", "u1", "s1"))

    assert other.state == {"app:k1": "v1", "app:k2": "v2"}
    assert foreign.state == {}


@pytest.mark.spec("14.4")
async def test_state_of_a_user_is_seen_in_all_sessions_of_that_user_alone(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY, {"user:k1": "v1"})
    await sessions.append_event(held, said("hi", **{"user:k2": "v2"}))

    mine = await sessions.create(SessionKey("app", "u1", "s2"))
    theirs = await sessions.create(SessionKey("app", "u2", "s1"))

    assert mine.state == {"user:k1": "v1", "user:k2": "v2"}
    assert theirs.state == {}


@pytest.mark.spec("14.5")
async def test_state_of_a_session_is_seen_in_it_alone(sessions: SessionService) -> None:
    held = await sessions.create(KEY, {"sk1": "v1"})
    await sessions.append_event(held, said("hi", sk2="v2"))

    assert (await sessions.create(SessionKey("app", "u1", "s2"))).state == {}
    assert (await sessions.get(KEY)).state == {"sk1": "v1", "sk2": "v2"}


@pytest.mark.spec("14.6")
async def test_temporary_state_never_rests(sessions: SessionService) -> None:
    held = await sessions.create(KEY, {"sk": "v1", "temp:k0": "v0"})
    assert held.state == {"sk": "v1", "temp:k0": "v0"}

    await sessions.append_event(held, said("hi", sk="v2", **{"temp:k1": "v1"}))

    stored = await sessions.get(KEY)
    assert stored.state == {"sk": "v2"}
    assert stored.events[0].actions.state_delta == {"sk": "v2"}


@pytest.mark.spec("14.7")
async def test_the_callers_event_is_never_changed(sessions: SessionService) -> None:
    held = await sessions.create(KEY)
    event = said("hi", sk="v", **{"temp:k1": "v1"})
    before = deepcopy(event)

    await sessions.append_event(held, event)

    assert event == before
    assert held.events == [replace(event, actions=EventActions({"sk": "v"}))]
    assert held.state == {"sk": "v", "temp:k1": "v1"}


@pytest.mark.spec("14.11")
async def test_temporary_state_is_read_by_the_next_step_and_gone_in_the_next_run(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY)
    run = InvocationContext(held)
    tool = ToolContext(run, "call-1")

    tool.state.set("temp:x", 1)
    await sessions.append_event(held, Event(author="agent", actions=tool.actions))

    assert ToolContext(run, "call-2").state.get("temp:x") == 1
    assert "temp:x" not in (await sessions.get(KEY)).state


async def test_temporary_state_need_not_be_json(sessions: SessionService) -> None:
    held = await sessions.create(KEY, {"temp:a": object})

    await sessions.append_event(held, said("hi", **{"temp:b": object}))

    assert held.state == {"temp:a": object, "temp:b": object}


@pytest.mark.parametrize("key", ["k", "app:k", "user:k"])
async def test_state_that_is_no_json_is_refused_by_its_key_and_nothing_is_kept(
    sessions: SessionService, key: str
) -> None:
    held = await sessions.create(KEY)
    before = deepcopy(held)

    with pytest.raises(StoreError, match=r"event-hi.* is not JSON"):
        await sessions.append_event(held, said("hi", a=1, **{key: {1, 2}}))

    with pytest.raises(StoreError, match=r'"k".* is not JSON'):
        await sessions.create(SessionKey("app", "u1", "s2"), {"app:a": 1, key: {1, 2}})

    assert held == before == await sessions.get(KEY)
    with pytest.raises(SessionNotFound):
        await sessions.get(SessionKey("app", "u1", "s2"))


async def test_odd_keys_and_values_of_state_come_back_as_they_were(
    sessions: SessionService,
) -> None:
    odd: dict[str, Any] = {
        "": None,
        "app:": 2**70,
        "user:天气": "\0\ud800",
        "a'b\"c%s": [0.1, -0.0, {"": []}],
        "APP:x": 1,
        "app:temp:x": 2,
    }

    created = await sessions.create(KEY, odd)

    assert created.state == odd == (await sessions.get(KEY)).state


async def test_what_is_held_shares_nothing_with_what_rests(sessions: SessionService) -> None:
    given: dict[str, Any] = {"list": [1]}
    held = await sessions.create(KEY, given)
    await sessions.append_event(held, said("hi", more=[2]))
    given["list"].append("changed")
    held.state["list"].append("changed")
    held.state["more"].append("changed")
    held.events[0].actions.state_delta["more"] = "changed"
    held.events.clear()
    one = await sessions.get(KEY)
    one.state["list"].append("changed")

    stored = await sessions.get(KEY)

    assert stored.state == {"list": [1], "more": [2]}
    assert stored.events == [said("hi", more=[2])]


# --- stale ---------------------------------------------------------------------------------


async def test_a_copy_that_is_behind_is_told_so_and_writes_nothing(
    sessions: SessionService,
) -> None:
    await sessions.create(KEY)
    first, second = await sessions.get(KEY), await sessions.get(KEY)
    await sessions.append_event(first, said("first", k="first", **{"app:k": "first"}))
    before = deepcopy(second)

    with pytest.raises(StaleSession, match='session "s1" has changed since it was read'):
        await sessions.append_event(second, said("second", k="second", **{"app:k": "second"}))

    assert second == before
    assert await sessions.get(KEY) == first

    anew = await sessions.get(KEY)
    await sessions.append_event(anew, said("second", k="second"))
    assert (await sessions.get(KEY)).state == {"k": "second", "app:k": "first"}


async def test_of_two_that_append_at_once_one_is_stale(sessions: SessionService) -> None:
    await sessions.create(KEY)
    outcomes: list[str] = []

    async def append(name: str) -> None:
        held = await sessions.get(KEY)
        everybody_holds_it.set()
        await everybody_holds_it.wait()
        try:
            await sessions.append_event(held, said(name))
        except StaleSession:
            outcomes.append("stale")
        else:
            outcomes.append(name)

    everybody_holds_it = Barrier(8)
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(append, str(number))

    winners = [name for name in outcomes if name != "stale"]
    stored = await sessions.get(KEY)
    assert len(winners) == 1
    assert [event.id for event in stored.events] == [f"event-{winners[0]}"]


class Barrier:
    """Opens when as many as are awaited have come."""

    def __init__(self, awaited: int) -> None:
        self._missing = awaited
        self._open = anyio.Event()

    def set(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._open.set()

    async def wait(self) -> None:
        await self._open.wait()


async def test_a_caller_that_is_cancelled_still_holds_what_rests(
    sessions: SessionService,
) -> None:
    held = await sessions.create(KEY)
    for number in range(20):
        async with anyio.create_task_group() as group:
            group.start_soon(sessions.append_event, held, said(str(number)))
            for _ in range(number % 5):
                await anyio.lowlevel.checkpoint()

            group.cancel_scope.cancel()

        assert held == await sessions.get(KEY)


async def test_many_sessions_write_shared_state_at_once(sessions: SessionService) -> None:
    async def talk(number: int) -> None:
        held = await sessions.create(SessionKey("app", "u1", f"s{number}"))
        for turn in range(3):
            shared = {f"app:{key}": number for key in ("a", "b", "c")}
            await sessions.append_event(held, said(f"{number}-{turn}", **shared))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(talk, number)

    listed = await sessions.list("app")
    assert len(listed) == 10
    assert {session.state["app:a"] for session in listed} <= set(range(10))
    assert {tuple(session.state.values()) for session in listed} == {
        (listed[0].state["app:a"],) * 3
    }
