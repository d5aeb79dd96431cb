"""The tools of a catalog as `tools/list` shows them, built once for each version of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp.shared.inbound import x_mcp_header_map

from bridge.core.content import Result
from bridge.core.declaration import Declaration, Schema
from bridge.core.tool import Tool, is_function_tool
from bridge.telemetry import log

Definition = dict[str, Any]
Rewrite: TypeAlias = Callable[[str, Definition], Definition]

PLAIN_TYPES = frozenset({"string", "integer", "number", "boolean", "array"})


@dataclass(frozen=True, slots=True)
class Listing:
    """One version of what is offered, sorted by name, in the form of each era.

    `mirrored` holds the input schemas that put arguments in headers (MCP 2026-07-28, transports).
    """

    version: int
    modern: Result
    legacy: Result
    mirrored: Mapping[object, Any]


def unchanged(upstream: str, definition: Definition) -> Definition:
    """A server's definition, as it is."""
    return definition


def list_catalog(
    version: int, tools: Mapping[str, Tool], definition: Rewrite = unchanged
) -> Listing:
    """Build the listing of one snapshot. A tool that cannot be shown is left out and logged.

    `definition` puts what one upstream's definition says in the words of this server.
    """
    shown = [
        definition(getattr(tools[name], "upstream", ""), shape)
        for name in sorted(tools)
        if (shape := _shown(name, tools[name])) is not None
    ]
    return Listing(
        version,
        {"tools": shown},
        {"tools": [_for_legacy(shape) for shape in shown]},
        {
            shape["name"]: schema
            for shape in shown
            if x_mcp_header_map(schema := shape["inputSchema"])
        },
    )


def server_definition(tool: Tool) -> Definition | None:
    """The MCP server's own definition of a tool; None for a tool that no server defined."""
    definition = getattr(tool, "definition", None)
    return definition if isinstance(definition, dict) else None


def object_schema(schema: Schema | None) -> Schema | None:
    """The schema of a local tool's structured answer; None where it is not sure to be an object.

    A result that is not an object is answered as {"result": …}, so that is what is shown.
    """
    kind = schema.get("type") if schema is not None else None
    if schema is None or kind == "object":
        return schema

    if not isinstance(kind, str) or kind not in PLAIN_TYPES:
        return None

    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    wrapped: Schema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return wrapped | {key: schema[key] for key in ("$defs", "$schema") if key in schema}


def _shown(name: str, tool: Tool) -> Definition | None:
    if not is_function_tool(tool):
        return None

    try:
        definition = server_definition(tool)
        return _local(name, tool) if definition is None else _offered(name, tool, definition)
    except Exception as exc:  # a stranger's declaration; one bad tool must not hide the others
        log.warning('the tool "%s" cannot be listed: %s', name, exc)
        return None


def _offered(name: str, tool: Tool, definition: Definition) -> Definition:
    """A server's definition, untouched but for what we renamed or described anew."""
    shape = {"inputSchema": {"type": "object"}, **definition, "name": name}
    if tool.description != (definition.get("description") or ""):
        shape["description"] = tool.description

    return shape


def _local(name: str, tool: Any) -> Definition | None:
    declaration: Declaration | None = tool.declaration()
    if declaration is None:
        return None

    shape: Definition = {"name": name}
    if declaration.description:
        shape["description"] = declaration.description

    # MCP wants the type said at the root, also where $ref or anyOf would say it (tools, schema).
    shape["inputSchema"] = {**(declaration.parameters_json_schema or {}), "type": "object"}
    output = object_schema(declaration.response_json_schema)
    if output is not None:
        shape["outputSchema"] = output

    return shape


def _for_legacy(shape: Definition) -> Definition:
    """Legacy clients read an output schema only at an object: any other breaks their listing."""
    output = shape.get("outputSchema")
    if output is None or (isinstance(output, dict) and output.get("type") == "object"):
        return shape

    return {key: value for key, value in shape.items() if key != "outputSchema"}
