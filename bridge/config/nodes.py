"""Settings as they are written: values that know their place, before they mean anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, TypeAlias

from bridge.config.problems import KeyPath, Place, Problems, Source

MAX_DEPTH = 64
MAX_NODES = 100_000


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One text, whole number, truth value or nothing.

    `is_secret` values came from the environment and are never shown. A `is_broken` value is
    already reported; nothing more is said of it.
    """

    value: Any
    place: Place
    is_secret: bool = False
    is_broken: bool = False

    @property
    def size(self) -> int:
        """How many values this is, for the bounds of a file."""
        return 1


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list. `size` counts every value in it, aliases followed."""

    items: tuple[Node, ...]
    place: Place
    size: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping; each entry's place is its key's. `size` counts every value, aliases followed."""

    entries: dict[str, Node]
    place: Place
    size: int = field(compare=False)


Node: TypeAlias = ScalarNode | ListNode | MappingNode


def list_node(items: Iterable[Node], place: Place) -> ListNode:
    """A list of these nodes, counted."""
    items = tuple(items)
    return ListNode(items, place, 1 + sum(item.size for item in items))


def mapping_node(entries: dict[str, Node], place: Place) -> MappingNode:
    """A mapping of these nodes, counted."""
    return MappingNode(entries, place, 1 + sum(node.size for node in entries.values()))


def scalar_value(text: str) -> str | int | bool | None:
    """What an unquoted word means: nothing, true, false, a whole number, or the text itself.

    Only the plain decimal form is a number (`8080`, not `010`, `0x1F` or `1e3`) and only `true`
    and `false` are truth values (not `yes`), so that no text changes on its way to a program.
    """
    if text in {"", "~", "null", "Null", "NULL"}:
        return None

    if text in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        return text.lower() == "true"

    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return int(text) if is_number and text == str(int(text)) else text


def at(node: Node, *keys: str) -> Node | None:
    """What stands in a mapping under these keys, outermost first; None where nothing does."""
    for key in keys:
        found = node.entries.get(key) if isinstance(node, MappingNode) else None
        if found is None:
            return None

        node = found

    return node


def from_python(values: Mapping[str, Any], source: Source, path: KeyPath = ()) -> MappingNode:
    """Nodes out of a mapping made in Python; paths become text, all else stays as it is."""
    entries = {str(k): _from_python(v, source, (*path, str(k))) for k, v in values.items()}
    return mapping_node(entries, Place(source, path=path))


def _from_python(value: Any, source: Source, path: KeyPath) -> Node:
    if isinstance(value, Mapping):
        return from_python(value, source, path)

    place = Place(source, path=path)
    if isinstance(value, list | tuple):
        items = (_from_python(item, source, (*path, i)) for i, item in enumerate(value))
        return list_node(items, place)

    return ScalarNode(str(value) if isinstance(value, PurePath) else value, place)


def to_python(node: Node) -> Any:
    """The plain value of a node: dicts, lists and scalars."""
    if isinstance(node, MappingNode):
        return {key: to_python(child) for key, child in node.entries.items()}

    if isinstance(node, ListNode):
        return [to_python(item) for item in node.items]

    return node.value


def merged(left: MappingNode, right: MappingNode) -> MappingNode:
    """Lay `right` over `left`: mappings key by key, everything else is replaced."""
    entries = dict(left.entries)
    for key, node in right.entries.items():
        below = entries.get(key)
        if isinstance(below, MappingNode) and isinstance(node, MappingNode):
            entries[key] = merged(below, node)
        else:
            entries[key] = node

    return mapping_node(entries, right.place)


def with_every_value(node: Node, problems: Problems) -> Node:
    """The same values; where nothing is written goes into `problems` and is marked as broken."""
    if isinstance(node, MappingNode):
        entries = {key: with_every_value(child, problems) for key, child in node.entries.items()}
        return replace(node, entries=entries)

    if isinstance(node, ListNode):
        return replace(node, items=tuple(with_every_value(item, problems) for item in node.items))

    if node.value is None:
        problems.add(node.place, "nothing is written here. Write a value, or remove this.")
        return replace(node, value="", is_broken=True)

    return node


def kind(node: Node) -> str:
    """What a node is, in a person's words."""
    if isinstance(node, MappingNode):
        return "a mapping"

    if isinstance(node, ListNode):
        return "a list"

    value = node.value
    if isinstance(value, bool):
        return "true" if value else "false"

    if isinstance(value, str):
        return "a text"

    return "a number" if isinstance(value, int | float) else f"a Python {type(value).__name__}"
