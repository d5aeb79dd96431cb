"""Calls of modern clients whose legacy server asks something in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp_types import ElicitResult

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.rpc import RpcError
from bridge.downstream import parking
from bridge.downstream.handlers import Handlers
from tests.downstream.fronts import Piped, connected, serving
from tests.downstream.offer import Shelf
from tests.waiting import eventually

MODERN = "2026-07-28"
KEY = "io.modelcontextprotocol/"
FORM = {"message": "Which size?", "requestedSchema": {"type": "object", "properties": {}}}


@dataclass
class Asking:
    """A tool of a legacy server that asks its client once for each thing it was told to."""

    name: str = "asking"
    description: str = ""
    is_long_running: bool = False
    runs: int = 0
    heard: list[Any] = field(default_factory=list)
    ended: anyio.Event = field(default_factory=anyio.Event)

    def may_ask(self, caller: Any) -> bool:
        return True

    def declaration(self) -> Declaration:
        return Declaration(self.name)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        self.runs += 1
        assert ctx.caller is not None
        try:
            for _ in range(int(args.get("times", 1))):
                self.heard.append(await ctx.caller.ask("elicitation/create", FORM))
        except RpcError as exc:
            return {"said": f"refused: {exc}"}
        finally:
            self.ended.set()

        return {"said": "done"}


@asynccontextmanager
async def asked() -> AsyncIterator[tuple[Asking, str]]:
    tool = Asking()
    async with serving(Handlers(await Shelf(tool).offered(), name="tests")) as url:
        yield tool, url


def body(**params: Any) -> dict[str, Any]:
    capabilities = {"elicitation": {"form": {}}}
    meta = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": capabilities}
    told = {"name": "asking", "arguments": {}, "_meta": meta, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": told}


HEADERS = {
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "asking",
    "Accept": "application/json, text/event-stream",
}


async def sent(url: str, **params: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(timeout=20) as http:
        answer = await http.post(url, json=body(**params), headers=HEADERS)
        found: dict[str, Any] = answer.json()
        return found


def reply(question: dict[str, Any], **answer: Any) -> dict[str, Any]:
    result = question["result"]
    answers = {key: {"action": "accept", "content": answer} for key in result["inputRequests"]}
    return {"inputResponses": answers, "requestState": result["requestState"]}


async def test_a_stock_client_is_asked_in_the_middle_and_the_call_goes_on() -> None:
    async def person(context: Any, params: Any) -> ElicitResult:
        assert params.message == "Which size?"
        return ElicitResult(action="accept", content={"size": "L"})

    async with asked() as (tool, url), connected("http", url, MODERN, person) as client:
        result = await client.call_tool("asking", {"times": 3})

    assert result.structured_content == {"said": "done"}
    assert (tool.runs, tool.heard) == (1, [{"action": "accept", "content": {"size": "L"}}] * 3)


async def test_a_client_that_declared_nothing_is_not_asked() -> None:
    async with asked() as (tool, url), connected("http", url, MODERN) as client:
        result = await client.call_tool("asking", {})

    assert "does not take elicitation/create" in result.content[0].text  # type: ignore[union-attr]
    assert tool.heard == []


async def test_an_answer_is_taken_once_and_by_the_call_that_asked() -> None:
    async with asked() as (tool, url):
        question = await sent(url)
        brought = reply(question, size="L")
        other = await sent(url, arguments={"times": 2}, **brought)
        assert other["error"]["code"] == -32602
        done = await sent(url, **brought)
        assert done["result"]["structuredContent"] == {"said": "done"}
        again = await sent(url, **brought)
        assert again["error"]["code"] == -32602

    assert (tool.runs, len(tool.heard)) == (1, 1)


@pytest.mark.parametrize("change", [lambda s: s + "x", lambda s: s[:-8] + "AAAAAAAA"])
async def test_a_state_that_was_changed_is_an_error_and_starts_nothing(change: Any) -> None:
    async with asked() as (tool, url):
        brought = reply(await sent(url), size="L")
        refused = await sent(url, **{**brought, "requestState": change(brought["requestState"])})
        assert refused["error"]["code"] == -32602
        assert "from the beginning" in refused["error"]["message"]

    assert (tool.runs, tool.heard) == (1, [])


async def test_an_answer_that_is_missing_is_asked_for_again() -> None:
    async with asked() as (tool, url):
        question = await sent(url)
        state = question["result"]["requestState"]
        again = await sent(url, requestState=state, inputResponses={})
        assert again["result"]["inputRequests"] == question["result"]["inputRequests"]
        done = await sent(url, **reply(again, size="S"))
        assert done["result"]["structuredContent"] == {"said": "done"}

    assert tool.runs == 1


async def test_a_call_that_nobody_comes_back_to_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parking.Parking.__init__, "__defaults__", (parking.MOST_PARKED, 0.05))
    async with asked() as (tool, url):
        brought = reply(await sent(url), size="L")
        await tool.ended.wait()
        late = await sent(url, **brought)
        assert late["error"]["code"] == -32602

    assert tool.heard == []


async def test_one_call_too_many_that_waits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking.Parking.__init__, "__defaults__", (1, 60.0))
    async with asked() as (tool, url):
        first = await sent(url)
        refused = await sent(url)
        assert "waiting for people" in refused["error"]["message"]
        await sent(url, **reply(first, size="L"))

        async def has_room() -> bool:
            return "result" in await sent(url)

        await eventually(has_room)

    assert tool.runs == 2


async def test_a_server_that_ends_cancels_what_waits() -> None:
    async with asked() as (tool, url):
        await sent(url)

    with anyio.fail_after(20):
        await tool.ended.wait()


async def test_over_stdio_a_modern_client_is_asked_the_same_way() -> None:
    async def person(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    tool = Asking()
    where = Piped(Handlers(await Shelf(tool).offered(), name="tests"))
    async with connected("stdio", where, MODERN, person) as client:
        assert isinstance(client, Client)
        await client.call_tool("asking", {})

    assert tool.heard == [{"action": "decline"}]
