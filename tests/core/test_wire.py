"""JSON in and out: exact, and never what others cannot read."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.wire import DEEPEST, dumps, escaped, loads


@pytest.mark.parametrize(
    "text", ["123456789012345678901234567890", "1.0", "-0.0", '"NaN"', '{"a":"Infinity"}']
)
def test_what_is_read_is_written_again(text: str) -> None:
    assert dumps(loads(text)).decode() == text


def test_half_a_character_can_be_read_but_not_written() -> None:
    assert loads(b'"\\ud800"') == "\ud800"
    with pytest.raises(ValueError):
        dumps("\ud800")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_number_that_json_lacks_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="no number in JSON"):
        dumps(value)


@pytest.mark.parametrize("text", ["NaN", '{"a":[Infinity]}', "-Infinity", '["\\ud800",NaN]'])
def test_number_that_json_lacks_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


@pytest.mark.parametrize("depth", [DEEPEST + 5, 5_000, 200_000])
def test_deep_nesting_is_refused_both_ways(depth: int) -> None:
    with pytest.raises(ValueError):
        loads(b"[" * depth + b"]" * depth)

    deep: list[Any] = []
    for _ in range(min(depth, 1_000)):
        deep = [deep]

    if depth > 300:
        with pytest.raises(ValueError):
            dumps(deep)


def test_between_processes_half_a_character_is_kept_and_what_is_no_number_is_left_out() -> None:
    value = {"half": "\ud800", "far": [float("inf"), {"b": -float("inf")}], "n": 10**30, "é": "😀"}

    found = loads(escaped(value))

    assert found == {**value, "far": [None, {"b": None}]}
    assert escaped({"é": 1}) == dumps({"é": 1})
