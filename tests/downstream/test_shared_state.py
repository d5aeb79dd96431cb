"""Several servers that share keys and the record of used answers: what each makes of an answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2

from bridge.downstream.confirm import Confirmations
from bridge.downstream.handlers import Handlers
from bridge.downstream.parking import NOT_TAKEN, PARKED_ELSEWHERE, PARKED_NO_MORE
from bridge.downstream.sealed import Remembered, Seals, Spent
from bridge.errors import StoreError
from tests.downstream.fronts import serving
from tests.downstream.offer import Runs, Shelf, everything
from tests.downstream.test_parking import Asking, reply

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
KEY = b"k" * 32
YES = {"approval": {"action": "accept", "content": {"approve": True}}}
FIRST_BUY = "bought Tokyo"


class Failing:
    """A record that can be reached only when it is `up`, and counts who came to it."""

    name = "failing"

    def __init__(self) -> None:
        self.up = False
        self.asked = 0
        self._record = Remembered(time.time)

    async def take(self, nonce: str, expires: float) -> bool:
        self.asked += 1
        if not self.up:
            raise StoreError("cannot reach db.example.com")

        return await self._record.take(nonce, expires)


class Slow:
    """A record that takes a while, in which others come."""

    name = "slow"

    def __init__(self) -> None:
        self.both_came = anyio.Event()
        self._came = 0
        self._record = Remembered(time.time)

    async def take(self, nonce: str, expires: float) -> bool:
        self._came += 1
        if self._came == 2:
            self.both_came.set()

        await self.both_came.wait()
        return await self._record.take(nonce, expires)


@asynccontextmanager
async def server(runs: Runs, *tools: Any, spent: Spent, key: bytes = KEY) -> AsyncIterator[str]:
    """A server over everything of `offer`, and more; gives its URL."""
    offered = await Shelf(*everything(runs), *tools).offered()
    confirmations = Confirmations(Seals([key], spent=spent))
    async with serving(Handlers(offered, name="tests", confirmations=confirmations)) as url:
        yield url


async def call(url: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """The response to a modern client's call."""
    capabilities = {"elicitation": {"form": {}}}
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}
    params = {"name": name, "arguments": arguments, "_meta": meta, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    headers["Accept"] = "application/json, text/event-stream"
    async with httpx2.AsyncClient(timeout=20) as http:
        response: dict[str, Any] = (await http.post(url, json=body, headers=headers)).json()
        return response


async def buy(url: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = (await call(url, "buy", {"city": "Tokyo"}, **more))["result"]
    return result


async def yes(url: str) -> dict[str, Any]:
    """A person's yes to a question that is put here."""
    asked = await buy(url)
    return {"requestState": asked["requestState"], "inputResponses": YES}


async def test_a_yes_is_used_once_wherever_it_is_brought() -> None:
    record, runs = Remembered(time.time), Runs()
    async with server(runs, spent=record) as one, server(runs, spent=record) as other:
        brought = await yes(one)
        assert (await buy(other, **brought))["content"][0]["text"] == FIRST_BUY
        for url in (one, other):
            assert (await buy(url, **brought))["resultType"] == "input_required"

    assert runs.count["buy"] == 1


async def test_a_yes_to_a_question_that_was_sealed_with_another_key_is_none() -> None:
    record, runs = Remembered(time.time), Runs()
    async with server(runs, spent=record) as one, server(runs, spent=record, key=b"x" * 32) as two:
        assert (await buy(two, **await yes(one)))["resultType"] == "input_required"

    assert runs.count["buy"] == 0


async def test_while_the_record_cannot_be_reached_no_yes_runs_anything() -> None:
    record, runs = Failing(), Runs()
    async with server(runs, spent=record) as url:
        brought = await yes(url)
        refused = await buy(url, **brought)
        assert (record.asked, runs.count["buy"]) == (1, 0)
        assert refused["isError"]
        assert refused["content"][0]["text"] == (
            '"buy" did not run: the record of the answers that were used cannot be reached now, '
            "so this one is worth nothing. Call again later"
        )

        record.up = True
        assert (await buy(url, **brought))["content"][0]["text"] == FIRST_BUY

    assert runs.count["buy"] == 1


async def test_while_the_record_cannot_be_reached_a_call_waits_on_for_its_answer() -> None:
    record, tool = Failing(), Asking()
    async with server(Runs(), tool, spent=record) as url:
        brought = reply(await call(url, "asking", {}), size="L")
        refused = await call(url, "asking", {}, **brought)
        assert refused["error"] == {"code": -32000, "message": NOT_TAKEN}
        assert (tool.runs, tool.heard) == (1, [])

        record.up = True
        done = await call(url, "asking", {}, **brought)
        assert done["result"]["structuredContent"] == {"said": "done"}

    assert (tool.runs, len(tool.heard)) == (1, 1)


async def test_an_answer_brought_where_its_call_does_not_wait_is_told_so_and_stays_good() -> None:
    record, here, there = Remembered(time.time), Asking(), Asking()
    async with (
        server(Runs(), here, spent=record) as one,
        server(Runs(), there, spent=record) as other,
    ):
        brought = reply(await call(one, "asking", {}), size="L")
        lost = await call(other, "asking", {}, **brought)
        assert lost["error"] == {"code": -32602, "message": PARKED_ELSEWHERE}
        assert (here.heard, there.runs) == ([], 0)

        done = await call(one, "asking", {}, **brought)
        assert done["result"]["structuredContent"] == {"said": "done"}
        again = await call(one, "asking", {}, **brought)
        assert again["error"] == {"code": -32602, "message": PARKED_NO_MORE}

    assert (here.runs, there.runs) == (1, 0)


async def test_an_answer_to_a_call_that_waited_before_a_restart_is_told_so() -> None:
    record, tool = Remembered(time.time), Asking()
    async with server(Runs(), tool, spent=record) as url:
        brought = reply(await call(url, "asking", {}), size="L")

    async with server(Runs(), tool, spent=record) as url:
        lost = await call(url, "asking", {}, **brought)

    assert lost["error"] == {"code": -32602, "message": PARKED_ELSEWHERE}
    assert (tool.runs, tool.heard) == (1, [])


async def test_of_two_answers_that_come_to_a_call_at_once_it_gets_one() -> None:
    record, tool, answers = Slow(), Asking(), list[dict[str, Any]]()
    async with server(Runs(), tool, spent=record) as url:
        brought = reply(await call(url, "asking", {}), size="L")

        async def bring() -> None:
            answers.append(await call(url, "asking", {}, **brought))

        async with anyio.create_task_group() as group:
            group.start_soon(bring)
            group.start_soon(bring)

    errors = [one["error"]["message"] for one in answers if "error" in one]
    said = [one["result"]["structuredContent"] for one in answers if "result" in one]
    assert (errors, said) == ([PARKED_NO_MORE], [{"said": "done"}])
    assert (tool.runs, len(tool.heard)) == (1, 1)
