"""URI templates as servers use them (RFC 6570, up to level 4), and which URIs they make.

Matching takes steps in proportion to the length of the URI, times the parts of the template:
both may be a stranger's, so that nothing here goes back and tries again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

LONGEST_MATCHED: Final = 4096
MOST_PARTS: Final = 100

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_STOPS = {"": "/?#", "+": "", "#": "", ".": "/?#", "/": "?#", ";": "/?#", "?": "#", "&": "#"}
"""Which characters no value of an expression holds, by its operator."""

_LEADS = frozenset("#./;?&")
"""The operators that stand before what they expand to; with no value there is nothing at all."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a template: a literal text, or, where `operator` is not None, an expression."""

    text: str
    operator: str | None = None

    def ends(self, uri: str, starts: set[int]) -> set[int]:
        """Where this part can end in the URI, if it begins at one of `starts`."""
        if self.operator is None:
            return {at + len(self.text) for at in starts if uri.startswith(self.text, at)}

        if self.operator in _LEADS:
            inner = {at + 1 for at in starts if uri.startswith(self.operator, at)}
            return starts | self._reached(uri, inner)

        return self._reached(uri, starts)

    def _reached(self, uri: str, starts: set[int]) -> set[int]:
        """Where one character or more of a value can end."""
        stops, reached = _STOPS[self.operator or ""], set[int]()
        for at in sorted(starts):
            while at < len(uri) and uri[at] not in stops:
                at += 1
                if at in reached:
                    break

                reached.add(at)

        return reached


@dataclass(frozen=True)
class UriTemplate:
    """One template."""

    text: str

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its pieces, in order; the names of its variables do not matter."""
        parts: list[Part] = []
        end = 0
        for match in _EXPRESSION.finditer(self.text):
            if match.start() > end:
                parts.append(Part(self.text[end : match.start()]))

            parts.append(Part("", match[1]))
            end = match.end()

        if end < len(self.text):
            parts.append(Part(self.text[end:]))

        return tuple(parts)

    @property
    def head(self) -> str:
        """How every URI begins that it makes."""
        return self.parts[0].text if self.parts else ""

    @property
    def literal_length(self) -> int:
        """How much of it is said once and for all: of two templates the longer says more."""
        return sum(len(part.text) for part in self.parts)

    def makes(self, uri: str) -> bool:
        """Whether expanding it can give this URI."""
        if not uri.startswith(self.head) or len(uri) > LONGEST_MATCHED:
            return False

        if len(self.parts) > MOST_PARTS:
            return False

        ends = {0}
        for part in self.parts:
            ends = part.ends(uri, ends)
            if not ends:
                return False

        return len(uri) in ends
