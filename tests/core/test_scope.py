"""The chain that work hangs on: deadlines, calling off, values."""

from __future__ import annotations

import anyio
import pytest

from bridge.core.context import Context, InvocationContext
from bridge.core.scope import BACKGROUND, Key, Scope
from bridge.core.session import Session
from bridge.errors import CalledOff, CapabilityError, TimedOut, ToolError

TREE: Key[str] = Key("agent tree")
OTHER: Key[str] = Key("agent tree")


def test_a_value_is_found_below_where_it_was_set_and_nowhere_else() -> None:
    outer = Scope().with_value(TREE, "root")
    inner = outer.with_timeout(60).with_value(TREE, "leaf")

    assert (outer.value(TREE), inner.value(TREE)) == ("root", "leaf")
    assert BACKGROUND.value(TREE) is None
    assert BACKGROUND.value(TREE, "default") == "default"


def test_a_value_of_none_is_there() -> None:
    key: Key[None] = Key("nothing")
    Scope().with_value(key, None).require(key)


def test_two_keys_of_one_name_are_two_keys() -> None:
    assert Scope().with_value(TREE, "root").value(OTHER) is None


@pytest.mark.spec("system-49")
def test_a_context_on_a_foreign_chain_has_lost_the_runs_values_and_says_so() -> None:
    run = Context(InvocationContext(Session("s"), scope=Scope().with_value(TREE, "root")))
    moved = run.with_context(Scope())

    assert run.scope.require(TREE) == "root"
    with pytest.raises(CapabilityError, match="carries no agent tree"):
        moved.scope.require(TREE)


def test_a_deadline_below_is_never_later_than_one_above() -> None:
    outer = Scope().with_timeout(10)

    assert outer.with_timeout(60).deadline == outer.deadline
    assert outer.with_timeout(1).deadline < outer.deadline
    assert outer.with_value(TREE, "x").deadline == outer.deadline


@pytest.mark.spec("system-49")
async def test_work_is_interrupted_at_its_deadline() -> None:
    scope = Scope().with_timeout(0.01)

    with pytest.raises(TimedOut), scope.enforced():
        await anyio.sleep_forever()

    assert isinstance(scope.error, TimedOut)


async def test_work_below_is_interrupted_when_what_is_above_is_called_off() -> None:
    above, call_off = Scope().with_cancel()
    below = above.with_timeout(60).with_value(TREE, "x")
    begun = anyio.Event()
    outcomes: list[object] = []

    async def work() -> None:
        try:
            with below.enforced():
                begun.set()
                await anyio.sleep_forever()
        except ToolError as exc:
            outcomes.append(type(exc))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await begun.wait()
        call_off()

    assert outcomes == [CalledOff]
    assert (type(above.error), type(below.error)) == (CalledOff, CalledOff)


async def test_to_call_off_a_child_leaves_its_parent_and_its_siblings_alone() -> None:
    parent, _ = Scope().with_cancel()
    child, call_off = parent.with_cancel()
    sibling, _ = parent.with_cancel()

    call_off()

    assert (parent.done, child.done, sibling.done) == (False, True, False)
    with sibling.enforced():
        await anyio.lowlevel.checkpoint()


async def test_work_that_is_called_off_already_does_not_begin() -> None:
    scope, call_off = Scope().with_cancel()
    call_off()
    begun = False

    with pytest.raises(CalledOff), scope.enforced():
        begun = True

    assert not begun


def test_the_first_reason_stays_the_reason() -> None:
    called_off, call_off = Scope().with_timeout(0.0).with_cancel()
    call_off()
    assert isinstance(called_off.error, TimedOut)

    early, call_off_early = Scope().with_timeout(60).with_cancel()
    call_off_early()
    call_off_early()
    assert isinstance(early.error, CalledOff)


async def test_work_that_ends_in_time_is_undisturbed_and_leaves_nothing_behind() -> None:
    scope, call_off = Scope().with_cancel()
    for _ in range(3):
        with scope.enforced():
            await anyio.lowlevel.checkpoint()

    assert scope._guards == set()
    call_off()


async def test_an_error_inside_passes_as_it_is() -> None:
    with pytest.raises(KeyError), Scope().with_timeout(60).enforced():
        raise KeyError("mine")


async def test_cancellation_from_outside_passes_as_cancellation() -> None:
    reached = False
    with anyio.CancelScope() as outside:
        with Scope().with_timeout(60).enforced():
            outside.cancel()
            await anyio.sleep_forever()

        reached = True

    assert outside.cancelled_caught
    assert not reached


def test_work_without_awaits_can_ask() -> None:
    scope = Scope().with_timeout(0.0)

    with pytest.raises(TimedOut):
        scope.check()

    BACKGROUND.check()


def test_a_time_out_is_also_the_languages_own() -> None:
    with pytest.raises(TimeoutError):
        Scope().with_timeout(0.0).check()


@pytest.mark.spec("system-55")
async def test_end_and_cancel_and_time_out_never_set_each_other() -> None:
    run = Context(InvocationContext(Session("s")))
    timed = run.with_agent_timeout(0.0)
    cancelled, call_off = run.with_agent_cancel()
    call_off()

    assert (type(timed.scope.error), type(cancelled.scope.error)) == (TimedOut, CalledOff)
    assert (run.ended, timed.ended, cancelled.ended) == (False, False, False)

    run.end_invocation()
    assert run.ended
    assert run.scope.error is None
