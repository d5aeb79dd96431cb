"""Every transport in both eras, with the SDK's own client on the other side."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import JSONRPCResponse

from bridge.core.content import Result
from bridge.core.context import local_context
from bridge.downstream.handlers import Handlers
from tests.downstream.fronts import (
    ERAS,
    TRANSPORTS,
    Piped,
    Transport,
    connected,
    counts,
    endpoint,
    serving,
    tapped,
    wire,
)
from tests.downstream.offer import ODD_ANSWER, RICH_ANSWER, Runs, Shelf, everything, servers_tool
from tests.waiting import eventually

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
STAMP = {"name": "tests", "version": "1"}
NAMES = ["add", "broken", "buy", "counts", "halves", "odd", "rich", "slow", "steps", "until"]

pytestmark = [
    pytest.mark.parametrize("era", ERAS),
    pytest.mark.parametrize("transport", TRANSPORTS),
]


def in_era(answer: Result, era: str) -> Result:
    """The answer as a client of that era gets it."""
    if era == "legacy":
        return answer

    meta = {**answer.get("_meta", {}), SERVER_INFO: STAMP}
    return {**answer, "_meta": meta, "resultType": "complete"}


def last_answer(seen: list[Any]) -> Result:
    """The last result of a call; the client lists tools, too, to check what it got."""
    results = [message.result for message in seen if isinstance(message, JSONRPCResponse)]
    return [result for result in results if "content" in result][-1]


async def test_tools_are_listed_and_called(transport: Transport, era: str) -> None:
    async with endpoint(transport) as where, connected(transport, where, era) as client:
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"result": 3}


async def test_nothing_but_tools_is_offered(transport: Transport, era: str) -> None:
    mode = "legacy" if era == "legacy" else "auto"
    async with endpoint(transport) as where, connected(transport, where, mode) as client:
        told = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        assert told == {"tools": {"listChanged": True}}
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("tests", "1")


@pytest.mark.parametrize(("tool", "answer"), [("odd", ODD_ANSWER), ("rich", RICH_ANSWER)])
async def test_an_answer_arrives_as_its_server_sent_it(
    transport: Transport, era: str, tool: str, answer: Result
) -> None:
    seen: list[Any] = []
    async with (
        endpoint(transport) as where,
        Client(tapped(wire(transport, where), seen), mode=era) as client,
    ):
        try:
            await client.call_tool(tool, {})
        except ValueError:
            # The SDK's legacy client cannot read a structured answer that is no object.
            assert (era, tool) == ("legacy", "odd")

        assert last_answer(seen) == in_era(answer, era)


async def test_an_unknown_tool_is_an_error_that_names_it(transport: Transport, era: str) -> None:
    async with endpoint(transport) as where, connected(transport, where, era) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("nope", {})

        assert refused.value.code == -32602
        assert 'unknown tool "nope"' in refused.value.message
        assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"result": 2}


async def test_a_servers_protocol_error_arrives_as_it_was(transport: Transport, era: str) -> None:
    async with endpoint(transport) as where, connected(transport, where, era) as client:
        with pytest.raises(MCPError) as passed:
            await client.call_tool("broken", {})

        error = passed.value
        assert (error.code, error.message) == (-32050, "broken there")
        assert error.data == {"why": [1, None]}


async def test_progress_goes_to_whoever_asked_for_it(transport: Transport, era: str) -> None:
    steps: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with endpoint(transport) as where, connected(transport, where, era) as client:
        loud = await client.call_tool("steps", {}, progress_callback=on_progress)
        silent = await client.call_tool("steps", {})

    assert [result.content[0].text for result in (loud, silent)] == ["progress", "silence"]
    assert sorted(steps) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_call_is_cancelled_and_the_next_one_answered(
    transport: Transport, era: str
) -> None:
    async with endpoint(transport) as where, connected(transport, where, era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow", {})
            await eventually(lambda: started(client))
            group.cancel_scope.cancel()

        await eventually(lambda: cancelled(client))
        assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"result": 2}


async def started(client: Client) -> bool:
    return (await counts(client)).get("slow", 0) == 1


async def cancelled(client: Client) -> bool:
    return (await counts(client)).get("slow cancelled", 0) == 1


async def test_halves_of_characters_do_not_hold_up_an_answer(
    transport: Transport, era: str
) -> None:
    seen: list[Any] = []
    async with (
        endpoint(transport) as where,
        Client(tapped(wire(transport, where), seen), mode=era) as client,
    ):
        await client.call_tool("halves", {})

        assert last_answer(seen)["content"][0]["text"] == "cut � here"


async def test_a_client_hears_that_the_list_of_tools_changed(
    transport: Transport, era: str
) -> None:
    shelf = Shelf(*everything(Runs()))
    catalog = await shelf.offered()

    async def change() -> None:
        shelf.listing = (*shelf.listing, servers_tool(f"tool{len(shelf.listing)}", _unused))
        assert await catalog.refresh(local_context())

    handlers = Handlers(catalog)
    async with (
        (
            nullcontext(Piped(handlers)) if transport == "stdio" else serving(handlers, transport)
        ) as where,
        connected(transport, where, era, message_handler=(heard := Heard())) as client,
    ):
        await hears(client, heard, change, era)

    assert catalog.on_change == []


async def _unused(*_: Any) -> Result:
    return {"content": []}


class Heard(list[str]):
    """The methods of the notifications that a client got."""

    async def __call__(self, message: Any) -> None:
        method = getattr(getattr(message, "root", message), "method", None)
        self.append(str(method))


async def hears(client: Client, heard: Heard, change: Any, era: str) -> None:
    before = len((await client.list_tools()).tools)
    if era == "legacy":
        # The client opens its stream for news after the handshake; what changes before is lost.
        async def told() -> bool:
            if "notifications/tools/list_changed" not in heard:
                await change()
                await anyio.sleep(0.2)

            return "notifications/tools/list_changed" in heard

        await eventually(told)
    else:
        async with client.listen(tools_list_changed=True) as news:
            await change()
            async for event in news:
                assert type(event).__name__ == "ToolsListChanged"
                break

    assert len((await client.list_tools(cache_mode="refresh")).tools) > before
