from __future__ import annotations

import pytest

from bridge.downstream import sealed
from bridge.downstream.sealed import LIFETIME, Seals


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


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


def test_nothing_sealed_before_a_restart_opens_after_it() -> None:
    assert Seals().open(Seals().seal("p", "", "r", None)) is None


def test_a_question_takes_one_answer() -> None:
    seals = Seals()
    token = seals.seal("p", "", "r", None)
    first, second = seals.open(token), seals.open(token)
    assert first is not None
    assert second is not None

    assert seals.spend(first)
    assert not seals.spend(second)
    assert seals.open(token) is None


def test_a_question_does_not_outlive_its_time() -> None:
    clock = Clock()
    seals = Seals(clock=clock)
    token = seals.seal("p", "", "r", None)
    clock.now += LIFETIME - 0.1
    assert seals.open(token) is not None

    clock.now += 0.1
    assert seals.open(token) is None


def test_answers_beyond_what_can_be_remembered_are_refused_until_old_ones_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "REMEMBERED", 2)
    clock = Clock()
    seals = Seals(clock=clock)

    def answer() -> bool:
        question = seals.open(seals.seal("p", "", "r", None))
        return question is not None and seals.spend(question)

    assert [answer(), answer(), answer()] == [True, True, False]
    clock.now += LIFETIME
    assert answer()


def test_of_several_processes_with_one_key_each_opens_what_it_sealed_and_nothing_else() -> None:
    key = b"k" * 32
    one, other = Seals([key]), Seals([key])
    one.mark, other.mark = "w1-", "w2-"
    token = one.seal("p", "", "r", None)

    assert token.count("w1-") == 1  # outside alone: what is sealed shows nothing
    assert one.open(token) is not None
    assert other.open(token) is None
    assert other.open(token.replace("w1-", "w2-")) is None
    assert one.open(token.replace("w1-", "")) is None
