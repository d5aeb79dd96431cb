"""Through `bridge serve` as a person runs it: a real process, a real upstream, a stock client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult

from bridge.errors import UpstreamError
from bridge.upstream.channel import Options
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.protocol import SERVER_INFO_KEY, Era
from bridge.upstream.target import Endpoint, Target
from tests import nursery
from tests.clients import over_sse
from tests.processes import started, unused_port
from tests.servers.odd_wire import ECHO, FIDELITY, read_journal
from tests.waiting import eventually

Odd = Callable[..., list[str]]

FRONTS = ("http", "sse", "stdio")
ERAS: tuple[Era, ...] = ("legacy", "modern")
ROOT = Path(__file__).resolve().parent.parent.parent

every_front = pytest.mark.parametrize("front", FRONTS)
every_era = pytest.mark.parametrize("era", ERAS)


def config(place: Path, command: list[str], **rules: Any) -> Path:
    path = place / "bridge.yaml"
    odd = {"command": command, "prefix": "", "connect_timeout": "60s", "tools": rules}
    path.write_text(json.dumps({"upstreams": {"odd": odd}}), "utf-8")
    return path


@asynccontextmanager
async def served(path: Path, front: str) -> AsyncIterator[Target]:
    """`bridge serve`, and where a client finds it."""
    argv = nursery.server("-m", "bridge", "serve", str(path), "--transport", front)
    if front == "stdio":
        yield Command(tuple(argv), cwd=ROOT)
        return

    port = unused_port()
    async with started([*argv, "--port", str(port)], port=port, cwd=ROOT):
        where = "/mcp" if front == "http" else "/sse"
        yield Endpoint(f"http://127.0.0.1:{port}{where}", "http" if front == "http" else "sse")


@asynccontextmanager
async def raw_client(path: Path, front: str, era: Era) -> AsyncIterator[Connection]:
    """A client that gives every answer as it came over the wire."""
    async with served(path, front) as target:
        connection = Connection("bridge", target, connect_timeout=60, era=era)
        try:
            yield connection
        finally:
            await connection.aclose()


@asynccontextmanager
async def stock_client(
    path: Path, front: str, era: Era, answer: ElicitResult | None
) -> AsyncIterator[Client]:
    """The SDK's client, with a person behind it who always gives one answer, or with nobody."""

    async def person(context: Any, params: Any) -> ElicitResult:
        assert answer is not None
        return answer

    async with served(path, front) as target:
        if isinstance(target, Command):
            server = StdioServerParameters(
                command=target.argv[0], args=list(target.argv[1:]), cwd=ROOT
            )
            where: Any = stdio_client(server)
        else:
            where = target.url if front == "http" else over_sse(target.url)

        mode = "legacy" if era == "legacy" else "auto"
        asked = None if answer is None else person
        async with Client(where, mode=mode, elicitation_callback=asked) as client:
            yield client


def without_era(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what belongs to one era, on one of its legs, alone."""
    kept = {k: v for k, v in result.items() if k not in {"resultType", "ttlMs", "cacheScope"}}
    meta = {k: v for k, v in kept.pop("_meta", {}).items() if k != SERVER_INFO_KEY}
    return {**kept, "_meta": meta} if meta else kept


@every_front
@every_era
@pytest.mark.parametrize("upstream", ERAS)
async def test_answer_and_definition_pass_through_json_equal(
    tmp_path: Path, odd_server: Odd, front: str, era: Era, upstream: str
) -> None:
    path = config(tmp_path, odd_server("fidelity", "--era", upstream))

    async with raw_client(path, front, era) as client:
        listed = await client.request("tools/list", {}, Options(timeout=60))
        call = {"name": "odd", "arguments": {}}
        answer = await client.request("tools/call", call, Options(timeout=60))

    assert listed["tools"][0] == ECHO
    assert without_era(answer) == FIDELITY
    assert (answer.get("resultType") == "complete") == (era == "modern")


@every_front
@every_era
async def test_protocol_error_of_an_upstream_keeps_its_code_message_and_data(
    tmp_path: Path, odd_server: Odd, front: str, era: Era
) -> None:
    path = config(tmp_path, odd_server("error"))

    async with raw_client(path, front, era) as client:
        with pytest.raises(UpstreamError) as raised:
            await client.request(
                "tools/call", {"name": "odd", "arguments": {}}, Options(timeout=60)
            )

    direct = Connection("odd", Command(tuple(odd_server("error"))))
    with pytest.raises(UpstreamError) as expected:
        await direct.request("tools/call", {"name": "odd", "arguments": {}}, Options(timeout=60))

    await direct.aclose()
    assert raised.value.raw == expected.value.raw


@every_front
@every_era
@pytest.mark.parametrize("approve", [True, False, None])
async def test_guarded_call_reaches_the_upstream_once_for_a_yes_and_never_without(
    tmp_path: Path, odd_server: Odd, front: str, era: Era, approve: bool | None
) -> None:
    journal = tmp_path / "journal"
    path = config(tmp_path, odd_server("plain", "--journal", str(journal)), confirm=["echo"])
    answer = (
        None if approve is None else ElicitResult(action="accept", content={"approve": approve})
    )

    async with stock_client(path, front, era, answer) as client:
        result = await client.call_tool("echo", {"text": "x"})

    assert result.is_error == (approve is not True)
    assert len(read_journal(journal, "tools/call")) == (1 if approve is True else 0)


@every_front
async def test_cancelled_call_is_cancelled_upstream_and_the_next_one_works(
    tmp_path: Path, odd_server: Odd, front: str
) -> None:
    journal = tmp_path / "journal"
    path = config(tmp_path, odd_server("silent", "--journal", str(journal)))

    async with raw_client(path, front, "legacy") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.request, "tools/call", {"name": "odd", "arguments": {}})
            await eventually(lambda: read_journal(journal, "tools/call"))
            tasks.cancel_scope.cancel()

        await eventually(lambda: read_journal(journal, "notifications/cancelled"))
        call = {"name": "echo", "arguments": {"text": "next"}}
        answer = await client.request("tools/call", call, Options(timeout=60))

    assert answer["structuredContent"] == {"text": "next"}


@pytest.mark.parametrize("way", ["shrink", "alter"])
async def test_yes_to_a_tool_that_changed_while_the_person_thought_runs_nothing(
    tmp_path: Path, odd_server: Odd, way: str
) -> None:
    journal = tmp_path / "journal"
    path = config(tmp_path, odd_server("plain", "--journal", str(journal)), confirm=["echo"])
    asked: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        if len(asked) > 1:
            return ElicitResult(action="decline")

        await client.call_tool("odd", {"way": way})
        if way == "alter":  # it says nothing of its change, so something else has to
            await client.call_tool("odd", {"way": "grow"})

        async def seen() -> bool:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            return "echo" not in listed or "stranger" in (listed["echo"].description or "")

        await eventually(seen)
        return ElicitResult(action="accept", content={"approve": True})

    async with served(path, "http") as target:
        assert isinstance(target, Endpoint)
        async with Client(target.url, mode="legacy", elicitation_callback=person) as client:
            result = await client.call_tool("echo", {"text": "x"})

    assert result.is_error
    assert len(asked) == (1 if way == "shrink" else 2)
    ran = [m["params"]["name"] for m in read_journal(journal, "tools/call")]
    assert "echo" not in ran
