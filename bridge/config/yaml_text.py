"""YAML as settings may use it: mappings, lists and scalars with their lines; no tags, no objects.

Values are put together from the parser's events, so nothing in a file can make an object, and
aliases are counted as if they were written out before anything follows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from bridge.config.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    list_node,
    mapping_node,
    scalar_value,
)
from bridge.config.problems import Place, Problems, Source, Unreadable, shown, twice
from bridge.config.text import whole_characters

MERGE = "<<"

# What the parser's own words mean to whoever wrote the file; the first that fits is said.
_SENTENCES = (
    (
        "mapping values are not allowed",
        'a ":" where no key can be. Put quotes around it, or mend the line above.',
    ),
    ("'\\t' that cannot start", "a tab where YAML wants spaces. Indent with spaces."),
    ("that cannot start any token", "a text begins with a sign of YAML. Put quotes around it."),
    ("expected <block end>", "the indentation does not fit the lines above. Line it up."),
    ("could not find expected ':'", 'a line without ":". Write "key: value".'),
    ("unexpected end of stream", "a quotation mark is opened and never closed. Close it."),
    ("escape", 'a "\\" that means nothing in double quotes. Write "\\\\", or use single quotes.'),
    ("expected ',' or", 'a bracket is never closed, or a "," is missing. Mend the brackets.'),
)
_VARIABLE_IN_BRACKETS = 'inside [ ] and { } a variable needs quotes. Write "${VAR}" with them.'


def read_yaml(text: str, source: Source, problems: Problems) -> Node:
    """The values of one YAML document; what is merely wrong with them goes into `problems`.

    Raises:
        Unreadable: Not YAML, more than one document, or beyond the bounds.
    """
    try:
        return _Document(text, source, problems).read()
    except MarkedYAMLError as exc:
        raise Unreadable(*_explained(exc, text, source)) from None
    except YAMLError:
        raise Unreadable(Place(source), "this is not YAML. Check the file.") from None


class _Document:
    """The events of one document, and the anchors seen so far (None: not yet complete)."""

    def __init__(self, text: str, source: Source, problems: Problems) -> None:
        self._events: Iterator[Any] = iter(YAML(typ="safe", pure=True).parse(text))
        self._source = source
        self._problems = problems
        self._anchors: dict[str, Node | None] = {}

    def read(self) -> Node:
        next(self._events)
        event = next(self._events)
        if isinstance(event, StreamEndEvent):
            return mapping_node({}, Place(self._source, 1))

        node = self._node(next(self._events), Place(self._source, 1))
        next(self._events)
        event = next(self._events)
        if not isinstance(event, StreamEndEvent):
            raise Unreadable(
                Place(self._source, _line(event)),
                'a second document begins here. Keep one, without "---" lines between.',
            )

        return node

    def _node(self, event: Any, place: Place) -> Node:
        """The node that begins with `event`, standing at `place`."""
        if isinstance(event, AliasEvent):
            return self._aliased(event, place)

        if event.tag is not None:
            self._problems.add(
                replace(place, line=_line(event)),
                f"the tag {shown(_tag(event))} is not allowed. Remove it: write plain values.",
            )

        if len(place.path) > MAX_DEPTH:
            raise Unreadable(place, f"more than {MAX_DEPTH} levels deep. Make it flatter.")

        if event.anchor is not None:
            self._anchors[event.anchor] = None

        node = self._fresh(event, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = node

        return node

    def _fresh(self, event: Any, place: Place) -> Node:
        if isinstance(event, MappingStartEvent):
            return self._mapping(place)

        if isinstance(event, SequenceStartEvent):
            return self._list(place)

        text = whole_characters(event.value, place)
        return ScalarNode(text if event.style is not None else scalar_value(text), place)

    def _aliased(self, event: Any, place: Place) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            why = "is used inside itself" if event.anchor in self._anchors else "is defined nowhere"
            raise Unreadable(
                replace(place, line=_line(event)),
                f"the alias {shown('*' + event.anchor)} {why}. Write the value out.",
            )

        return replace(node, place=place)

    def _list(self, place: Place) -> ListNode:
        items: list[Node] = []
        size = 0
        while not isinstance(event := next(self._events), SequenceEndEvent):
            path = (*place.path, len(items))
            items.append(self._node(event, Place(self._source, _line(event), path)))
            size = _counted(size, items[-1], place)

        return list_node(items, place)

    def _mapping(self, place: Place) -> MappingNode:
        entries: dict[str, Node] = {}
        defaults: dict[str, Node] = {}
        size = 0
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, place)
            here = Place(self._source, _line(event), (*place.path, key))
            node = self._node(next(self._events), here)
            size = _counted(size, node, place)
            if key == MERGE and event.style is None:
                self._merge(node, defaults)
            elif key in entries:
                self._problems.add(here, twice(entries[key].place.line))
            else:
                entries[key] = node

        return mapping_node({**defaults, **entries}, place)

    def _key(self, event: Any, place: Place) -> str:
        if isinstance(event, ScalarEvent):
            return whole_characters(event.value, Place(self._source, _line(event), place.path))

        raise Unreadable(
            Place(self._source, _line(event), place.path),
            "a key here is no plain text. Write a word or a quoted text before the colon.",
        )

    def _merge(self, node: Node, defaults: dict[str, Node]) -> None:
        """Take over the entries of `<<: *alias`, or of a list of aliases, where the first wins."""
        for item in node.items if isinstance(node, ListNode) else (node,):
            if isinstance(item, MappingNode):
                for key, child in item.entries.items():
                    defaults.setdefault(key, child)
            else:
                self._problems.add(
                    item.place, 'only mappings can be merged here. Write "<<: *name" of one.'
                )


def _counted(size: int, node: Node, place: Place) -> int:
    size += node.size
    if size > MAX_NODES:
        raise Unreadable(
            place,
            f"more than {MAX_NODES:,} values once its aliases are followed. Make it smaller.",
        )

    return size


def _tag(event: Any) -> str:
    """A tag as it is written in a file."""
    return str(event.tag).replace("tag:yaml.org,2002:", "!!")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _explained(exc: MarkedYAMLError, text: str, source: Source) -> tuple[Place, str]:
    """Where the parser stopped, and why, in a sentence of ours; nothing of the file is shown."""
    found = str(exc.problem)
    is_open = "end of stream" in found or "stream end" in found
    mark = (exc.context_mark if is_open else None) or exc.problem_mark or exc.context_mark
    line = mark.line + 1 if mark is not None else 0
    place = Place(source, line)
    lines = text.splitlines()
    if found.startswith("expected ',' or") and "${" in (
        lines[line - 1] if line <= len(lines) else ""
    ):
        return place, f"this is not YAML: {_VARIABLE_IN_BRACKETS}"

    for words, sentence in _SENTENCES:
        if words in found:
            return place, f"this is not YAML: {sentence}"

    return place, "this is not YAML. Check this line and the one above."
