"""The gate: who asks, what a person is shown, and which yes fits which call."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import anyio
import pytest

from bridge.core.confirmation import Subject, ToolConfirmation, call_hash
from bridge.core.content_json import confirmation_to_json
from bridge.core.context import ToolContext, local_context
from bridge.errors import (
    BridgeError,
    ConfirmationRejected,
    ConfirmationRequired,
    InvalidArguments,
)
from bridge.tools.gate import Provider, Rule, check

SUBJECT = Subject("bank", "pay", "d1")
ARGS = {"amount": 100}
HASH = call_hash("ann", SUBJECT, ARGS)
ALWAYS = Rule("pay", require=True)


def desk(answer: ToolConfirmation | None = None, user_id: str = "ann") -> ToolContext:
    return ToolContext(local_context(user_id), "c1", None, answer)


async def asked(rule: Rule, ctx: ToolContext | None = None, args: Any = ARGS) -> bool:
    try:
        await check(ctx or desk(), rule, SUBJECT, args)
    except ConfirmationRequired:
        return True

    return False


async def test_a_call_without_a_decision_is_asked_and_stops() -> None:
    ctx = desk()

    with pytest.raises(ConfirmationRequired, match=r'"pay" needs .*approve or reject'):
        await check(ctx, ALWAYS, SUBJECT, ARGS)

    assert ctx.actions.skip_summarization
    assert ctx.actions.requested_tool_confirmations == {
        "c1": ToolConfirmation(
            hint='Please approve or reject this call of "pay".',
            payload={"arguments": ARGS, "hash": HASH, "tool": "pay", "upstream": "bank"},
        )
    }


async def test_what_a_person_is_shown_does_not_change_with_the_arguments() -> None:
    ctx, args = desk(), {"amounts": [1]}
    assert await asked(ALWAYS, ctx, args)

    args["amounts"].append(2)

    [question] = ctx.actions.requested_tool_confirmations.values()
    assert question.payload["arguments"] == {"amounts": [1]}


async def test_a_no_stops_the_call_and_asks_nothing() -> None:
    ctx = desk(ToolConfirmation(confirmed=False))

    with pytest.raises(ConfirmationRejected, match='"pay" was rejected'):
        await check(ctx, ALWAYS, SUBJECT, ARGS)

    assert not ctx.actions.skip_summarization
    assert ctx.actions.requested_tool_confirmations == {}


async def test_a_yes_lets_exactly_its_call_pass() -> None:
    assert not await asked(ALWAYS, desk(ToolConfirmation(confirmed=True, hash=HASH)))


async def test_a_yes_without_a_hash_fits_any_arguments() -> None:
    assert not await asked(ALWAYS, desk(ToolConfirmation(confirmed=True)), {"amount": 999})


async def test_a_yes_to_other_arguments_is_asked_anew_with_the_new_hash() -> None:
    ctx = desk(ToolConfirmation(confirmed=True, hash=HASH))

    assert await asked(ALWAYS, ctx, {"amount": 999})

    [question] = ctx.actions.requested_tool_confirmations.values()
    assert question.payload["hash"] == call_hash("ann", SUBJECT, {"amount": 999})


async def test_a_yes_of_one_principal_is_not_a_yes_of_another() -> None:
    ctx = desk(ToolConfirmation(confirmed=True, hash=HASH), user_id="bob")
    assert await asked(ALWAYS, ctx)


async def test_a_yes_does_not_outlive_a_change_of_the_definition() -> None:
    ctx = desk(ToolConfirmation(confirmed=True, hash=HASH))

    with pytest.raises(ConfirmationRequired):
        await check(ctx, ALWAYS, Subject("bank", "pay", "d2"), ARGS)


async def test_a_decision_that_is_there_beats_the_policy_without_asking_it() -> None:
    def never(name: str, args: dict[str, Any]) -> bool:
        raise AssertionError("the provider was asked")

    rule = Rule("pay", require=False, provider=never)

    assert not await asked(rule, desk(ToolConfirmation(confirmed=True, hash=HASH)))
    with pytest.raises(ConfirmationRejected):
        await check(desk(ToolConfirmation(confirmed=False)), rule, SUBJECT, ARGS)


async def test_without_a_provider_the_flag_decides() -> None:
    assert await asked(Rule("pay", require=True))
    assert not await asked(Rule("pay", require=False))


@pytest.mark.spec("1.3")
@pytest.mark.spec("system-26")
async def test_a_provider_wins_over_the_flag_both_ways() -> None:
    async def large(name: str, args: dict[str, Any]) -> bool:
        return name == "pay" and args["amount"] > 50

    def small(name: str, args: dict[str, Any]) -> bool:
        return name == "pay" and args["amount"] <= 50

    assert await asked(Rule("pay", require=False, provider=large))
    assert not await asked(Rule("pay", require=True, provider=small))


async def test_a_provider_sees_what_the_tool_made_of_the_arguments() -> None:
    seen: list[dict[str, Any]] = []

    def note(name: str, args: dict[str, Any]) -> bool:
        seen.append(args)
        return True

    ctx = desk()
    with pytest.raises(ConfirmationRequired):
        await check(ctx, Rule("pay", False, note), SUBJECT, ARGS, converted={"amount": 100.0})

    assert seen == [{"amount": 100.0}]
    [question] = ctx.actions.requested_tool_confirmations.values()
    assert question.payload["arguments"] == ARGS


def failing(name: str, args: dict[str, Any]) -> bool:
    raise LookupError("the policy server is away")


async def failing_later(name: str, args: dict[str, Any]) -> bool:
    raise LookupError("the policy server is away")


def saying_nothing(name: str, args: dict[str, Any]) -> Any:
    return None


@pytest.mark.parametrize("provider", [failing, failing_later, saying_nothing])
async def test_a_provider_that_gives_no_answer_asks_and_is_logged(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "bridge"):
        rule = Rule("pay", require=False, provider=provider)
        assert await asked(rule, args={"amount": 918273645})

    assert 'the confirmation provider of "pay"' in caplog.text
    assert "918273645" not in caplog.text


async def test_two_rules_are_one_question_that_either_may_ask() -> None:
    calm, strict = Rule("pay", require=False), Rule("other", require=True)

    assert await asked(calm.and_also(strict))
    assert await asked(strict.and_also(calm))
    assert not await asked(calm.and_also(calm))
    ctx = desk()
    assert await asked(strict.and_also(strict), ctx)
    assert len(ctx.actions.requested_tool_confirmations) == 1


async def test_each_joined_rule_is_told_its_own_name() -> None:
    told: list[str] = []

    def note(name: str, args: dict[str, Any]) -> bool:
        told.append(name)
        return False

    rule = Rule("own", False, note).and_also(Rule("offered", False, note))

    assert rule.has_provider
    assert not await asked(rule)
    assert told == ["own", "offered"]


def test_a_rule_knows_whether_it_looks_at_arguments() -> None:
    assert not Rule("pay", require=True).and_also(Rule("pay", require=False)).has_provider


async def test_arguments_that_cannot_be_shown_are_refused_and_not_asked() -> None:
    ctx = desk()

    with pytest.raises(InvalidArguments, match="cannot be approved"):
        await check(ctx, ALWAYS, SUBJECT, {"amount": float("nan")})

    assert ctx.actions.requested_tool_confirmations == {}


async def test_a_context_without_a_call_cannot_ask() -> None:
    with pytest.raises(BridgeError):
        await check(ToolContext.preparing(local_context()), ALWAYS, SUBJECT, ARGS)


async def test_a_yes_lets_one_call_pass_and_the_next_is_asked_anew() -> None:
    yes = ToolConfirmation(confirmed=True, hash=HASH)
    again = desk(yes)

    assert not await asked(ALWAYS, desk(yes))

    assert await asked(ALWAYS, again)
    assert await asked(ALWAYS, desk(yes))
    [question] = again.actions.requested_tool_confirmations.values()
    assert question.payload["hash"] == HASH


async def test_a_yes_without_a_hash_is_used_once_too() -> None:
    yes = ToolConfirmation(confirmed=True)

    assert not await asked(ALWAYS, desk(yes), {"amount": 1})
    assert await asked(ALWAYS, desk(yes), {"amount": 2})


async def test_a_yes_is_not_used_up_by_a_call_that_it_does_not_fit() -> None:
    yes = ToolConfirmation(confirmed=True, hash=HASH)

    assert await asked(ALWAYS, desk(yes), {"amount": 999})
    assert not await asked(ALWAYS, desk(yes))


async def test_a_tool_that_is_run_twice_in_one_call_is_asked_anew() -> None:
    ctx = desk(ToolConfirmation(confirmed=True, hash=HASH))

    assert not await asked(ALWAYS, ctx)
    assert await asked(ALWAYS, ctx)


async def test_a_gate_inside_a_gate_of_one_call_takes_the_same_yes() -> None:
    yes = ToolConfirmation(confirmed=True)
    ctx, inner = desk(yes), Subject("local", "inner", "d9")

    await check(ctx, ALWAYS, SUBJECT, ARGS)
    await check(ctx, Rule("inner", require=True), inner, ARGS)

    with pytest.raises(ConfirmationRequired):
        await check(desk(yes), Rule("inner", require=True), inner, ARGS)


async def test_of_many_calls_that_race_for_a_yes_one_passes() -> None:
    yes = ToolConfirmation(confirmed=True, hash=HASH)
    passed: list[bool] = []

    def in_a_loop_of_its_own() -> None:
        passed.append(not anyio.run(asked, ALWAYS, desk(yes)))

    async with anyio.create_task_group() as tasks:
        for _ in range(16):
            tasks.start_soon(anyio.to_thread.run_sync, in_a_loop_of_its_own)

    assert sorted(passed) == [False] * 15 + [True]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda yes: pickle.loads(pickle.dumps(yes))]
)
async def test_a_copy_of_a_used_yes_is_used_and_otherwise_the_same(
    copied: Callable[[ToolConfirmation], ToolConfirmation],
) -> None:
    yes = ToolConfirmation("sure?", confirmed=True, payload={"a": [1]}, hash=HASH)
    fresh = copied(yes)
    assert not await asked(ALWAYS, desk(yes))
    used = copied(yes)

    assert fresh == used == yes
    assert repr(fresh) == repr(used) == repr(yes)
    assert asdict(used) == asdict(fresh)
    assert list(asdict(used)) == ["hint", "confirmed", "payload", "hash"]
    assert confirmation_to_json(used) == confirmation_to_json(fresh)
    assert not await asked(ALWAYS, desk(fresh))
    assert await asked(ALWAYS, desk(used))


def test_a_confirmation_that_an_earlier_version_pickled_can_be_read() -> None:
    made = ToolConfirmation.__new__(ToolConfirmation)
    made.__setstate__(["sure?", True, None, HASH])

    assert made == ToolConfirmation("sure?", True, None, HASH)
    assert made.use(object(), SUBJECT)


def test_a_yes_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(ToolConfirmation(), "confirmed", True)  # noqa: B010
