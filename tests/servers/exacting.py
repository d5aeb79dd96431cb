"""An MCP server that takes exactly what its schemas say, over stdio; not every model reads them.

`book` answers with the arguments that it got, and refuses any that its schema does not take. Of
`label` and `lost` no call is made: strict cannot say the one, and no dialect the other.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

BOOK = {
    "type": "object",
    "properties": {
        "seat": {"type": "string"},
        "meal": {"enum": ["fish", "rice"]},
        "note": {"type": ["string", "null"]},
        "bags": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"kilos": {"type": "number"}, "name": {"type": "string"}},
                "required": ["kilos"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["seat", "note"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "book": BOOK,
    "label": {"type": "object", "properties": {"labels": {"type": "object"}}},
    "lost": {"type": "object", "properties": {"n": {"$ref": "#/$defs/lost"}}},
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """The tools, with the schemas as they are written above."""
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=schema) for name, schema in SCHEMAS.items()]
    )


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """The arguments, or what is wrong with them."""
    got = params.arguments or {}
    wrong = [error.message for error in Draft202012Validator(BOOK).iter_errors(got)]
    said = "; ".join(wrong) if wrong else json.dumps(got)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=said)], is_error=bool(wrong)
    )


async def main() -> None:
    """Serve until the client leaves."""
    server = Server("exacting", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
