"""What a model is told of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bridge.core.dialects.nulls import without_nulls

Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool as a model reads it. A schema of None is absent, which `{}` is not.

    `parameters_json_schema` and `response_json_schema` are JSON Schema, untouched where an
    MCP server wrote them. `own_parameters` are the tool's own where the others ask a model for
    something else: null instead of what may be missing.
    """

    name: str
    description: str = ""
    parameters_json_schema: Schema | None = None
    response_json_schema: Schema | None = None
    own_parameters: Schema | None = field(default=None, repr=False, compare=False)

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """What to call the tool with, of what a model sent that read this declaration.

        In the dialect "openai-strict" a model sends null for what it leaves out, which the tool
        does not take; these nulls are left out here. All else is as the model sent it.
        """
        if self.own_parameters is None:
            return dict(args)

        return without_nulls(self.own_parameters, args)


@dataclass(slots=True)
class ModelTool:
    """One entry of `config.tools`: function declarations, or one of the provider's own tools.

    `function_declarations` is None for a native entry, whose `native` is what the provider
    wants to read, for instance `{"google_search": {}}`.
    """

    function_declarations: list[Declaration] | None = None
    native: dict[str, Any] = field(default_factory=dict)
