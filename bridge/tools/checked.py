"""Names and globs that are written somewhere and match no tool: told, not passed over."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence

from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool, Toolset
from bridge.telemetry import log
from bridge.tools.names import matcher
from bridge.tools.wrapper import Wrapper


def literally(names: Iterable[str]) -> tuple[str, ...]:
    """Globs that match these very names."""
    return tuple(map(glob.escape, names))


class CheckedToolset(Wrapper):
    """The same tools; `problems` says which of the names and globs match none of them.

    `expected` holds globs by the key that they are written under. They are judged at each
    listing that changed: before the first, nothing is known to be wrong.
    """

    def __init__(self, toolset: Toolset, expected: Mapping[str, Sequence[str]]) -> None:
        """Raises ConfigError if there is no toolset."""
        super().__init__(toolset)
        self._idle: tuple[str, ...] = ()
        self._expected = [
            (key, [(text, matcher([text])) for text in globs]) for key, globs in expected.items()
        ]

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each key that names tools which are not here."""
        return (*super().problems, *self._idle)

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        problems = tuple(self._judge([tool.name for tool in listing]))
        for problem in problems:
            if problem not in self._idle:
                log.warning('toolset "%s": %s', self.name, problem)

        self._idle = problems
        return listing

    def _judge(self, names: Sequence[str]) -> Iterable[str]:
        for key, globs in self._expected:
            idle = [text for text, matches in globs if not any(map(matches, names))]
            if idle:
                shown = ", ".join(f'"{_plain(text)}"' for text in idle)
                yield f"{key}: no tool here is named {shown}, so it has no effect"


def _plain(text: str) -> str:
    """A glob as it was written, where it was a name."""
    for sign in "*?[":
        text = text.replace(f"[{sign}]", sign)

    return text
