"""Variables in texts: filled in after parsing, never twice, never more than text."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bridge.config.expand import escaped, expanded
from bridge.config.nodes import ListNode, MappingNode, Node, ScalarNode, from_python, to_python
from bridge.config.problems import Problems, Source

SOURCE = Source("", Path("/"))
NAMES = st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
DEFAULTS = st.text().filter(lambda text: not set(text) & set("{}"))
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("${}:-AB", max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab$", max_size=3), inner),
    max_leaves=12,
)


def expand(value: object, environ: dict[str, str]) -> tuple[object, list[str]]:
    """The value with its variables filled in, and what was wrong."""
    problems = Problems()
    node = expanded(from_python({"key": value}, SOURCE), environ, problems)
    return to_python(node)["key"], problems.lines()


@given(st.text())
def test_an_escaped_text_expands_to_itself(text: str) -> None:
    assert expand(escaped(text), {}) == (text, [])


@given(st.text())
def test_a_text_without_a_variable_stays_as_it_is(text: str) -> None:
    text = text.replace("${", "$")
    assert expand(text, {}) == (text, [])


@given(NAMES, st.text(), st.text(), st.text())
def test_a_variable_becomes_what_it_holds_and_is_not_looked_into(
    name: str, value: str, before: str, after: str
) -> None:
    text = f"{escaped(before)} ${{{name}}}{escaped(after)}"
    assert expand(text, {name: value}) == (f"{before} {value}{after}", [])


@given(NAMES, DEFAULTS, st.none() | st.text())
def test_a_default_stands_for_a_variable_that_is_unset_or_empty(
    name: str, default: str, value: str | None
) -> None:
    environ = {} if value is None else {name: value}
    assert expand(f"${{{name}:-{default}}}", environ) == (value or default, [])


@given(st.lists(NAMES, min_size=1, unique=True))
def test_every_variable_that_is_not_set_is_named_at_once(names: list[str]) -> None:
    _, problems = expand([f"${{{name}}}" for name in names], {})

    assert [line.split('"')[1] for line in problems] == names
    assert [line.split(": ")[0] for line in problems] == [f"key[{i}]" for i in range(len(names))]


@given(TREES, st.text("${}:-AB[]\n\"'", max_size=8))
def test_no_variable_changes_the_shape_of_what_was_read(tree: object, value: str) -> None:
    before = from_python({"key": tree}, SOURCE)
    after = expanded(before, {"A": value, "B": value}, Problems())
    assert shape(after) == shape(before)


def test_what_came_from_a_variable_is_secret_and_nothing_else_is() -> None:
    node = expanded(
        from_python({"a": "x", "b": "${V}", "c": "$${V}"}, SOURCE), {"V": "v"}, Problems()
    )

    secret = {key: child.is_secret for key, child in node.entries.items()}
    assert secret == {"a": False, "b": True, "c": False}


def shape(node: Node) -> object:
    """The keys, the lengths and the kinds, without the texts."""
    if isinstance(node, MappingNode):
        return {key: shape(child) for key, child in node.entries.items()}

    if isinstance(node, ListNode):
        return [shape(item) for item in node.items]

    assert isinstance(node, ScalarNode)
    return "text" if isinstance(node.value, str) else node.value
