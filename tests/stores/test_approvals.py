"""The ledger: a confirmation is spent once, by whoever comes first, and for ever."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from bridge.core.content import FunctionCall
from bridge.core.session import SessionKey
from bridge.core.stores import ApprovalStore, Decision
from bridge.errors import StoreError
from bridge.stores.database import open_database
from bridge.stores.sql_approvals import SqlApprovalStore

KEY = SessionKey("app", "u1", "s1")
THEN = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
CALL = FunctionCall("call-1", "buy_report", {"city": "Tokyo", "amount": 2**70})
YES = Decision(confirmation_id="confirm-1", confirmed=True, call=CALL, hash="ab12")
NO = replace(YES, confirmed=False)


def ticking() -> Callable[[], datetime]:
    """A clock that is one second later each time it is read."""
    moments = iter(THEN + timedelta(seconds=second) for second in range(100))
    return lambda: next(moments)


async def test_an_unspent_confirmation_has_no_decision(approvals: ApprovalStore) -> None:
    assert await approvals.find(KEY, "confirm-1") is None


async def test_a_decision_is_kept_as_it_was_made(make_approvals: Any) -> None:
    approvals = make_approvals(clock=ticking())
    edited = replace(YES, args={"city": "Osaka", "amount": 1})

    assert await approvals.spend(KEY, edited)

    assert await approvals.find(KEY, "confirm-1") == replace(edited, decided_at=THEN)


@pytest.mark.parametrize(
    ("first", "second"), [(YES, YES), (YES, NO), (NO, YES), (NO, NO)], ids=["yy", "yn", "ny", "nn"]
)
async def test_the_first_decision_stands(
    approvals: ApprovalStore, first: Decision, second: Decision
) -> None:
    assert await approvals.spend(KEY, first)
    stored = await approvals.find(KEY, "confirm-1")

    assert not await approvals.spend(KEY, replace(second, args={"city": "Osaka"}))

    assert await approvals.find(KEY, "confirm-1") == stored
    assert stored is not None
    assert (stored.confirmed, stored.args) == (first.confirmed, None)


async def test_arguments_edited_to_nothing_are_not_unedited_ones(approvals: ApprovalStore) -> None:
    await approvals.spend(KEY, replace(YES, args={}))

    found = await approvals.find(KEY, "confirm-1")
    assert found is not None
    assert found.args == {}


@pytest.mark.parametrize(
    "other",
    [SessionKey("app2", "u1", "s1"), SessionKey("app", "u2", "s1"), SessionKey("app", "u1", "s2")],
    ids=["app", "user", "session"],
)
async def test_nobody_spends_what_is_anothers(approvals: ApprovalStore, other: SessionKey) -> None:
    assert await approvals.spend(other, NO)

    assert await approvals.find(KEY, "confirm-1") is None
    assert await approvals.spend(KEY, YES)


async def test_of_many_who_spend_at_once_one_succeeds(approvals: ApprovalStore) -> None:
    outcomes: list[bool] = []

    async def spend(number: int) -> None:
        mine = replace(YES, call=replace(CALL, id=str(number)), confirmed=number % 2 == 0)
        outcomes.append(await approvals.spend(KEY, mine))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(spend, number)

    assert (len(outcomes), sum(outcomes)) == (50, 1)


@pytest.mark.parametrize("response", [{"result": [1, "天"]}, {}, None], ids=repr)
async def test_what_came_of_a_decision_is_kept_once(make_approvals: Any, response: Any) -> None:
    approvals = make_approvals(clock=ticking())
    await approvals.spend(KEY, YES)

    assert await approvals.record(KEY, "confirm-1", response)
    assert not await approvals.record(KEY, "confirm-1", {"result": "other"})

    assert await approvals.find(KEY, "confirm-1") == replace(
        YES,
        decided_at=THEN,
        answered_at=THEN + timedelta(seconds=1),
        response=response,
    )


async def test_nothing_can_come_of_what_is_not_spent(approvals: ApprovalStore) -> None:
    with pytest.raises(StoreError, match='"confirm-1" is not spent yet'):
        await approvals.record(KEY, "confirm-1", {"result": 1})

    assert await approvals.find(KEY, "confirm-1") is None


async def test_what_the_caller_says_came_of_it_is_not_believed_when_it_is_spent(
    approvals: ApprovalStore,
) -> None:
    await approvals.spend(KEY, replace(YES, answered_at=THEN, response={"result": "forged"}))

    found = await approvals.find(KEY, "confirm-1")
    assert found is not None
    assert (found.answered_at, found.response) == (None, None)


async def test_a_decision_shares_nothing_with_what_rests(approvals: ApprovalStore) -> None:
    given = deepcopy(replace(YES, args={"list": [1]}))
    response: dict[str, Any] = {"list": [1]}
    await approvals.spend(KEY, given)
    await approvals.record(KEY, "confirm-1", response)
    before = deepcopy(await approvals.find(KEY, "confirm-1"))
    given.call.args["city"] = "changed"
    response["list"].append("changed")
    found = await approvals.find(KEY, "confirm-1")
    assert found is not None and found.args is not None and found.response is not None
    found.args["list"].append("changed")
    found.response["list"].append("changed")

    assert await approvals.find(KEY, "confirm-1") == before


@pytest.mark.parametrize("confirmation_id", ["", "\0", "\ud800", "c" * 256], ids=ascii)
async def test_an_id_that_names_nothing_is_refused(
    approvals: ApprovalStore, confirmation_id: str
) -> None:
    for use in (
        lambda: approvals.spend(KEY, replace(YES, confirmation_id=confirmation_id)),
        lambda: approvals.find(KEY, confirmation_id),
        lambda: approvals.record(KEY, confirmation_id, None),
    ):
        with pytest.raises(StoreError, match="the confirmation id"):
            await use()


async def test_what_is_no_json_is_refused(approvals: ApprovalStore) -> None:
    with pytest.raises(StoreError, match=r"the edited arguments of a decision .* is not JSON"):
        await approvals.spend(KEY, replace(YES, args={"a": {1}}))

    assert await approvals.spend(KEY, YES)
    with pytest.raises(StoreError, match=r"the response to a decision .* is not JSON"):
        await approvals.record(KEY, "confirm-1", {"a": {1}})

    assert await approvals.record(KEY, "confirm-1", None)


async def test_a_decision_outlives_the_process_that_took_it(database_url: str) -> None:
    async with open_database(database_url) as database:
        approvals = SqlApprovalStore(database, clock=ticking())
        await approvals.spend(KEY, replace(YES, args={"city": "Osaka"}))
        await approvals.record(KEY, "confirm-1", {"result": 1})
        before = await approvals.find(KEY, "confirm-1")

    async with open_database(database_url) as database:
        approvals = SqlApprovalStore(database)
        assert not await approvals.spend(KEY, YES)
        assert await approvals.find(KEY, "confirm-1") == before
