from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.downstream.display import (
    NAME_CHARACTERS,
    SHOWN_CHARACTERS,
    one_line,
    value_text,
    visible,
)

ANYTHING = st.characters(categories=None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(ANYTHING),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ANYTHING), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Ōsaka 東京", "plain Ōsaka 東京"),
        ("\x1b[8mhidden", r"\u001b[8mhidden"),
        ("a\rb\x7f\x9b", r"a\u000db\u007f\u009b"),
        ("evil\u202etxt.exe", r"evil\u202etxt.exe"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("a\u00a0b\u3000c", r"a\u00a0b\u3000c"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("tag\U000e0041", r"tag\udb40\udc41"),
        ("filler\u3164\u115f\u2800", r"filler\u3164\u115f\u2800"),
        ("select\ufe0f\U000e0100", r"select\ufe0f\udb40\udd00"),
        ("half\ud800", r"half\ud800"),
        ("private\ue000", r"private\ue000"),
    ],
)
def test_what_a_screen_would_hide_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(JSON)
def test_what_is_shown_is_the_very_json_that_is_sent(value: Any) -> None:
    shown = value_text(value, "f" * 64)
    if "CUT HERE" not in shown:
        assert json.loads(shown) == value


@given(st.text(ANYTHING))
def test_nothing_hidden_is_left_in_what_is_shown(text: str) -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

    assert all(unicodedata.category(char) not in hidden for char in visible(text))
    assert "\n" not in one_line(text)


def test_what_does_not_fit_is_said_to_be_cut_beside_the_whole_calls_hash() -> None:
    value = {"a": "x" * SHOWN_CHARACTERS, "drop": "everything"}
    shown = value_text(value, "f" * 64)

    whole = len(json.dumps(value, indent=2))
    assert "everything" not in shown
    assert f"CUT HERE: {SHOWN_CHARACTERS} of {whole} characters are shown" in shown
    assert shown.endswith("f" * 64)


def test_a_long_name_is_said_to_be_cut() -> None:
    name = "n" * (NAME_CHARACTERS + 1)

    assert one_line(name) == f"{name[:-1]}… (cut, {len(name)} characters)"
