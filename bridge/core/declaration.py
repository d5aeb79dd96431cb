"""What a model is told of a tool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool as a model reads it. A schema of None is absent, which `{}` is not.

    `parameters_json_schema` and `response_json_schema` are JSON Schema, untouched where an
    MCP server wrote them.
    """

    name: str
    description: str = ""
    parameters_json_schema: Schema | None = None
    response_json_schema: Schema | None = None


@dataclass(slots=True)
class ModelTool:
    """One entry of `config.tools`: function declarations, or one of the provider's own tools.

    `function_declarations` is None for a native entry, whose `native` is what the provider
    wants to read, for instance `{"google_search": {}}`.
    """

    function_declarations: list[Declaration] | None = None
    native: dict[str, Any] = field(default_factory=dict)
