"""The URIs of all servers as they go out to clients, and back.

Everything that a client is sent passes here, if any URI in it must read otherwise. Of what no
server listed it is remembered whose it is, for the client that wants to read it next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from bridge.core.content import Result
from bridge.downstream.source import Source, declares
from bridge.downstream.uris import Place, Uris

UI_KEY: Final = "ui/resourceUri"
"""Where tools named their app's resource before `_meta.ui` (MCP Apps)."""

MOST_SEEN: Final = 10_000
"""How many URIs that nobody lists are remembered, the latest, with the server they are of."""


class Addresses:
    """Whose every URI is, by what the servers list now and have sent lately."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.version = 0
        self._by_name = {source.name: source for source in sources}
        self._seen: OrderedDict[str, Source] = OrderedDict()
        self._uris = Uris(sources)
        self._is_plain = self._looks_plain()

    @property
    def uris(self) -> Uris:
        """The snapshot of what is listed."""
        return self._uris

    def rebuild(self) -> None:
        """Take what the servers list now; `version` grows if any URI may read otherwise now."""
        before = self._uris
        self._uris = now = Uris(self.sources)
        self._is_plain = self._looks_plain()
        claims = (now.claimed, now.claimed_templates)
        if claims != (before.claimed, before.claimed_templates):
            self.version += 1

    def outward(self, source: Source, uri: str) -> str:
        """How clients read a URI that this server wrote."""
        shown = self._uris.outward(source, uri)
        if shown != uri or self._is_plain or self._uris.is_listed(uri):
            return shown

        if self._seen.setdefault(uri, source) is not source:
            return self._uris.labelled(source, uri)

        self._seen.move_to_end(uri)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)

        return uri

    def find(self, uri: str) -> list[Place]:
        """Where a resource may be that a client names; who is to be asked first stands first."""
        if found := self._uris.find(uri):
            return found

        if (source := self._seen.get(uri)) is not None:
            return [Place(source, uri)]

        # What was labelled may read otherwise by now; or it is no label, and the URI begins so.
        labelled = None if self._is_plain else self._uris.unlabelled(uri)
        able = [Place(source, uri) for source in self.sources if declares(source, "resources")]
        return able if labelled is None else [labelled, *able]

    def definition(self, upstream: str, definition: dict[str, Any]) -> dict[str, Any]:
        """A tool's definition, for clients."""
        source = self._by_name.get(upstream)
        return definition if source is None or self._is_plain else self._meta(source, definition)

    def answer(self, upstream: str, answer: Result) -> Result:
        """The answer to a tool's call, for clients."""
        source = self._by_name.get(upstream)
        if source is None or self._is_plain:
            return answer

        return self.blocks(source, self._meta(source, answer), "content")

    def blocks(self, source: Source, holder: dict[str, Any], key: str) -> dict[str, Any]:
        """What holds content, one block or many; the very same where nothing in it changes."""
        if self._is_plain:
            return holder

        content = holder.get(key)
        if isinstance(content, list):
            shown: Any = [self._block(source, block) for block in content]
            is_same = all(map(_is, shown, content))
        else:
            shown = self._block(source, content)
            is_same = shown is content

        return holder if is_same else {**holder, key: shown}

    def addressed(self, source: Source, holder: Any, key: str = "uri") -> Any:
        """What has a URI of its own, and perhaps names another in its `_meta`."""
        if not isinstance(holder, dict):
            return holder

        uri = holder.get(key)
        if isinstance(uri, str):
            shown = self.outward(source, uri)
            if shown != uri:
                holder = {**holder, key: shown}

        return self._meta(source, holder)

    def _block(self, source: Source, block: Any) -> Any:
        if not isinstance(block, dict):
            return block

        if block.get("type") == "resource_link":
            return self.addressed(source, block)

        if block.get("type") != "resource":
            return block

        resource = block.get("resource")
        shown = self.addressed(source, resource)
        return block if shown is resource else {**block, "resource": shown}

    def _meta(self, source: Source, holder: dict[str, Any]) -> dict[str, Any]:
        """What names an app's resource in its `_meta` (MCP Apps, `_meta.ui.resourceUri`)."""
        meta = holder.get("_meta")
        ui = meta.get("ui") if isinstance(meta, dict) else None
        uri = ui.get("resourceUri") if isinstance(ui, dict) else None
        flat = meta.get(UI_KEY) if isinstance(meta, dict) else None
        if not isinstance(meta, dict) or not isinstance(uri or flat, str):
            return holder

        shown: dict[str, Any] = dict(meta)
        if isinstance(ui, dict) and isinstance(uri, str):
            shown["ui"] = {**ui, "resourceUri": self.outward(source, uri)}

        if isinstance(flat, str):
            shown[UI_KEY] = self.outward(source, flat)

        return holder if shown == meta else {**holder, "_meta": shown}

    def _looks_plain(self) -> bool:
        """Whether it never matters whose a URI is: there is but one that could have it."""
        return sum(1 for source in self.sources if declares(source, "resources")) < 2


def _is(one: object, other: object) -> bool:
    return one is other
