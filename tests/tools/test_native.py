"""A provider's own tools: in the request, in no table, refused where there is no such provider."""

from __future__ import annotations

import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.context import ToolContext, local_context
from bridge.core.declaration import ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.tool import is_function_tool, pack_tool
from bridge.errors import CapabilityError, ToolsetError
from bridge.models.openai_compatible import OpenAICompatible
from bridge.models.scripted import ScriptedModel
from bridge.tools.native import NativeTool, google_search
from bridge.tools.toolsets import StaticToolset
from tests.agents.talk import Talk
from tests.agents.tools import Probe

CTX = ToolContext.preparing(local_context())
SEARCH = ModelTool(native={"google_search": {}})
MAPS = ModelTool(native={"google_maps": {}})


@pytest.mark.spec("12.6")
@pytest.mark.parametrize("before", [[], [MAPS]])
async def test_a_native_tool_is_appended_to_what_is_there(before: list[ModelTool | None]) -> None:
    request = LLMRequest(config=GenerateConfig(tools=list(before)) if before else None)
    await google_search.process_request(CTX, request)

    assert request == LLMRequest(config=GenerateConfig(tools=[*before, SEARCH]))


@pytest.mark.spec("12.6")
async def test_without_a_request_there_is_an_error() -> None:
    with pytest.raises(ToolsetError, match=r'no request .*"google_search"'):
        await google_search.process_request(CTX, None)


async def test_names_are_in_no_table_so_two_of_one_name_are_both_told() -> None:
    request = LLMRequest()
    pack_tool(request, Probe("google_search"))
    await google_search.process_request(CTX, request)
    await google_search.process_request(CTX, request)

    assert request.config is not None
    assert request.config.tools[1:] == [SEARCH, SEARCH]
    assert list(request.tools or {}) == ["google_search"]


async def test_what_a_model_does_to_its_request_does_not_reach_the_tool() -> None:
    tool = NativeTool("code", "Runs code.", {"code_execution": {"languages": ["python"]}})
    request = LLMRequest()
    await tool.process_request(CTX, request)
    assert request.config is not None
    (entry,) = request.config.tools
    assert entry is not None
    entry.native["code_execution"]["languages"].append("go")

    assert tool.native == {"code_execution": {"languages": ["python"]}}


@pytest.mark.spec("system-6")
async def test_a_native_tool_is_told_beside_functions_and_cannot_be_called() -> None:
    model = ScriptedModel(["Found."])
    toolset = StaticToolset([google_search, Probe("work")]).confirmed().prefixed("x__")
    await Talk(Agent("w", model, tools=[toolset])).say()

    (request,) = model.requests
    assert request.config is not None
    assert [entry and entry.native for entry in request.config.tools] == [SEARCH.native, {}]
    assert list(request.tools or {}) == ["x__work"]
    assert not is_function_tool(google_search)


@pytest.mark.spec("system-6")
async def test_a_backend_that_lacks_the_tool_refuses_before_it_is_asked() -> None:
    # Nobody listens there: if anything were sent, the error would be another.
    model = OpenAICompatible("http://127.0.0.1:9", "tiny", retries=0)
    with pytest.raises(
        CapabilityError, match='"tiny" has no tool of its own named "google_search"'
    ):
        await Talk(Agent("w", model, tools=[google_search])).say()

    await model.aclose()
