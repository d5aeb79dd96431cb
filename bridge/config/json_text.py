"""JSON as editors keep their settings: comments and trailing commas allowed, lines known."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import replace

from bridge.config.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    Node,
    ScalarNode,
    list_node,
    mapping_node,
    scalar_value,
)
from bridge.config.problems import Place, Problems, Source, Unreadable, twice
from bridge.config.text import whole_characters

_TOKEN = re.compile(
    r"""
      (?P<space>   [ \t\r\n]+ | //[^\n]* | /\*.*?\*/ )
    | (?P<string>  "[^"\\\n]*(?:\\.[^"\\\n]*)*" )
    | (?P<word>    [A-Za-z0-9+.-]+ )
    | (?P<sign>    [{}\[\]:,] )
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = ("true", "false", "null")


def read_json(text: str, source: Source, problems: Problems) -> Node:
    """The values of one JSON text; a key that stands twice goes into `problems`.

    Raises:
        Unreadable: Not JSON, or beyond the bounds.
    """
    return _Document(text, source, problems).read()


class _Document:
    """The tokens of one text, and how far they are read."""

    def __init__(self, text: str, source: Source, problems: Problems) -> None:
        self._text = text
        self._source = source
        self._problems = problems
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._at = 0
        self._count = 0
        self._token = ""
        self._kind = ""
        self._line = 1
        self._advance()

    def read(self) -> Node:
        """The one value of the text; an empty text is an empty mapping."""
        place = Place(self._source, 1)
        node = self._value(place) if self._kind else mapping_node({}, place)
        if self._kind:
            raise self._wrong("the value ends before this. Remove what follows")

        return node

    def _value(self, place: Place) -> Node:
        """The value that begins at the present token, standing at `place`."""
        self._count += 1
        if len(place.path) > MAX_DEPTH:
            raise Unreadable(place, f"more than {MAX_DEPTH} levels deep. Make it flatter.")

        if self._count > MAX_NODES:
            raise Unreadable(place, f"more than {MAX_NODES:,} values. Make it smaller.")

        if self._token == "{":
            return self._object(place)

        if self._token == "[":
            return self._array(place)

        return self._scalar(place)

    def _object(self, place: Place) -> Node:
        entries: dict[str, Node] = {}
        self._advance()
        while self._token != "}":
            if self._kind != "string":
                raise self._wrong('a key belongs here. Write it in double quotes, or close the "{"')

            here = Place(self._source, self._line)
            key = self._string(replace(here, path=place.path))
            here = replace(here, path=(*place.path, key))
            self._advance()
            self._take(":", 'a ":" belongs here, between a key and its value')
            node = self._value(here)
            if key in entries:
                self._problems.add(here, twice(entries[key].place.line))
            else:
                entries[key] = node

            self._take_comma("}")

        self._advance()
        return mapping_node(entries, place)

    def _array(self, place: Place) -> Node:
        items: list[Node] = []
        self._advance()
        while self._token != "]":
            items.append(self._value(Place(self._source, self._line, (*place.path, len(items)))))
            self._take_comma("]")

        self._advance()
        return list_node(items, place)

    def _scalar(self, place: Place) -> Node:
        if self._kind == "string":
            node = ScalarNode(self._string(place), place)
        elif self._token in _WORDS or _NUMBER.fullmatch(self._token):
            node = ScalarNode(scalar_value(self._token), place)
        else:
            raise self._wrong("a value belongs here. Texts stand in double quotes")

        self._advance()
        return node

    def _string(self, place: Place) -> str:
        try:
            text = json.loads(self._token, strict=False)
        except ValueError:
            raise self._wrong('a "\\" that means nothing here. Write "\\\\"') from None

        return whole_characters(str(text), place)

    def _take(self, sign: str, missing: str) -> None:
        if self._token != sign:
            raise self._wrong(missing)

        self._advance()

    def _take_comma(self, end: str) -> None:
        if self._token == ",":
            self._advance()
        elif self._token != end:
            raise self._wrong(f'a "," or a "{end}" belongs here')

    def _advance(self) -> None:
        """Go to the next token that is no space and no comment; at the end, kind is empty."""
        self._kind = self._token = ""
        while self._at < len(self._text):
            match = _TOKEN.match(self._text, self._at)
            self._line = bisect_right(self._starts, self._at)
            if match is None:
                raise self._wrong("a sign that has no meaning here, or a text that never ends")

            self._at = match.end()
            if match.lastgroup != "space":
                self._kind, self._token = match.lastgroup or "", match.group()
                return

    def _wrong(self, text: str) -> Unreadable:
        return Unreadable(Place(self._source, self._line), f"this is not JSON: {text}.")
