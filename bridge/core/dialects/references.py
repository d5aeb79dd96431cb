"""Where the references of one JSON Schema lead to, and which of them lead back to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urljoin

from bridge.core.dialects.shape import Schema, children, refused
from bridge.errors import InvalidSchema

MOST_NESTED: Final = 64
"""How many schemas may stand inside each other."""

MOST_VISITED: Final = 50_000
"""How many schemas are looked at to find out what leads where."""


class References:
    """The places of a schema, by what a `$ref` may call them; nothing is ever fetched.

    A place is named by a JSON pointer (RFC 6901, with its escapes and percent-encoding), by an
    `$anchor` or `$dynamicAnchor`, or by the `$id` it has, relative to the `$id` around it.
    `looping` are the ids of those places from which references lead back to the place.

    Raises:
        InvalidSchema: A reference leads nowhere, or the schema is nested too deeply, or too large.
    """

    def __init__(self, root: Schema) -> None:
        self._left = MOST_VISITED
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._name(root, "", "", 0)
        self.looping = _in_loops(self._edges(root))

    def base(self, node: Any, inherited: str) -> str:
        """The URI that references inside of `node` are relative to."""
        return self._bases.get(id(node), inherited)

    def lookup(self, reference: str, base: str, path: str) -> tuple[Any, str]:
        """The schema that `reference` leads to from `base`, and the base of that schema."""
        uri, _, fragment = reference.partition("#")
        try:
            uri = urljoin(base, uri) if uri else base
        except ValueError:
            uri = reference

        if uri not in self._resources:
            raise refused(
                path, f'"$ref": "{reference[:200]}" leads out of the schema, and nothing is fetched'
            )

        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((uri, fragment))
        else:
            found = _at(self._resources[uri], fragment)

        if not isinstance(found, dict | bool):
            raise refused(path, f'"$ref": "{reference[:200]}" leads to no schema')

        return found, self.base(found, uri)

    def _name(self, node: Any, base: str, path: str, depth: int) -> None:
        """Note what `node` and all that is in it can be called."""
        self._count(path, depth)
        if not isinstance(node, dict):
            return

        own = node.get("$id")
        if isinstance(own, str):
            base = self._identified(node, own, base)

        self._bases[id(node)] = base
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                self._anchors.setdefault((base, node[key]), node)

        for inner, child in children(node, shelves=True):
            self._name(child, base, path + inner, depth + 1)

    def _identified(self, node: Schema, own: str, base: str) -> str:
        uri, _, fragment = own.partition("#")
        if fragment:  # how anchors were written up to draft 7
            self._anchors.setdefault((base, fragment), node)

        if not uri:
            return base

        try:
            uri = urljoin(base, uri)
        except ValueError:
            return base

        self._resources.setdefault(uri, node)
        return uri

    def _edges(self, root: Schema) -> dict[int, set[int]]:
        """For each place that is referred to, and the root, the places that it refers to."""
        edges: dict[int, set[int]] = {}
        waiting: list[tuple[Any, str]] = [(root, "")]
        while waiting:
            node, base = waiting.pop()
            if id(node) in edges or not isinstance(node, dict):
                continue

            found = list(self._referred(node, self.base(node, base), "", 0))
            edges[id(node)] = {id(target) for target, _ in found}
            waiting += found

        return edges

    def _referred(self, node: Any, base: str, path: str, depth: int) -> Iterator[tuple[Any, str]]:
        self._count(path, depth)
        if not isinstance(node, dict):
            return

        base = self.base(node, base)
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield self.lookup(reference, base, path)

        for inner, child in children(node):
            yield from self._referred(child, base, path + inner, depth + 1)

    def _count(self, path: str, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema("the schema is too large")

        if depth > MOST_NESTED:
            raise refused(path, f"more than {MOST_NESTED} schemas stand inside each other")


def _at(resource: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; None where it leads nowhere."""
    found = resource
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None

    return found


def _in_loops(edges: dict[int, set[int]]) -> frozenset[int]:
    """Those on a loop, or on the way from one loop to another; none where there is no loop."""
    back: dict[int, set[int]] = {place: set() for place in edges}
    for place, targets in edges.items():
        for target in targets & edges.keys():
            back[target].add(place)

    left = set(edges)
    for ways in (edges, back):
        while ends := {place for place in left if not ways[place] & left}:
            left -= ends

    return frozenset(left)
