"""JSON values, copied and compared."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.calls.values import alike, copied

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def containers(value: Any) -> list[Any]:
    """Every dict and list in a value."""
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in containers(item))]

    if isinstance(value, list):
        return [value, *(found for item in value for found in containers(item))]

    return []


@given(values)
def test_a_copy_is_alike_and_shares_nothing_that_can_be_edited(value: Any) -> None:
    made = copied(value)

    assert alike(made, value)
    assert made == value
    assert not {id(one) for one in containers(made)} & {id(one) for one in containers(value)}


@given(values, values)
def test_alike_is_stricter_than_equal(one: Any, other: Any) -> None:
    assert alike(one, copy.deepcopy(one))
    if alike(one, other):
        assert one == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        ("1", 1),
        (None, {}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([[]], [{}]),
    ],
)
def test_what_differs_in_json_is_not_alike(one: Any, other: Any) -> None:
    assert not alike(one, other)
    assert not alike(other, one)
