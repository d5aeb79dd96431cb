"""JSON with comments is read as JSON without them, and as YAML would read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.config.json_text import read_json
from bridge.config.nodes import Node, to_python
from bridge.config.problems import Problems, Source, Unreadable
from bridge.config.yaml_text import read_yaml

SOURCE = Source("mcp.json", Path("/"))
# Numbers that JSON and settings read alike: others stay the text that was written.
SCALARS = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def read(text: str) -> object:
    """The plain value of a text without problems."""
    problems = Problems()
    node: Node = read_json(text, SOURCE, problems)
    assert problems.lines() == []
    return to_python(node)


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 2]))
def test_what_is_written_as_json_is_read_back(value: object, ascii: bool, indent: int) -> None:
    assert read(json.dumps(value, ensure_ascii=ascii, indent=indent)) == value


@given(VALUES)
def test_comments_and_trailing_commas_change_nothing(value: object) -> None:
    lines = json.dumps([value], indent=1).splitlines()
    noisy = [line + ' // "not, a: text" {' for line in lines[:-1]]
    commas = [line.replace("]", ", /* ] */ ]") if line.strip() == "]" else line for line in noisy]

    assert read("\n".join(["/* a\n * note */", *commas, ",]"])) == [value]


@given(VALUES)
def test_json_is_the_yaml_that_it_looks_like(value: object) -> None:
    text = json.dumps({"key": value}, indent=1)

    try:
        as_yaml = read_yaml(text, SOURCE, Problems())
    except Unreadable as exc:
        # YAML bounds what it takes for a key; it may refuse, but never read otherwise.
        assert "this is not YAML" in str(exc)
        return

    assert to_python(as_yaml) == read(text)


@given(st.text('{}[]:,"/*\\ \nabtrue0', max_size=30))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    try:
        read(text)
    except Unreadable as exc:
        assert 1 <= exc.problem.place.line <= text.count("\n") + 1
        assert str(exc.problem).startswith("mcp.json:")
    except AssertionError as exc:
        assert "written twice" in str(exc)


@pytest.mark.parametrize("text", ["1.50", "1e3", "-0", "12345678901234567890"])
def test_a_number_that_is_no_plain_whole_one_stays_as_it_is_written(text: str) -> None:
    assert read(text) == text


def test_a_tab_may_stand_in_a_text() -> None:
    assert read('"a\tb"') == "a\tb"


def test_every_value_knows_its_line() -> None:
    node = read_json('{\n"a": [\n1,\n{"b":\n2}],\n"c": 3}', SOURCE, Problems())

    assert lines(node) == {"": 1, "a": 2, "a[0]": 3, "a[1]": 4, "a[1].b": 4, "c": 6}


def lines(node: Node) -> dict[str, int]:
    """The line of every value, by its path."""
    found = {str(node.place).partition(": ")[2]: node.place.line}
    children = getattr(node, "entries", {}).values() or getattr(node, "items", ())
    for child in children:
        found |= lines(child)

    return found
