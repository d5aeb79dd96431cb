"""Tools as models of each dialect read them, and those that some cannot read."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.declaration import Declaration
from bridge.errors import InvalidSchema
from bridge.tools.dialects import declaration_of, quarantined
from bridge.tools.function import function_tool
from bridge.tools.wrapped import WrappedTool

LOST = {"type": "object", "properties": {"n": {"$ref": "#/$defs/lost"}}}
OPEN = {"type": "object", "properties": {"labels": {"type": "object"}}}


class Told:
    """A tool that declares this schema, or nothing."""

    is_long_running = False
    description = ""

    def __init__(self, name: str, schema: Any = None) -> None:
        self.name = name
        self._schema = schema

    def declaration(self) -> Declaration | None:
        return None if self._schema is None else Declaration(self.name, "", self._schema)


class Native:
    """A tool that has no declaration at all."""

    name, description, is_long_running = "search", "", False


def test_a_function_and_its_wrapper_are_declared_in_a_dialect() -> None:
    @function_tool
    def count(n: int, note: str | None = None) -> int:
        """Count."""
        return n

    told = declaration_of(WrappedTool(count, name="other"), "openai-strict")

    assert told == Declaration(
        "other",
        "Count.",
        {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "note": {"type": ["string", "null"]}},
            "required": ["n", "note"],
            "additionalProperties": False,
        },
    )


def test_what_declares_nothing_is_declared_in_no_dialect() -> None:
    assert declaration_of(Told("quiet"), "gemini") is None
    assert declaration_of(Native(), "gemini") is None


def test_a_declaration_that_cannot_be_says_why() -> None:
    with pytest.raises(InvalidSchema, match='the schema of tool "lost" cannot be used as gemini: '):
        declaration_of(Told("lost", LOST), "gemini")


def test_only_tools_that_some_dialect_cannot_say_are_quarantined() -> None:
    tools = [Told("lost", LOST), Told("open", OPEN), Told("fine", {}), Told("quiet"), Native()]

    lost = 'at "/properties/n": "$ref": "#/$defs/lost" leads to no schema'
    assert quarantined(tools) == {
        "lost": dict.fromkeys(("openai", "openai-strict", "gemini", "anthropic"), lost),
        "open": {
            "openai-strict": (
                'at "/properties/labels": the names of its properties are free, which strict '
                "cannot say"
            )
        },
    }
    assert [*quarantined(tools, ["openai"])] == ["lost"]
