"""The servers that other tests rely on are what they are taken for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.sse import sse_client

from tests.clients import over_stdio
from tests.conftest import Everything
from tests.processes import is_alive
from tests.servers.odd_wire import FIDELITY, read_journal
from tests.waiting import eventually

HELLO = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
ERAS = {"legacy": {}, "modern": {"_meta": HELLO}}

Command = Callable[..., list[str]]


async def test_the_time_server_is_modern(time_server: list[str]) -> None:
    async with over_stdio(time_server) as client:
        version = client.protocol_version
        answer = await client.call_tool("get_current_time", {"timezone": "UTC"})

    assert version == "2026-07-28"
    assert not answer.is_error


async def test_the_git_server_is_modern_and_knows_the_temporary_repository(
    git_server: Callable[[], list[str]], tmp_path: Path
) -> None:
    async with over_stdio(git_server()) as client:
        version = client.protocol_version
        repository = str(tmp_path / "repository")
        answer = await client.call_tool("git_log", {"repo_path": repository})

    assert version == "2026-07-28"
    assert "First commit" in str(answer.content)


async def test_everything_is_legacy_over_each_transport(everything: Everything) -> None:
    versions = []
    async with over_stdio(everything.stdio) as client:
        versions.append(client.protocol_version)
    async with everything.http() as served, Client(served.url, mode="auto") as client:
        versions.append(client.protocol_version)
    async with everything.sse() as served, Client(sse_client(served.url), mode="auto") as client:
        answer = await client.call_tool("echo", {"message": "hello"})
        versions.append(client.protocol_version)

    assert versions == ["2025-11-25", "2025-11-25", "2025-11-25"]
    assert "hello" in str(answer.content)
    assert not is_alive(served.running.pid)


@pytest.mark.parametrize(
    ("era", "version"),
    [("both", "2026-07-28"), ("modern", "2026-07-28"), ("legacy", "2025-11-25")],
)
async def test_the_odd_server_speaks_the_eras_it_is_told_to(
    odd_server: Command, era: str, version: str
) -> None:
    async with over_stdio(odd_server("plain", "--era", era)) as client:
        spoken = client.protocol_version
        answer = await client.call_tool("echo", {"text": "hello"})
        tools = [tool.name for tool in (await client.list_tools()).tools]

    assert spoken == version
    assert answer.structured_content == {"text": "hello"}
    assert tools == ["echo", "odd"]


def talk(command: list[str], *requests: dict[str, Any]) -> list[bytes]:
    """Every line that the server writes before it ends; requests are numbered from 1."""
    messages = [{"jsonrpc": "2.0", "id": n, **request} for n, request in enumerate(requests, 1)]
    sent = "".join(json.dumps(message) + "\n" for message in messages).encode()
    ended = subprocess.run(command, input=sent, capture_output=True, timeout=60, check=False)
    return ended.stdout.splitlines(keepends=True)


def call(tool: str, params: dict[str, Any], **args: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {**params, "name": tool, "arguments": args}}


def messages(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("params", ERAS.values(), ids=ERAS)
def test_an_odd_answer_leaves_the_next_call_unharmed(
    odd_server: Command, params: dict[str, Any]
) -> None:
    ways = ["noise", "wrong-id", "twice", "silent", "flood", "error", "is-error", "no-object"]
    ways += ["neither", "progress", "unknown-block", "alter", "grow", "shrink", "fidelity"]
    for way in ways:
        lines = talk(odd_server(way), call("odd", params), call("odd", params, way="plain", n=1))
        last = json.loads(lines[-1])
        assert last["id"] == 2, way
        assert last["result"]["structuredContent"] == {"way": "plain", "n": 1}, way


def test_noise_is_not_utf8_and_not_all_json(odd_server: Command) -> None:
    lines = talk(odd_server("noise"), call("odd", {}))
    (answer,) = [line for line in lines if b"after the noise" in line]

    assert answer.endswith(b"\r\n")
    assert json.loads(answer)["id"] == 1
    with pytest.raises(UnicodeDecodeError):
        b"".join(lines).decode()


def test_two_answers_and_strangers_answers_are_written(odd_server: Command) -> None:
    twice = messages(talk(odd_server("twice"), call("odd", {})))
    assert [(m["id"], m["result"]["content"][0]["text"]) for m in twice] == [
        (1, "first"),
        (1, "second"),
    ]

    strangers = messages(talk(odd_server("wrong-id"), call("odd", {})))
    assert [m["id"] for m in strangers] == [10_000_000, "1", None, 1.5, True, 1]


def test_large_and_deep_answers_have_the_size_asked_for(odd_server: Command) -> None:
    (line,) = talk(odd_server("oversized", "--size", "5000000"), call("odd", {}))
    assert len(json.loads(line)["result"]["content"][0]["text"]) == 5_000_000

    (line,) = talk(odd_server("deep", "--size", "5000"), call("odd", {}))
    assert b"[" * 5000 + b"]" * 5000 in line


def test_a_process_that_ends_mid_call_leaves_half_a_line_or_none(odd_server: Command) -> None:
    second = call("odd", {}, way="plain")
    (line,) = talk(odd_server("half"), call("odd", {}), second)
    assert not line.endswith(b"\n")
    assert talk(odd_server("dies"), call("odd", {}), second) == []


def test_a_process_may_answer_nothing_or_no_json_at_all(odd_server: Command) -> None:
    assert talk(odd_server("mute"), {"method": "tools/list"}) == []
    assert talk(odd_server("exit"), {"method": "tools/list"}) == []
    assert talk(odd_server("prose"), {"method": "tools/list"})[0].startswith(b"Usage:")


@pytest.mark.parametrize(
    ("way", "names", "cursors"),
    [
        ("plain", [["echo", "odd"], ["echo", "odd"]], [None, None]),
        ("same-cursor", [["echo", "odd"], []], ["page-1", "page-1"]),
        ("endless-pages", [["odd_0"], ["odd_1"]], ["page-1", "page-2"]),
        ("pages", [["echo_0"], ["echo_1"]], ["page-1", None]),
        ("twins", [["echo", "echo", "odd"], ["echo", "echo", "odd"]], [None, None]),
    ],
)
def test_a_listing_has_the_pages_of_its_way(
    odd_server: Command, way: str, names: list[list[str]], cursors: list[str | None]
) -> None:
    pages = [{"method": "tools/list", "params": params} for params in ({}, {"cursor": "page-1"})]
    results = [m["result"] for m in messages(talk(odd_server(way, "--size", "2"), *pages))]

    assert [[tool["name"] for tool in result["tools"]] for result in results] == names
    assert [result.get("nextCursor") for result in results] == cursors


@pytest.mark.parametrize("params", ERAS.values(), ids=ERAS)
def test_the_faithful_answer_is_known_to_the_last_field(
    odd_server: Command, params: dict[str, Any]
) -> None:
    (answer,) = messages(talk(odd_server("fidelity"), call("odd", params)))
    assert answer["result"] == ({"resultType": "complete"} if params else {}) | FIDELITY


def test_a_changed_list_is_announced_as_the_era_wants_it(odd_server: Command) -> None:
    changed = "notifications/tools/list_changed"
    legacy = messages(talk(odd_server("grow"), call("odd", {}), {"method": "tools/list"}))
    assert legacy[0] == {"jsonrpc": "2.0", "method": changed}
    assert [tool["name"] for tool in legacy[2]["result"]["tools"]] == ["echo", "odd", "echo_2"]

    filter_ = {**ERAS["modern"], "notifications": {"toolsListChanged": True}}
    listen = {"method": "subscriptions/listen", "params": filter_}
    modern = messages(talk(odd_server("grow"), listen, call("odd", ERAS["modern"])))
    meta = {"io.modelcontextprotocol/subscriptionId": 1}
    assert [m.get("method") for m in modern] == [
        "notifications/subscriptions/acknowledged",
        changed,
        None,
    ]
    assert [m["params"]["_meta"] for m in modern[:2]] == [meta, meta]


def test_the_journal_holds_what_arrived_over_restarts(odd_server: Command, tmp_path: Path) -> None:
    command = odd_server("plain", "--journal", str(tmp_path / "journal"))
    talk(command, call("odd", {}, n=1))
    talk(command, call("odd", {}, n=2), {"method": "tools/list"})

    calls = read_journal(tmp_path / "journal", "tools/call")
    assert [entry["params"]["arguments"] for entry in calls] == [{"n": 1}, {"n": 2}]
    assert len({entry["pid"] for entry in read_journal(tmp_path / "journal")}) == 2


@pytest.fixture
def stubborn(odd_server: Command, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The stubborn server and its journal; both of its processes are gone afterwards."""
    journal = tmp_path / "journal"
    command = odd_server("stubborn", "--journal", str(journal))
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process, journal
        process.kill()

    for entry in read_journal(journal):
        if "grandchild" in entry:
            os.kill(entry["grandchild"], signal.SIGKILL)


async def test_the_stubborn_server_outlives_eof_and_sigterm(
    stubborn: tuple[subprocess.Popen[bytes], Path],
) -> None:
    process, journal = stubborn
    assert process.stdin is not None
    await eventually(lambda: len(read_journal(journal)) == 2)
    grandchild = read_journal(journal)[0]["grandchild"]

    process.terminate()
    os.kill(grandchild, signal.SIGTERM)
    process.stdin.write(b'{"jsonrpc":"2.0","method":"after the signal"}\n')
    process.stdin.close()
    await eventually(lambda: read_journal(journal, "after the signal"))
    await eventually(lambda: read_journal(journal)[-1].get("eof"))

    assert process.poll() is None
    assert is_alive(grandchild)
    assert os.getsid(grandchild) == grandchild
