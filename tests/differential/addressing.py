"""Whose a name or a URI is, and how bridge's clients write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.tools.names import offered_name
from tests.differential.requests import Request
from tests.differential.talk import Era


@dataclass(frozen=True, slots=True)
class Member:
    """One upstream of bridge: its name there, and what stands before its names."""

    name: str
    prefix: str


@dataclass(slots=True)
class Addressing:
    """Whose each URI is: `claimed` and `twins` (templates) are listed by more than one upstream.

    `listed` and `templates` are all of them. Of a URI that nobody lists it is remembered who sent
    it first.
    """

    claimed: frozenset[str] = frozenset()
    twins: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    templates: frozenset[str] = frozenset()
    is_alone: bool = True
    first: dict[str, str] = field(default_factory=dict)

    def outward(self, member: Member, uri: str) -> str:
        """How clients read this member's URI."""
        if self.is_alone:
            return uri

        if uri in self.claimed or any(_makes(one, uri) for one in self.twins):
            return labelled(member, uri)

        if uri in self.listed or self.first.setdefault(uri, member.name) == member.name:
            return uri

        return labelled(member, uri)

    def is_anybodys(self, uri: str) -> bool:
        """Whether no upstream says that the URI is its own, so that every one has to be asked."""
        is_made = any(_makes(one, uri) for one in self.templates)
        return not (self.is_alone or uri in self.listed or is_made)

    def template(self, member: Member, text: str) -> str:
        """How clients read this member's URI template."""
        return labelled(member, text) if text in self.twins else text


@dataclass(frozen=True, slots=True)
class View:
    """A member as a client of this era sees it; `uri` is what the client asked for, if any."""

    member: Member
    era: Era
    addressing: Addressing
    uri: str = ""

    def asked(self, request: Request) -> Mapping[str, Any]:
        """The params of a request in the words of bridge's clients."""
        params = dict(request.params)
        if request.method in ("tools/call", "prompts/get") and "name" in params:
            params["name"] = offered_name(self.member.prefix, params["name"])

        if request.method == "resources/read" and "uri" in params:
            params["uri"] = self.addressing.outward(self.member, params["uri"])

        if isinstance(ref := params.get("ref"), dict):
            params["ref"] = self._reference(ref)

        return params

    def _reference(self, ref: Mapping[str, Any]) -> dict[str, Any]:
        if "name" in ref:
            return {**ref, "name": offered_name(self.member.prefix, ref["name"])}

        return {**ref, "uri": self.addressing.template(self.member, ref["uri"])}


def labelled(member: Member, uri: str) -> str:
    """A URI, or template, that says whose it is."""
    rest = uri.removeprefix("ui://")
    return f"{member.name}+{uri}" if rest == uri else f"ui://{member.name}+{rest}"


def _makes(template: str, uri: str) -> bool:
    pieces = re.split(r"\{[^}]*\}", template)
    return re.fullmatch("[^/]+".join(map(re.escape, pieces)), uri) is not None
