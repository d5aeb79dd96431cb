"""Durations and sizes: what is written is what is meant, and nothing else is accepted."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.config.units import seconds, size

SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600)}
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DAY = 24 * 3600


@given(st.integers(0, 10**9 - 1), st.sampled_from(sorted(SECONDS)))
def test_a_whole_duration_is_its_number_of_units(number: int, unit: str) -> None:
    exact = number * SECONDS[unit]
    if exact > DAY:
        with pytest.raises(ValueError, match="longer than a day"):
            seconds(f"{number}{unit}")
    else:
        assert seconds(f"{number}{unit}") == float(exact)


@given(st.decimals(0, 86_400, places=3), st.sampled_from(["ms", "s"]))
def test_a_duration_may_have_decimals(number: object, unit: str) -> None:
    assert seconds(f"{number}{unit}") == pytest.approx(float(Fraction(str(number)) * SECONDS[unit]))


@given(st.integers(1, 10**12 - 1), st.sampled_from(sorted(BYTES)))
def test_a_size_is_its_number_of_units(number: int, unit: str) -> None:
    exact = number * BYTES[unit]
    if exact > 2**30:
        with pytest.raises(ValueError, match="out of bounds"):
            size(f"{number}{unit}")
    else:
        assert size(f"{number}{unit}") == exact


@given(st.text())
def test_a_text_that_is_read_as_a_duration_begins_and_ends_like_one(text: str) -> None:
    try:
        value = seconds(text)
    except ValueError:
        return

    assert text[0] in "0123456789"
    assert text.endswith(tuple(SECONDS))
    assert 0 <= value <= DAY


@pytest.mark.parametrize(
    "text",
    ["", "s", "5", "5 s", " 5s", "5s\n", "-5s", "+5s", "5S", "1e3s", ".5s", "5.s", "٣s", "1m30s"],
)
def test_what_only_looks_like_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    "text", ["", "KiB", "5", "5 KiB", "5KB", "5kib", "5k", "1.5MiB", "-5B", "5B\n", "٣B"]
)
def test_what_only_looks_like_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size(text)
