"""Whose a URI is, and how it reads where two servers claim the same.

A URI stays as its server wrote it. Only where two servers claim one (both list the resource or
the template, or one lists what a template of the other makes) do both of them read otherwise:
`file:///a` of the server "work" becomes `work+file:///a`, which is a valid URI (RFC 3986, section
3.1, allows "+" in a scheme) or URI template (RFC 6570). `ui://clock` becomes `ui://work+clock`:
clients know an app by that scheme.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.downstream.source import Source
from bridge.downstream.templates import Part, UriTemplate

UI: Final = "ui://"
_NOT_IN_A_SCHEME = re.compile(r"[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class Place:
    """A resource where it is: its server, and the URI, or template, that the server knows."""

    source: Source
    uri: str


@dataclass(frozen=True, slots=True)
class _Template:
    source: Source
    template: UriTemplate


class Uris:
    """One snapshot of what all servers list, and whose is what."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._labels = labels([source.name for source in sources])
        self._by_label = {self._labels[source.name]: source for source in sources}
        self._owners: dict[str, Source] = {}
        claimed: set[str] = set()
        for source in sources:
            for uri in {one["uri"] for one in source.listed.resources}:
                if self._owners.setdefault(uri, source) is not source:
                    claimed.add(uri)

        self._templates = [
            _Template(source, UriTemplate(one["uriTemplate"]))
            for source in sources
            for one in source.listed.templates
        ]
        self._templates.sort(key=lambda one: -one.template.literal_length)
        crossed = list(self._crossed())
        self.claimed = frozenset(claimed.union(uri for uri, _ in crossed))
        self.claimed_templates = frozenset(
            {*self._twins(), *(one.template.text for _, one in crossed)}
        )

    @property
    def has_conflicts(self) -> bool:
        """Whether any URI reads otherwise than its server wrote it."""
        return bool(self.claimed or self.claimed_templates)

    def is_listed(self, uri: str) -> bool:
        """Whether a server lists this URI, or a template makes it."""
        return uri in self._owners or any(one.template.makes(uri) for one in self._templates)

    def outward(self, source: Source, uri: str) -> str:
        """How clients read a URI that this server wrote."""
        owner = self._owners.get(uri)
        if uri in self.claimed or (owner is not None and owner is not source):
            return self.labelled(source, uri)

        if not self.claimed_templates or owner is source:
            return uri

        is_contested = any(
            one.template.text in self.claimed_templates and one.template.makes(uri)
            for one in self._templates
        )
        return self.labelled(source, uri) if is_contested else uri

    def outward_template(self, source: Source, text: str) -> str:
        """How clients read a template of this server's."""
        return self.labelled(source, text) if text in self.claimed_templates else text

    def labelled(self, source: Source, uri: str) -> str:
        """The URI, or template, with its server's label before it."""
        label = self._labels[source.name]
        rest = uri.removeprefix(UI)
        return f"{label}+{uri}" if rest == uri else f"{UI}{label}+{rest}"

    def unlabelled(self, uri: str) -> Place | None:
        """What a URI with a label stands for; None if it has none of ours."""
        bare = uri.removeprefix(UI)
        label, plus, rest = bare.partition("+")
        source = self._by_label.get(label.lower()) if plus else None
        return None if source is None else Place(source, rest if bare == uri else UI + rest)

    def find(self, uri: str) -> list[Place]:
        """Where a resource is that a client names, as far as listings tell; the likeliest first."""
        owner = self._owners.get(uri)
        if owner is not None and uri not in self.claimed:
            return [Place(owner, uri)]

        found = self.unlabelled(uri)
        if found is not None and self.outward(found.source, found.uri) == uri:
            return [found]

        makers = {
            one.source.name: Place(one.source, uri)
            for one in reversed(self._templates)
            if one.template.text not in self.claimed_templates and one.template.makes(uri)
        }
        return list(reversed(makers.values()))

    def find_template(self, text: str) -> Place | None:
        """Whose a template is that a client names."""
        for one in self._templates:
            if self.outward_template(one.source, one.template.text) == text:
                return Place(one.source, one.template.text)

        return None

    def _crossed(self) -> Iterator[tuple[str, _Template]]:
        """The URIs that one server lists and a template of another makes, with that template."""
        names = {source.name for source in self._owners.values()}
        if len(names | {one.source.name for one in self._templates}) < 2:
            return

        listed = sorted(self._owners)
        for one in self._templates:
            head = one.template.head
            for uri in listed[bisect_left(listed, head) :]:
                if not uri.startswith(head):
                    break

                if self._owners[uri] is not one.source and one.template.makes(uri):
                    yield uri, one

    def _twins(self) -> Iterator[str]:
        """The templates of which another server has the like."""
        first: dict[tuple[Part, ...], _Template] = {}
        for one in self._templates:
            other = first.setdefault(one.template.parts, one)
            if other.source is not one.source:
                yield one.template.text
                yield other.template.text


def labels(names: Iterable[str]) -> dict[str, str]:
    """For each server's name what stands for it in a URI: legal in a scheme, and its alone."""
    found: dict[str, str] = {}
    for name in names:
        label = _NOT_IN_A_SCHEME.sub("-", name.lower())
        if not label[0].isalpha():
            label = f"s{label}"

        number, chosen = 2, label
        while chosen in found.values():
            number, chosen = number + 1, f"{label}.{number}"

        found[name] = chosen

    return found
