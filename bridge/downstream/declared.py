"""What servers declare and need nothing of ours for: log messages and extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.offering import Handler
from bridge.downstream.source import Source, declares


class Declared:
    """An `Offering` of capabilities alone, each if a server declares it."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.on_news: list[News] = []
        self._sources = sources

    @property
    def methods(self) -> Mapping[str, Handler]:
        """None: log levels are set with the front, and extensions ride on other requests."""
        return {}

    def capabilities(self) -> Mapping[str, Any]:
        """Log messages, and every extension; of two servers' settings for one the first's."""
        found: dict[str, Any] = {}
        if any(declares(source, "logging") for source in self._sources):
            found["logging"] = {}

        extensions: dict[str, Any] = {}
        for source in self._sources:
            declared = source.listed.capabilities.get("extensions")
            if isinstance(declared, dict):
                extensions = {**declared, **extensions}

        return {**found, "extensions": extensions} if extensions else found

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Nothing is requested here."""
        return False
