"""Values that are used and never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

HIDDEN = "**********"


class SecretMapping(Mapping[str, str]):
    """An unchanging mapping whose values do not show when it is printed.

    It reads as any mapping does: `dict(settings.headers)` has the plain values.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({hidden(self)!r})"


def hidden(values: Mapping[str, str]) -> dict[str, str]:
    """The same keys, every value hidden."""
    return dict.fromkeys(values, HIDDEN)
