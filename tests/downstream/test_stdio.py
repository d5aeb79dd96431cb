"""Our stdio front as its client's child: only protocol on stdout, and an end in time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client
from mcp_types import InputRequiredResult

from bridge.downstream import stdio
from bridge.downstream.stdio import _Lines, _TooLong
from tests import nursery
from tests.downstream.fronts import ERAS, ROOT, answering, app, counts

APP = ("-m", "tests.downstream.stdio_app", "60")
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number

    return json.dumps(message).encode() + b"\n"


OPENING = line("initialize", 1, **INITIALIZE) + line("notifications/initialized")


class Child:
    """The server, line by line."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin = process.stdin
        self.stdout = BufferedByteReceiveStream(process.stdout)

    async def answer(self) -> dict[str, Any]:
        """Its next line, which must be one JSON object."""
        with anyio.fail_after(30):
            found = json.loads(await self.stdout.receive_until(b"\n", 1 << 26))

        assert isinstance(found, dict)
        return found


@asynccontextmanager
async def child(*, ends_by_signal: bool = False) -> AsyncIterator[Child]:
    argv = [sys.executable, *APP] if ends_by_signal else nursery.server(*APP)
    async with await anyio.open_process(argv, stderr=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield Child(process)
        finally:
            if process.returncode is None:
                process.kill()


async def test_what_a_tool_prints_goes_to_stderr_and_what_it_reads_is_nothing() -> None:
    async with child() as server:
        for number in (2, 3):  # while the client's end stays open, so that there is input to eat
            opening = OPENING if number == 2 else b""
            await server.stdin.send(opening + line("tools/call", number, name="noisy"))
            if number == 2:
                assert (await server.answer())["id"] == 1

            answer = await server.answer()
            assert (answer["id"], answer["result"]["content"][0]["text"]) == (number, "read ''")

        assert server.process.stderr is not None
        assert b"a stray line" in await server.process.stderr.receive()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("is_yes", [True, False])
async def test_a_person_is_asked_across_processes(era: str, is_yes: bool) -> None:
    person = answering("accept", approve=is_yes)
    async with Client(app(), mode=era, elicitation_callback=person) as client:
        await client.call_tool("buy", {"city": "Tokyo"})
        assert (await counts(client)).get("buy", 0) == (1 if is_yes else 0)


async def test_a_question_does_not_survive_the_process_that_asked_it() -> None:
    person = answering("accept", approve=True)
    yes = {"approval": {"action": "accept", "content": {"approve": True}}}
    state = None
    for _ in range(2):
        async with Client(app(), mode=ERAS[1], elicitation_callback=person) as client:
            result = await client.session.call_tool(
                "buy", {}, allow_input_required=True, input_responses=yes, request_state=state
            )
            assert isinstance(result, InputRequiredResult)
            assert result.request_state != state
            assert await counts(client) == {}
            state = result.request_state


async def test_piped_requests_are_answered_though_the_pipe_is_closed() -> None:
    asked = (
        OPENING
        + line("tools/list", 2)
        + line("tools/call", 3, name="add", arguments={"a": 1, "b": 2})
    )
    done = await anyio.run_process(nursery.server(*APP), input=asked, cwd=ROOT)
    answers = {found["id"]: found for found in map(json.loads, done.stdout.splitlines())}

    assert sorted(answers) == [1, 2, 3]
    assert answers[3]["result"]["structuredContent"] == {"result": 3}


async def test_a_last_line_without_an_end_is_a_line() -> None:
    done = await anyio.run_process(
        nursery.server(*APP), input=OPENING + line("ping", 2)[:-1], cwd=ROOT
    )

    assert [json.loads(found)["id"] for found in done.stdout.splitlines()] == [1, 2]


async def test_input_and_output_may_be_files(tmp_path: Any) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(OPENING + line("ping", 2))
    with asked.open("rb") as source, answered.open("wb") as sink:
        await anyio.run_process(nursery.server(*APP), stdin=source, stdout=sink, cwd=ROOT)

    assert [json.loads(found)["id"] for found in answered.read_bytes().splitlines()] == [1, 2]


async def test_what_is_no_message_is_answered_and_skipped() -> None:
    async with child() as server:
        await server.stdin.send(
            b"\n  \nnot json\n[1]\n" + b'{"jsonrpc":"2.0"}\n\xff\xfe\n' + OPENING
        )
        codes = [(await server.answer())["error"]["code"] for _ in range(4)]

        assert codes == [-32700, -32600, -32600, -32700]
        assert (await server.answer())["id"] == 1


async def test_a_request_before_initialize_is_refused() -> None:
    async with child() as server:
        await server.stdin.send(line("tools/list", 1))

        assert (await server.answer())["error"]["message"] == "tools/list came before initialize"


async def test_a_call_without_an_id_is_no_call() -> None:
    async with child() as server:
        await server.stdin.send(OPENING + line("tools/call", name="slow", arguments={}))
        await server.stdin.send(line("tools/call", 2, name="counts", arguments={}))
        await server.answer()

        assert (await server.answer())["result"]["structuredContent"] == {}


async def test_a_long_answer_arrives_whole() -> None:
    async with child() as server:
        text = "x" * 1_000_000
        await server.stdin.send(OPENING + line("tools/call", 2, name=text))
        await server.answer()
        error = (await server.answer())["error"]

        assert text in error["message"]


@pytest.mark.parametrize("is_calling", [False, True])
async def test_it_ends_by_signal_though_its_input_stays_open(is_calling: bool) -> None:
    async with child(ends_by_signal=True) as server:
        await server.stdin.send(OPENING)
        await server.answer()
        if is_calling:
            await server.stdin.send(line("tools/call", 2, name="slow", arguments={}))
            await server.stdin.send(line("tools/call", 3, name="counts", arguments={}))
            assert (await server.answer())["id"] == 3

        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):
            assert await server.process.wait() == 0


async def test_it_ends_when_its_client_leaves_in_the_middle_of_a_call() -> None:
    async with child() as server:
        await server.stdin.send(OPENING + line("tools/call", 2, name="slow", arguments={}))
        await server.answer()
        await server.stdin.aclose()
        with anyio.fail_after(20):
            assert await server.process.wait() == 0


async def test_it_ends_when_nobody_reads_its_answers() -> None:
    async with child() as server:
        assert server.process.stdout is not None
        await server.stdin.send(OPENING)
        await server.answer()
        await server.process.stdout.aclose()
        await server.stdin.send(line("ping", 2) + line("ping", 3))
        await server.stdin.aclose()
        with anyio.fail_after(20):
            assert await server.process.wait() == 0


async def test_a_line_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(stdio, "LINE_BYTES", 10)
    monkeypatch.setattr(stdio, "CHUNK_BYTES", 4)
    source = tmp_path / "lines"
    source.write_bytes(b"short\n" + b"x" * 100 + b"\nafter\n" + b"y" * 100)
    with source.open("rb") as file:
        lines = _Lines(file.fileno())
        assert await lines.read() == b"short"
        with pytest.raises(_TooLong):
            await lines.read()

        assert await lines.read() == b"after"
        with pytest.raises(_TooLong):
            await lines.read()

        assert await lines.read() is None
