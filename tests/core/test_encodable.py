from __future__ import annotations

from bridge.core.encodable import encodable
from bridge.core.wire import dumps, loads


def test_what_can_be_written_is_the_same_object() -> None:
    value = {"a": ["é", "😀", 2**80, None], "b": {"c": 1.5}}

    assert encodable(value) is value


def test_halves_of_characters_are_replaced_wherever_they_are() -> None:
    value = {"\ud83d": [{"k": "a\udc00b"}], "pair": "\ud83d\ude00", "n": 1}

    assert encodable(value) == {"�": [{"k": "a�b"}], "pair": "😀", "n": 1}
    assert value["\ud83d"] == [{"k": "a\udc00b"}]


def test_what_cannot_be_written_is_replaced_wherever_it_stands() -> None:
    value = {"a\ud800": [float("inf"), {"b": -float("inf")}, "\udfff"], "c": 1.5, "d": 10**30}

    made = encodable(value)

    assert made == {"a\ufffd": [None, {"b": None}, "\ufffd"], "c": 1.5, "d": 10**30}
    assert loads(dumps(made)) == made
