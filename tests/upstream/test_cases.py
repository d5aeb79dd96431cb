"""An MCP server in an agent's hands: filtered, lost and found again, confirmed, answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.tool import Tool
from bridge.errors import ConfigError, UpstreamError
from bridge.models.scripted import ScriptedModel
from bridge.upstream.channel import Limits
from bridge.upstream.command import Command
from bridge.upstream.target import Endpoint, to_target
from bridge.upstream.toolset import MCPToolset
from tests.agents.talk import CONFIRMATION, Talk, brief, briefs, call, original
from tests.servers.odd_wire import ECHO, FIDELITY, ODD

Odd = Callable[..., list[str]]
HASTE = Limits(close_grace=0.2)
CTX = local_context()
TOKYO, LIMA = (call(city, "get_weather", city=city) for city in ("Tokyo", "Lima"))


def opened(argv: list[str], **more: Any) -> MCPToolset:
    return MCPToolset(argv, limits=HASTE, connect_timeout=60, **more)


def starts(journal: Path) -> int:
    """How often the server was started."""
    return journal.read_text().count('"started"')


@pytest.mark.spec("11.2")
async def test_a_filter_leaves_what_it_names(demo_command: list[str]) -> None:
    async with opened(demo_command, tool_filter=["get_weather"]) as toolset:
        assert [tool.name for tool in await toolset.tools(CTX)] == ["get_weather"]


@pytest.mark.spec("11.3")
@pytest.mark.parametrize("then", ["list", "run"])
async def test_a_connection_that_was_lost_is_made_again_once(
    odd_server: Odd, tmp_path: Path, then: str
) -> None:
    async with opened(odd_server("plain", "--journal", str(tmp_path / "j"))) as toolset:
        echo, odd = await toolset.tools(CTX)
        model = ScriptedModel([call("c", "odd", way="dies"), "It died."])
        await Talk(Agent("w", model, tools=[odd])).say()
        assert starts(tmp_path / "j") == 1

        if then == "list":
            assert [tool.name for tool in await toolset.tools(CTX)] == ["echo", "odd"]

        model = ScriptedModel([call("d", "echo", text="again"), "It lives."])
        events = await Talk(Agent("w", model, tools=[echo])).say()

    assert brief(events[1]) == [("answer", "d", "echo", {"output": {"text": "again"}})]
    assert starts(tmp_path / "j") == 2


def in_lima(name: str, args: Args) -> bool:
    return bool(args["city"] == "Lima")


def get_weather_alone(name: str, args: Args) -> bool:
    return name == "get_weather"


@pytest.mark.spec("11.4")
@pytest.mark.parametrize(
    ("confirm", "asked", "asks"),
    [
        (False, TOKYO, False),
        (True, TOKYO, True),
        (in_lima, LIMA, True),
        (in_lima, TOKYO, False),
        (get_weather_alone, TOKYO, True),
        (get_weather_alone, call("r", "radar", city="Tokyo"), False),
    ],
)
async def test_who_is_asked_before_a_server_is(
    demo_command: list[str], confirm: Any, asked: Any, asks: bool
) -> None:
    model = ScriptedModel([asked, "Done."])
    async with opened(demo_command, require_confirmation=confirm) as toolset:
        talk = Talk(Agent("w", model, tools=[toolset]))
        called, answered, last = await talk.say()

    assert brief(called) == [("call", asked.id, asked.name, asked.args)]
    ((_, call_id, _, response),) = brief(answered)
    assert (call_id, "output" in response) == (asked.id, not asks)
    assert bool(answered.actions.requested_tool_confirmations) is asks
    if asks:
        assert "needs confirmation" in response["error"]
        (question,) = last.function_calls()
        assert (question.name, original(question)["id"]) == (CONFIRMATION, asked.id)
    else:
        assert brief(last) == ["Done."]


@pytest.mark.spec("11.4")
@pytest.mark.parametrize("decision", [True, False])
async def test_a_server_is_asked_once_a_person_said_yes_and_never_after_a_no(
    demo_command: list[str], decision: bool
) -> None:
    model = ScriptedModel([TOKYO, "Done."])
    async with opened(demo_command, require_confirmation=True) as toolset:
        talk = Talk(Agent("w", model, tools=[toolset]))
        await talk.say()
        (answered, last) = await talk.decide(get_weather=decision)

    ((_, call_id, _, response),) = brief(answered)
    assert call_id == "Tokyo"
    assert brief(last) == ["Done."]
    if decision:
        assert response["output"]["city"] == "Tokyo"
    else:
        assert response == {"error": 'the call of "get_weather" was rejected; nothing ran'}


@pytest.mark.spec("11.12")
@pytest.mark.parametrize(
    ("target", "given", "why"),
    [
        (["server"], {"headers": {"Authorization": "Bearer t"}}, "headers are for a URL"),
        ("https://example.com/mcp", {"env": {"TOKEN": "t"}}, "env is for a command"),
        (Command(("server",)), {"env": {"TOKEN": "t"}}, "belong into the Command itself"),
        (
            Endpoint("https://example.com/mcp"),
            {"headers": {"Authorization": "Bearer t"}},
            "belong into the Endpoint itself",
        ),
        ("", {"headers": {"Authorization": "Bearer t"}}, "is not an http"),
        ([], {"headers": {"Authorization": "Bearer t"}}, "at least the program"),
    ],
)
def test_credentials_that_a_target_has_no_use_for_are_refused(
    target: Any, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        MCPToolset(target, **given)

    assert "Bearer t" not in str(refused.value)


@pytest.mark.spec("11.12")
def test_credentials_go_to_the_target_they_are_for_and_change_nothing_of_the_callers() -> None:
    headers = {"Authorization": "Bearer t"}

    assert to_target("https://example.com/mcp", headers=headers) == Endpoint(
        "https://example.com/mcp", headers={"Authorization": "Bearer t"}
    )
    assert to_target(["server"], env={"TOKEN": "t"}) == Command(("server",), {"TOKEN": "t"})
    assert headers == {"Authorization": "Bearer t"}


@pytest.mark.spec("system-43")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_model_reads_the_servers_own_schemas(odd_server: Odd, era: str) -> None:
    model = ScriptedModel(["Hello."])
    async with opened(odd_server("plain", "--era", era)) as toolset:
        await Talk(Agent("w", model, tools=[toolset])).say()

    (request,) = model.requests
    assert request.config is not None
    (entry,) = request.config.tools
    assert entry is not None
    assert [
        (told.name, told.description, told.parameters_json_schema, told.response_json_schema)
        for told in entry.function_declarations or ()
    ] == [(tool["name"], tool["description"], tool["inputSchema"], None) for tool in (ECHO, ODD)]
    assert list(request.tools or {}) == ["echo", "odd"]


@pytest.mark.spec("system-43")
async def test_a_schema_of_the_answer_is_told_where_the_server_has_one(
    demo_command: list[str],
) -> None:
    model = ScriptedModel(["Hello."])
    async with opened(demo_command) as toolset:
        definitions = {tool.name: tool.definition for tool in await toolset.tools(CTX)}
        await Talk(Agent("w", model, tools=[toolset])).say()

    config = model.requests[0].config
    assert config is not None
    told = [each for entry in config.tools if entry for each in entry.function_declarations or ()]
    assert {each.name: each.response_json_schema for each in told} == {
        name: definition.get("outputSchema") for name, definition in definitions.items()
    }
    assert {each.name for each in told if each.response_json_schema is None} == {
        "radar",
        "storm_alert",
    }


@pytest.mark.spec("system-44")
async def test_an_empty_structured_value_beats_the_content(odd_server: Odd) -> None:
    model = ScriptedModel([call("c", "echo"), "Empty."])
    async with opened(odd_server("plain")) as toolset:
        events = await Talk(Agent("w", model, tools=[toolset])).say()

    assert brief(events[1]) == [("answer", "c", "echo", {"output": {}})]


@pytest.mark.spec("system-44")
@pytest.mark.parametrize(
    ("way", "said", "is_protocol_error"),
    [
        # Its structured value is 0, and says nothing against its own error.
        ("fidelity", FIDELITY["content"][0]["text"], False),
        ("is-error", "it went wrong", False),
        ("error", "the moon is wrong", True),
    ],
)
@pytest.mark.parametrize("handled", [True, False])
async def test_a_servers_error_reaches_the_callbacks_and_then_the_model(
    odd_server: Odd, way: str, said: str, is_protocol_error: bool, handled: bool
) -> None:
    seen: list[Exception] = []

    async def on_error(ctx: ToolContext, tool: Tool, args: Args, error: Exception) -> Result | None:
        seen.append(error)
        return {"instead": True} if handled else None

    model = ScriptedModel([call("c", "odd", way=way), "So be it."])
    async with opened(odd_server("plain")) as toolset:
        events = await Talk(Agent("w", model, tools=[toolset], on_tool_error=on_error)).say()

    (error,) = seen
    assert isinstance(error, UpstreamError)
    assert error.is_protocol_error is is_protocol_error
    ((_, _, _, response),) = brief(events[1])
    if handled:
        assert response == {"instead": True}
    else:
        assert said in response["error"]
        assert list(response) == ["error"]

    assert briefs(events)[2] == ["So be it."]
