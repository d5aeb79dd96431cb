"""An MCP server as a toolset: what is listed, how it is offered, what becomes of a call."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.calls.call import Outcome, execute
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import (
    ConfigError,
    ConfirmationRequired,
    DuplicateTool,
    InvalidArguments,
    OutcomeUnknown,
    ToolsetError,
    UpstreamError,
)
from bridge.upstream.channel import Limits
from bridge.upstream.command import Command
from bridge.upstream.listing import usable
from bridge.upstream.target import Endpoint
from bridge.upstream.toolset import MCPToolset
from tests.conftest import Everything
from tests.servers.odd_wire import FIDELITY, read_journal
from tests.waiting import eventually

pytestmark = pytest.mark.embedding

Odd = Callable[..., list[str]]
HASTE = Limits(close_grace=0.2)
CTX = local_context()


def opened(argv: list[str], **more: Any) -> MCPToolset:
    return MCPToolset(argv, limits=HASTE, connect_timeout=60, **more)


async def names(toolset: MCPToolset) -> list[str]:
    return [tool.name for tool in await toolset.tools(CTX)]


async def call(toolset: MCPToolset, tool: str, **args: Any) -> Outcome:
    tools = {one.name: one for one in await toolset.tools(CTX)}
    [outcome] = await execute([FunctionCall("c1", tool, args)], tools, CTX)
    return outcome


@pytest.mark.spec("11.1")
async def test_demo_answers_with_its_structured_value(demo_command: list[str]) -> None:
    async with opened(demo_command) as toolset:
        outcome = await call(toolset, "get_weather", city="Tokyo")

    assert outcome.error is None
    assert outcome.response is not None
    assert outcome.response["output"]["city"] == "Tokyo"
    assert outcome.raw is not None
    assert outcome.raw["structuredContent"] == outcome.response["output"]


async def test_schemas_reach_the_declaration_untouched_and_absent_stays_absent(
    demo_command: list[str],
) -> None:
    async with opened(demo_command) as toolset:
        request = LLMRequest()
        for tool in await toolset.tools(CTX):
            pack_tool(request, tool)

    assert request.config is not None
    [entry] = [one for one in request.config.tools if one is not None]
    declared = {one.name: one for one in entry.function_declarations or ()}
    for name, tool in (request.tools or {}).items():
        assert declared[name].parameters_json_schema == tool.definition["inputSchema"]
        assert declared[name].response_json_schema == tool.definition.get("outputSchema")

    assert declared["radar"].response_json_schema is None
    assert declared["get_weather"].response_json_schema is not None


async def test_two_toolsets_with_one_name_between_them_are_refused(demo_command: list[str]) -> None:
    request = LLMRequest()
    async with opened(demo_command) as one, opened(demo_command) as other:
        pack_tool(request, (await one.tools(CTX))[0])
        with pytest.raises(DuplicateTool, match="get_weather"):
            pack_tool(request, (await other.tools(CTX))[0])


async def test_picture_is_described_to_a_model_and_kept_for_a_client(
    demo_command: list[str],
) -> None:
    async with opened(demo_command) as toolset:
        outcome = await call(toolset, "radar", city="Tokyo")

    assert outcome.response is not None
    assert outcome.raw is not None
    image = outcome.raw["content"][1]
    assert image["type"] == "image"
    assert '[MCP image: mimeType="image/png", size=' in outcome.response["output"]
    assert image["data"] not in outcome.response["output"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_error_beats_structured_value_and_the_raw_answer_is_kept(
    odd_server: Odd, era: str
) -> None:
    async with opened(odd_server("fidelity", "--era", era)) as toolset:
        outcome = await call(toolset, "odd")

    assert isinstance(outcome.error, UpstreamError)
    assert outcome.raw is not None
    assert {key: outcome.raw[key] for key in FIDELITY if key != "_meta"} == {
        key: value for key, value in FIDELITY.items() if key != "_meta"
    }
    assert outcome.response is not None
    assert outcome.response["error"].startswith("Tool execution failed. Details: ")


async def test_filter_prefix_and_confirmation_stack_on_the_servers_own_names(
    demo_command: list[str],
) -> None:
    asked: list[str] = []

    def needs_yes(name: str, args: dict[str, Any]) -> bool:
        asked.append(name)
        return bool(args["city"] == "Oslo")

    async with opened(
        demo_command,
        tool_filter=["get_*", "buy_report"],
        tool_name_prefix="w__",
        require_confirmation=needs_yes,
    ) as toolset:
        assert await names(toolset) == ["w__get_weather", "w__buy_report"]
        assert (await call(toolset, "w__buy_report", city="Tokyo")).error is None
        waiting = await call(toolset, "w__buy_report", city="Oslo")

    assert isinstance(waiting.error, ConfirmationRequired)
    assert asked == ["buy_report", "buy_report"]
    question = waiting.actions.requested_tool_confirmations["c1"]
    assert question.payload["arguments"] == {"city": "Oslo"}
    assert question.payload["tool"] == "buy_report"


async def test_progress_arrives_in_order_before_the_answer(demo_command: list[str]) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def sink(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with opened(demo_command, env={"PACE": "0"}) as toolset:
        tools = {tool.name: tool for tool in await toolset.tools(CTX)}
        asked = FunctionCall("c1", "forecast", {"city": "Berlin", "days": 3})
        [outcome] = await execute([asked], tools, CTX, on_progress=sink)

    assert outcome.error is None
    assert seen == [(n, 3, f"day {n} of 3") for n in (1, 2, 3)]


@pytest.mark.spec("11.13")
async def test_every_page_is_listed_in_order(odd_server: Odd) -> None:
    async with opened(odd_server("pages", "--size", "7")) as toolset:
        assert await names(toolset) == [f"echo_{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("way", "said"), [("same-cursor", "repeats"), ("endless-pages", "more than 1000 pages")]
)
async def test_pages_that_never_end_are_an_error(odd_server: Odd, way: str, said: str) -> None:
    async with opened(odd_server(way)) as toolset:
        with pytest.raises(ToolsetError, match=said):
            await toolset.tools(CTX)


async def test_second_of_two_tools_with_one_name_is_left_out_and_shown(odd_server: Odd) -> None:
    async with opened(odd_server("twins")) as toolset:
        assert await names(toolset) == ["echo", "odd"]
        [problem] = toolset.status().problems

    assert problem == 'tool "echo" is listed twice; the first is offered'


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_change_that_the_server_announces_shows_in_the_next_listing(
    odd_server: Odd, era: str
) -> None:
    async with opened(odd_server("noise", "--era", era)) as toolset:
        before = await toolset.tools(CTX)
        assert await toolset.tools(CTX) is before, "an unchanged offer is the same object"
        await call(toolset, "odd", way="grow")

        async def grown() -> bool:
            return await names(toolset) == ["echo", "odd", "echo_2"]

        await eventually(grown)


async def test_connection_lost_between_pages_starts_the_listing_again(
    odd_server: Odd, tmp_path: Path
) -> None:
    async with opened(odd_server("noise", "--journal", str(tmp_path / "j"))) as toolset:
        await toolset.tools(CTX)
        assert isinstance((await call(toolset, "odd", way="dies")).error, OutcomeUnknown)
        assert await names(toolset) == ["echo", "odd"]

    starts = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()]
    assert sum("started" in line for line in starts) == 2


async def test_unreachable_server_is_an_error_that_says_why() -> None:
    async with opened(["no-such-program"]) as toolset:
        with pytest.raises(ToolsetError, match='command not found: "no-such-program"'):
            await toolset.tools(CTX)


async def test_unreachable_server_can_be_skipped() -> None:
    async with opened(["no-such-program"], on_unavailable="skip") as toolset:
        assert await names(toolset) == []


def test_shell_line_is_refused_and_the_list_form_shown() -> None:
    with pytest.raises(ConfigError, match=r"\['npx', '-y', 'server'\]"):
        MCPToolset("npx -y server")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"require_confirmation": None}, "require_confirmation is True, False.* not None"),
        ({"require_confirmation": 1}, "require_confirmation .* not a int"),
        ({"on_unavailable": None}, "on_unavailable is 'raise' or 'skip', not None"),
        ({"media": "images"}, "media is 'text' or 'parts' or 'artifacts', not 'images'"),
    ],
)
def test_parameter_that_would_have_to_be_guessed_is_refused_by_name(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        MCPToolset(["x"], **given)


async def test_filter_that_names_no_tool_is_a_problem_of_the_server(odd_server: Odd) -> None:
    async with opened(odd_server("plain"), tool_filter=["echo", "ecko"]) as toolset:
        assert await names(toolset) == ["echo"]
        [problem] = toolset.status().problems

    assert problem == 'tool_filter: no tool here is named "ecko", so it has no effect'


async def test_callers_who_ask_together_wait_for_one_listing(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with opened(odd_server("plain", "--journal", str(journal))) as toolset:
        with anyio.CancelScope() as first:
            first.cancel()
            await toolset.tools(CTX)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(toolset.tools, CTX)

    assert len(read_journal(journal, "tools/list")) == 1


@pytest.mark.parametrize("way", ["asks"])
async def test_request_of_the_server_to_its_client_is_refused(odd_server: Odd, way: str) -> None:
    async with opened(odd_server(way, "--era", "legacy")) as toolset:
        outcome = await call(toolset, "odd")

    assert outcome.raw is not None
    assert outcome.raw["structuredContent"]["error"]["code"] == -32601


async def test_keeper_tells_of_coming_going_and_changing(odd_server: Odd) -> None:
    told: list[str] = []

    async with opened(odd_server("noise")) as toolset, anyio.create_task_group() as tasks:
        tasks.start_soon(toolset.keep, lambda: told.append(toolset.status().state))
        await eventually(lambda: told == ["ready"])
        await call(toolset, "odd", way="grow")
        await eventually(lambda: told == ["ready", "ready"])
        await call(toolset, "odd", way="dies")
        await eventually(lambda: told == ["ready", "ready", "ready"])
        assert await names(toolset) == ["echo", "odd"]
        tasks.cancel_scope.cancel()


async def test_real_python_servers_speak_the_modern_era(
    time_server: list[str], git_server: Callable[[], list[str]]
) -> None:
    async with opened(time_server) as time, opened(git_server()) as git:
        now = await call(time, "get_current_time", timezone="UTC")
        argv = git_server()
        status = await call(git, "git_status", repo_path=argv[argv.index("--repository") + 1])

        assert [one.status().era for one in (time, git)] == ["modern", "modern"]

    assert now.error is None
    assert now.response is not None
    assert "UTC" in json.dumps(now.response)
    assert status.response is not None
    assert "nothing to commit" in status.response["output"]


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_server_everything_speaks_the_legacy_era_over_each_transport(
    everything: Everything, transport: str
) -> None:
    async def check(toolset: MCPToolset) -> None:
        async with toolset:
            outcome = await call(toolset, "echo", message="hello")
            assert toolset.status().era == "legacy"
            assert toolset.status().transport == transport

        assert outcome.response == {"output": "Echo: hello"}

    if transport == "stdio":
        await check(opened(everything.stdio))
    elif transport == "http":
        async with everything.http() as served:
            await check(MCPToolset(served.url, connect_timeout=60))
    else:
        async with everything.sse() as served:
            await check(MCPToolset(served.url, connect_timeout=60))


async def test_toolset_can_be_used_and_closed_from_different_tasks(odd_server: Odd) -> None:
    toolset = opened(odd_server("noise"))
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(names, toolset)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(toolset.aclose)

    with pytest.raises(ToolsetError, match="is closed"):
        await toolset.tools(CTX)


async def test_answer_that_is_no_result_yet_is_an_error_that_names_it(odd_server: Odd) -> None:
    async with opened(odd_server("task", "--era", "modern")) as toolset:
        outcome = await call(toolset, "odd")

    assert isinstance(outcome.error, UpstreamError)
    assert "'task'" in str(outcome.error)


async def test_arguments_that_are_no_json_are_refused_and_not_sent(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with opened(odd_server("plain", "--journal", str(journal))) as toolset:
        for value in (float("inf"), "\ud800"):
            outcome = await call(toolset, "echo", text=value)
            assert isinstance(outcome.error, InvalidArguments)

    assert read_journal(journal, "tools/call") == []


@pytest.mark.parametrize(
    "fault",
    [
        {"title": 5},
        {"annotations": []},
        {"_meta": "x"},
        {"icons": {}},
        {"inputSchema": {"type": "string"}},
        {"inputSchema": {}},
        {"inputSchema": {"type": "object", "properties": []}},
        {"inputSchema": {"type": "object", "required": "x"}},
    ],
)
def test_definition_that_clients_cannot_read_hides_its_tool_alone(fault: dict[str, Any]) -> None:
    good = {"name": "good", "inputSchema": {"type": "object"}}

    kept, problems = usable([good, {"name": "bad", **fault}])

    assert kept == [good]
    assert len(problems) == 1
    assert "'bad' is left out" in problems[0]


def test_nothing_configured_for_an_upstream_is_in_what_is_said_of_it() -> None:
    endpoint = Endpoint(
        "https://x.example/mcp?api_key=canary-1", headers={"Authorization": "Bearer canary-2"}
    )
    command = Command(("x",), {"A": "canary", "B": "canary-longer"})

    said = endpoint.without_secrets("expired: Bearer canary-2 and canary-2 at ?api_key=canary-1")
    assert "canary" not in said
    assert command.without_secrets("bad canary-longer, bad canary") == "bad ***, bad ***"


async def test_copy_of_a_live_stack_begins_anew(odd_server: Odd) -> None:
    async with opened(
        odd_server("plain"), tool_filter=["e*"], tool_name_prefix="x__", require_confirmation=True
    ) as toolset:
        await toolset.tools(CTX)
        copied = pickle.loads(pickle.dumps(toolset))

    assert copied.status().state == "idle"
    assert await names(copied) == ["x__echo"]
    await copied.aclose()
