"""The tools that answer by themselves."""

from __future__ import annotations

import anyio
from mcp_types import CallToolResult

from tests.servers.everything.asking import Call
from tests.servers.everything.contents import answer, embedded, picture, sound
from tests.servers.everything.offer import object_of, tool

STEP = 0.05  # seconds between two steps of a tool that reports them

JSON_SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool("Returns a text.")
async def test_simple_text(call: Call) -> CallToolResult:
    return answer("This is a simple text response for testing.")


@tool("Returns a picture.")
async def test_image_content(call: Call) -> CallToolResult:
    return answer(picture())


@tool("Returns a sound.")
async def test_audio_content(call: Call) -> CallToolResult:
    return answer(sound())


@tool("Returns a resource inside its result.")
async def test_embedded_resource(call: Call) -> CallToolResult:
    return answer(embedded("test://embedded-resource", "This is an embedded resource content."))


@tool("Returns a text, a picture and a resource.")
async def test_multiple_content_types(call: Call) -> CallToolResult:
    data = '{"test":"data","value":123}'
    return answer(
        "Multiple content types test:",
        picture(),
        embedded("test://mixed-content-resource", data, "application/json"),
    )


@tool("Fails, and says so in its result.")
async def test_error_handling(call: Call) -> CallToolResult:
    failed = answer("This tool intentionally returns an error for testing")
    return failed.model_copy(update={"is_error": True})


@tool("Writes three log messages while it runs.")
async def test_tool_with_logging(call: Call) -> CallToolResult:
    await call.world.log(call.ctx, "info", "Tool execution started")
    await anyio.sleep(STEP)
    await call.world.log(call.ctx, "info", "Tool processing data")
    await anyio.sleep(STEP)
    await call.world.log(call.ctx, "info", "Tool execution completed")
    return answer("Three log messages were sent.")


@tool("Writes a log message, if its client wants any.")
async def test_logging_tool(call: Call) -> CallToolResult:
    await call.world.log(call.ctx, "info", "A log message")
    return answer("The log message was written.")


@tool("Reports its progress, if its client wants to know.")
async def test_tool_with_progress(call: Call) -> CallToolResult:
    for done in (0, 50):
        await call.ctx.session.report_progress(done, 100)
        await anyio.sleep(STEP)

    await call.ctx.session.report_progress(100, 100)
    return answer("All of it is done.")


@tool("Hangs up on its client before it answers; the answer is fetched after a reconnect.")
async def test_reconnection(call: Call) -> CallToolResult:
    await anyio.sleep(STEP)  # the client has to know where to come back to
    if call.ctx.close_sse_stream is not None:  # a legacy client over HTTP
        await call.ctx.close_sse_stream()

    await anyio.sleep(2 * STEP)
    return answer("The answer after the reconnect.")


@tool("Takes an object described with the words of JSON Schema 2020-12.", JSON_SCHEMA_2020_12)
async def json_schema_2020_12_tool(call: Call) -> CallToolResult:
    return answer(f"Called with {sorted(call.arguments)}.")


@tool(
    "Has parameters that are repeated as HTTP headers.",
    object_of(
        "region",
        region={"type": "string", "x-mcp-header": "Region"},
        priority={"type": "integer", "x-mcp-header": "Priority"},
        urgent={"type": "boolean", "x-mcp-header": "Urgent"},
        query={"type": "string"},
    ),
)
async def test_custom_headers(call: Call) -> CallToolResult:
    return answer(f"The region is {call.arguments.get('region')}.")


@tool("Makes one tool come, or go again.")
async def test_trigger_tool_change(call: Call) -> CallToolResult:
    await call.world.change_tools()
    return answer("The list of tools has changed.")


@tool("Makes one prompt come, or go again.")
async def test_trigger_prompt_change(call: Call) -> CallToolResult:
    await call.world.change_prompts()
    return answer("The list of prompts has changed.")


@tool("Gives the watched resource a new text.")
async def test_trigger_resource_change(call: Call) -> CallToolResult:
    await call.world.change_watched()
    return answer("The watched resource has changed.")


@tool("Comes and goes.")
async def test_extra_tool(call: Call) -> CallToolResult:
    return answer("The extra tool is here.")
