"""Tools as models read them: in the dialect of a provider, and which of them none can read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridge.core.declaration import Declaration
from bridge.core.dialects.dialect import DIALECTS, Dialect, in_dialect
from bridge.core.tool import Tool
from bridge.errors import InvalidSchema


def declaration_of(tool: Any, dialect: Dialect) -> Declaration | None:
    """What a model of this dialect reads of a tool; None where it reads nothing of it.

    Raises:
        InvalidSchema: The tool cannot be declared in this dialect, and why.
    """
    declare = getattr(tool, "declaration", None)
    told: Declaration | None = None if declare is None else declare()
    return None if told is None else in_dialect(told, dialect)


def quarantined(
    tools: Iterable[Tool], dialects: Iterable[Dialect] = DIALECTS
) -> dict[str, dict[Dialect, str]]:
    """For each tool that some dialect has no words for, by its name: why, by dialect.

    Models of these dialects are not offered it; all others, and MCP clients, are.
    """
    asked = tuple(dialects)
    found: dict[str, dict[Dialect, str]] = {}
    for tool in tools:
        reasons: dict[Dialect, str] = {}
        for dialect in asked:
            try:
                declaration_of(tool, dialect)
            except InvalidSchema as exc:
                reasons[dialect] = str(exc.__cause__ or exc)

        if reasons:
            found[tool.name] = reasons

    return found
