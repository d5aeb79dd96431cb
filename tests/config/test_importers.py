"""Foreign names become names of ours, always the same ones, and legal ones stay."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.config.importers import legal_name

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,32}")


@given(st.text())
def test_any_name_becomes_a_legal_one_and_stays_it(name: str) -> None:
    legal = legal_name(name)

    assert LEGAL.fullmatch(legal)
    assert legal != "local"
    assert legal_name(legal) == legal


@given(st.from_regex(LEGAL, fullmatch=True).filter(lambda name: name != "local"))
def test_a_legal_name_stays_as_it_is(name: str) -> None:
    assert legal_name(name) == name


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("my server", "my-server"),
        ("io.github.foo/bar", "io-github-foo-bar"),
        (" - weather! ", "weather"),
        ("a&calc", "a-calc"),
        ("local", "local-server"),
        ("", "server-e3b0c4"),
        ("天気", "server-bc79d8"),
        ("a" * 33, "aaaaaaaaaaaaaaaaaaaaaaaaa-852785"),
    ],
)
def test_what_becomes_of_common_names(name: str, legal: str) -> None:
    assert legal_name(name) == legal
