from __future__ import annotations

import logging

import pytest

from bridge.downstream import sealed
from bridge.downstream.sealed import LIFETIME, Remembered, Seals, after_kind, is_parked
from bridge.errors import StoreError

KEY, NEXT_KEY = b"k" * 32, b"n" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Broken:
    """A record that cannot be reached."""

    name = "broken"

    async def take(self, nonce: str, expires: float) -> bool:
        raise StoreError("the database is on the moon")


def test_a_sealed_question_opens_to_what_was_asked() -> None:
    seals = Seals()
    question = seals.open(seals.seal("token:a", "s", "request", "call"))

    assert question is not None
    assert (question.principal, question.session) == ("token:a", "s")
    assert (question.request, question.call) == ("request", "call")


def test_a_sealed_question_shows_nothing_of_what_it_holds() -> None:
    token = Seals().seal("token:secret", "session", "request", "call")

    assert not any(word in token for word in ("secret", "session", "request", "call"))


def test_no_changed_or_foreign_text_opens() -> None:
    seals = Seals()
    token = seals.seal("p", "", "r", None)
    turned = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]

    for other in ("", "v1.", "v1.AAAA", token[:-1], turned, token + "A", "v2" + token[2:]):
        assert seals.open(other) is None


def test_nothing_sealed_before_a_restart_opens_after_it_without_a_key_of_ones_own() -> None:
    assert Seals().open(Seals().seal("p", "", "r", None)) is None


async def test_a_question_takes_one_answer() -> None:
    seals = Seals()
    token = seals.seal("p", "", "r", None)
    first, second = seals.open(token), seals.open(token)
    assert first is not None
    assert second is not None

    assert await seals.spend(first)
    assert not await seals.spend(second)
    third = seals.open(token)
    assert third is not None
    assert not await seals.spend(third)


def test_a_question_does_not_outlive_its_time() -> None:
    clock = Clock()
    seals = Seals(clock=clock)
    token = seals.seal("p", "", "r", None)
    clock.now += LIFETIME - 0.1
    assert seals.open(token) is not None

    clock.now += 0.1
    assert seals.open(token) is None


async def test_answers_beyond_what_can_be_remembered_are_refused_until_old_ones_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "REMEMBERED", 2)
    clock = Clock()
    seals = Seals(clock=clock)

    async def answer() -> bool:
        question = seals.open(seals.seal("p", "", "r", None))
        return question is not None and await seals.spend(question)

    assert [await answer(), await answer(), await answer()] == [True, True, False]
    clock.now += LIFETIME
    assert await answer()


def test_of_several_processes_with_one_key_each_opens_what_it_sealed_and_nothing_else() -> None:
    one, other = Seals([KEY]), Seals([KEY])
    one.mark, other.mark = "w1-", "w2-"
    token = one.seal("p", "", "r", None)

    assert after_kind(token).startswith("w1-")
    assert one.open(token) is not None
    assert other.open(token) is None
    assert other.open(token.replace("w1-", "w2-", 1)) is None
    assert one.open(token.replace("w1-", "", 1)) is None


async def test_whoever_shares_keys_and_record_opens_all_and_of_all_of_them_one_takes_it() -> None:
    record = Remembered(Clock())
    one, other = Seals([KEY], spent=record), Seals([KEY], spent=record)
    token = one.seal("p", "", "r", "c")
    mine, theirs = one.open(token), other.open(token)
    assert mine is not None
    assert mine == theirs

    assert await other.spend(mine)
    assert not await one.spend(mine)


def test_with_a_shared_record_only_what_waits_in_a_process_bears_its_mark() -> None:
    record = Remembered(Clock())
    alone, one, other = (Seals([KEY], spent=record) for _ in range(3))
    one.mark, other.mark = "w1-", "w22-"
    asked, waiting = one.seal("p", "", "r", "c"), one.seal("p", "", "r", parked="here")

    assert not after_kind(asked).startswith("w1-")
    assert after_kind(waiting).startswith("w1-")
    assert is_parked(waiting)
    for seals in (alone, one, other):
        for token in (asked, waiting):
            opened = seals.open(token)
            assert opened is not None
            assert opened == one.open(token)

    assert one.open(waiting.replace("w1-", "w22-", 1)) is None  # the one inside is another


def test_what_was_sealed_for_another_record_is_worth_nothing() -> None:
    class Other(Remembered):
        name = "other"

    one = Seals([KEY], spent=Remembered(Clock()))
    other = Seals([KEY], spent=Other(Clock()))

    assert other.open(one.seal("p", "", "r", "c")) is None
    assert one.open(other.seal("p", "", "r", "c")) is None


def test_the_first_key_seals_and_every_key_opens() -> None:
    record = Remembered(Clock())
    old, both = Seals([KEY], spent=record), Seals([NEXT_KEY, KEY], spent=record)
    new = Seals([NEXT_KEY], spent=record)

    assert both.open(old.seal("p", "", "r", "c")) is not None
    assert new.open(both.seal("p", "", "r", "c")) is not None
    assert old.open(both.seal("p", "", "r", "c")) is None
    assert new.open(old.seal("p", "", "r", "c")) is None


async def test_a_record_that_fails_is_never_a_yes_and_its_reason_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seals = Seals([KEY], spent=Broken())
    question = seals.open(seals.seal("p", "", "r", "c"))
    assert question is not None

    with caplog.at_level(logging.WARNING, "bridge"), pytest.raises(StoreError):
        await seals.spend(question)

    assert "on the moon" in caplog.text
