"""Names as models and MCP clients may see them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import ConfigError
from bridge.tools.names import is_legal, matcher, offered_name

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(st.from_regex(r"[A-Za-z0-9_-]{0,20}", fullmatch=True), st.from_regex(LEGAL, fullmatch=True))
def test_a_legal_name_is_unchanged(prefix: str, own_name: str) -> None:
    full = prefix + own_name
    assert (offered_name(prefix, own_name) == full) is (len(full) <= 64)


def test_sixty_four_characters_are_the_longest_name() -> None:
    assert offered_name("p__", "x" * 61) == "p__" + "x" * 61
    assert offered_name("p__", "x" * 62) != "p__" + "x" * 62


@given(st.text(max_size=10), st.text(max_size=200))
def test_every_offered_name_is_legal_and_always_the_same(prefix: str, own_name: str) -> None:
    name = offered_name(prefix, own_name)

    assert LEGAL.fullmatch(name)
    assert is_legal(name)
    assert offered_name(prefix, own_name) == name


@given(st.lists(st.text(max_size=80), unique=True, max_size=30))
def test_two_names_never_become_one(own_names: list[str]) -> None:
    assert len({offered_name("up__", name) for name in own_names}) == len(own_names)


def test_names_that_differ_only_in_what_is_illegal_or_cut_stay_apart() -> None:
    assert offered_name("", "a.b") != offered_name("", "a b")
    assert offered_name("", "x" * 65) != offered_name("", "x" * 66)


def test_a_shortened_name_shows_what_it_was_made_of() -> None:
    assert offered_name("w__", "get.weather") == "w__get_weather_2bc30cf9"
    assert offered_name("", "x" * 70) == "x" * 55 + "_c71bd109"


def test_a_name_with_a_lone_surrogate_is_made_legal_too() -> None:
    assert LEGAL.fullmatch(offered_name("", "bad\ud800name"))


def test_a_line_end_makes_a_name_illegal() -> None:
    assert not is_legal("search\n")


@pytest.mark.parametrize(
    ("globs", "matching"),
    [
        (["read_*"], {"read_file", "read_"}),
        (["search"], {"search"}),
        (["read_file", "s?arch"], {"read_file", "search"}),
        (["[rs]e*"], {"read_file", "read_", "search"}),
        (["*"], {"read_file", "read_", "search", "Search"}),
        ([], set()),
    ],
)
def test_globs_match_whole_names(globs: list[str], matching: set[str]) -> None:
    test = matcher(globs)
    assert {n for n in ("read_file", "read_", "search", "Search") if test(n)} == matching


def test_a_single_string_is_no_list_of_globs() -> None:
    with pytest.raises(ConfigError, match=r'write \["write_\*"\]'):
        matcher("write_*")
