"""The prompts."""

from __future__ import annotations

from mcp_types import ContentBlock, ElicitResult, GetPromptResult, PromptMessage

from tests.servers.everything.asking import Ask, Call, form
from tests.servers.everything.contents import embedded, picture, text
from tests.servers.everything.offer import prompt


def _said(*blocks: ContentBlock | str) -> GetPromptResult:
    return GetPromptResult(
        messages=[
            PromptMessage(role="user", content=text(block) if isinstance(block, str) else block)
            for block in blocks
        ]
    )


@prompt("A text.")
async def test_simple_prompt(call: Call) -> GetPromptResult:
    return _said("This is a simple prompt for testing.")


@prompt("A text with two gaps.", arg1="First test argument", arg2="Second test argument")
async def test_prompt_with_arguments(call: Call) -> GetPromptResult:
    first, second = call.arguments.get("arg1", ""), call.arguments.get("arg2", "")
    return _said(f"Prompt with arguments: arg1='{first}', arg2='{second}'")


@prompt("A resource and what to do with it.", resourceUri="URI of the resource to embed")
async def test_prompt_with_embedded_resource(call: Call) -> GetPromptResult:
    uri = str(call.arguments.get("resourceUri", "test://example-resource"))
    return _said(
        embedded(uri, "Embedded resource content for testing."),
        "Please process the embedded resource above.",
    )


@prompt("A picture and what to do with it.")
async def test_prompt_with_image(call: Call) -> GetPromptResult:
    return _said(picture(), "Please analyze the image above.")


@prompt("A text about what the person says.")
async def test_input_required_result_prompt(call: Call) -> GetPromptResult | Ask:
    reply = call.answer("user_context", ElicitResult)
    if reply is None:
        fields = {"context": {"type": "string"}}
        return Ask({"user_context": form("What context should the prompt use?", fields, "context")})

    return _said(f"Use this context: {(reply.content or {}).get('context')}")


@prompt("Comes and goes.")
async def test_extra_prompt(call: Call) -> GetPromptResult:
    return _said("The extra prompt is here.")
