"""Client era by upstream era: everything that is more than a request and its answer, in each cell.

A real bridge over Streamable HTTP, in front of a real server over stdio and over HTTP, and the
SDK's own client. Where an era has no such thing, the test says what happens instead.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from bridge.upstream.protocol import Era
from tests.gateway.matrix import FILLED, MODES, Person, bridge_before, client_of, text
from tests.gateway.matrix_server import PAGE
from tests.servers.everything.world import WATCHED
from tests.waiting import eventually

CELLS = [(era, transport) for era in MODES for transport in ("stdio", "http")]

every_client = pytest.mark.parametrize("era", MODES)
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture(scope="module", params=CELLS, ids=lambda cell: "-".join(cell))
async def url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """bridge, in front of a server of one era, reached one way."""
    async with bridge_before(*request.param, tmp_path_factory.mktemp("matrix")) as url:
        yield url


@every_client
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_form_reaches_the_person_and_the_answer_the_server(
    url: str, era: Era, action: str
) -> None:
    person = Person(action)
    async with client_of(url, era, person) as client:
        result = await client.call_tool("test_elicitation", {"message": "Who is it?"})

    (asked,) = person.asked
    assert asked.message == "Who is it?"
    assert list(asked.requested_schema["properties"]) == ["username", "email"]
    content = FILLED if action == "accept" else {}
    assert text(result) == f"User response: action={action}, content={json.dumps(content)}"


@every_client
async def test_page_to_open_reaches_the_person(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, person) as client:
        result = await client.call_tool("test_url_elicitation", {})

    (asked,) = person.asked
    assert (asked.mode, asked.url) == ("url", PAGE)
    assert asked.elicitation_id or era == "modern"  # only a legacy client needs one
    assert text(result) == "The person chose to accept."


@every_client
async def test_question_to_the_model_reaches_the_client(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, person) as client:
        result = await client.call_tool("test_sampling", {"prompt": "The capital of France?"})

    (asked,) = person.asked
    assert asked.messages[0].content.text == "The capital of France?"
    assert text(result) == "LLM response: Paris."


@every_client
async def test_roots_of_the_client_reach_the_server(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, person) as client:
        result = await client.call_tool("test_input_required_result_list_roots", {})

    assert person.asked == ["roots"]
    assert text(result) == "Roots: file:///a, file:///b"


@every_client
async def test_several_questions_of_one_call_are_all_answered(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, person) as client:
        several = await client.call_tool("test_input_required_result_multiple_inputs", {})
        rounds = await client.call_tool("test_input_required_result_multi_round", {})

    assert text(several) == "something: Paris. (2 roots)"
    assert text(rounds) == "something likes something"
    assert len(person.asked) == 5


@every_client
async def test_prompt_may_ask_the_person_too(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, person) as client:
        result = await client.get_prompt("test_input_required_result_prompt")

    assert len(person.asked) == 1
    (message,) = result.messages
    assert isinstance(message.content, types.TextContent)
    assert message.content.text == "Use this context: something"


@every_client
async def test_client_that_declared_nothing_is_not_asked(url: str, era: Era) -> None:
    async with client_of(url, era) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("test_sampling", {"prompt": "?"})

    assert "sampling" in str(raised.value)


@every_client
async def test_progress_of_a_call_reaches_its_client(url: str, era: Era) -> None:
    told: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async with client_of(url, era) as client:
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)

    assert told[0] == (0, 100)
    assert told[-1] == (100, 100)


@every_client
async def test_log_messages_reach_the_client_that_wants_them(url: str, era: Era) -> None:
    person = Person()
    options = {"log_level": "info"} if era == "modern" else {}
    async with client_of(url, era, listens=person, **options) as client:
        if era == "legacy":
            await client.set_logging_level("info")

        await client.call_tool("test_tool_with_logging", {})
        await eventually(lambda: len(person.logged) == 3)

    assert [level for level, _ in person.logged] == ["info"] * 3


@every_client
async def test_log_messages_reach_no_client_that_did_not_ask(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, listens=person) as client:
        await client.call_tool("test_tool_with_logging", {})
        await client.call_tool("test_simple_text", {})

    assert person.logged == []


@every_client
async def test_call_that_the_client_gives_up_is_called_off_at_the_server(
    url: str, era: Era
) -> None:
    async with client_of(url, era) as client:

        async def counts() -> list[int]:
            return [int(n) for n in text(await client.call_tool("test_waited", {})).split()]

        async def has_begun() -> bool:
            return (await counts())[0] == before[0] + 1

        async def is_called_off() -> bool:
            return (await counts())[1] == before[1] + 1

        before = await counts()
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "test_wait", {})
            await eventually(has_begun)
            group.cancel_scope.cancel()

        await eventually(is_called_off)


CHANGES: list[tuple[str, str, type, Callable[[Client], Any]]] = [
    (
        "tools_list_changed",
        "test_trigger_tool_change",
        types.ToolListChangedNotification,
        lambda client: client.list_tools(cache_mode="bypass"),
    ),
    (
        "prompts_list_changed",
        "test_trigger_prompt_change",
        types.PromptListChangedNotification,
        lambda client: client.list_prompts(cache_mode="bypass"),
    ),
    (
        "resources_list_changed",
        "test_trigger_resource_list_change",
        types.ResourceListChangedNotification,
        lambda client: client.list_resources(cache_mode="bypass"),
    ),
]


@every_client
@pytest.mark.parametrize(
    ("flag", "trigger", "kind", "listed"),
    CHANGES,
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_client_hears_of_a_changed_list_and_finds_it_changed(
    url: str,
    era: Era,
    flag: str,
    trigger: str,
    kind: type,
    listed: Callable[[Client], Any],
) -> None:
    person = Person()
    async with client_of(url, era, listens=person) as client:
        before = await listed(client)

        async def has_changed() -> bool:
            return bool(await listed(client) != before)

        if era == "modern":
            async with client.listen(**{flag: True}) as changes:
                await client.call_tool(trigger, {})
                with anyio.fail_after(30):
                    await anext(aiter(changes))

                await eventually(has_changed)
            return

        await client.call_tool(trigger, {})
        await eventually(lambda: person.heard_of(kind))
        await eventually(has_changed)


@every_client
async def test_client_that_follows_a_resource_hears_of_its_change(url: str, era: Era) -> None:
    person = Person()
    async with client_of(url, era, listens=person) as client:
        if era == "modern":
            async with client.listen(resource_subscriptions=[WATCHED]) as changes:
                await client.call_tool("test_trigger_resource_change", {})
                with anyio.fail_after(30):
                    change = await anext(aiter(changes))

            assert change.uri == WATCHED
            return

        await client.subscribe_resource(WATCHED)
        await client.call_tool("test_trigger_resource_change", {})
        await eventually(lambda: person.heard_of(types.ResourceUpdatedNotification))
