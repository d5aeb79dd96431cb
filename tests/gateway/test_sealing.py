"""Several `bridge serve` that share `serve.state`: a person's yes is used once, wherever it is."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest

from bridge.config.load import from_mapping
from bridge.downstream.parking import PARKED_ELSEWHERE
from bridge.errors import ConfigError
from bridge.gateway.sealing import sealing
from tests import nursery
from tests.processes import started, unused_port
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
ASKING = str(ROOT / "tests" / "servers" / "asking.py")
TOOLS = ["tests.gateway.worker_tools:worker", "tests.gateway.worker_tools:guarded"]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
QUESTION = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"do": [["ask", "elicitation/create", QUESTION]]}
YES = {"action": "accept", "content": {"approve": True}}
KEY, OTHER_KEY = "a key of thirty-two bytes, or more", "another of thirty-two bytes or more"

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True)
class Replica:
    """One `bridge serve`, and where everything that is bought from any of them is written down."""

    url: str
    pid: int
    place: Path

    async def call(self, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
        """The response to a modern client's call, on a connection of its own."""
        capabilities = {"elicitation": {"form": {}}}
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}
        params = {"name": name, "arguments": arguments, "_meta": meta, **more}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
        headers["Accept"] = "application/json, text/event-stream"
        async with httpx2.AsyncClient(timeout=60) as http:
            answer = await http.post(self.url, json=body, headers=headers)
            response: dict[str, Any] = answer.json()
            return response

    async def asked(self, city: str = "Tokyo") -> dict[str, Any]:
        """A person's yes to a purchase that was asked about here."""
        question = (await self.call("buy", {"city": city}))["result"]
        return {"requestState": question["requestState"], "inputResponses": {"approval": YES}}

    async def brought(self, answer: dict[str, Any], city: str = "Tokyo") -> str:
        """What comes of bringing that yes: "complete", "failed", or "input_required" again."""
        result = (await self.call("buy", {"city": city}, **answer))["result"]
        return "failed" if result.get("isError") else str(result["resultType"])

    @property
    def purchases(self) -> list[str]:
        """What was bought, from whichever replica."""
        path = self.place / "purchases"
        return path.read_text("utf-8").split() if path.exists() else []


@asynccontextmanager
async def replica(place: Path, store: str, *keys: str, workers: int = 1) -> AsyncIterator[Replica]:
    """A `bridge serve` with these keys and this store, in a process of its own."""
    path, port = place / f"bridge-{unused_port()}.yaml", unused_port()
    state = {"keys": [f"${{KEY_{number}}}" for number in range(len(keys))], "store": store}
    asking = {
        "command": nursery.server(ASKING, "legacy"),
        "prefix": "",
        "connect_timeout": "60s",
        "cwd": str(ROOT),
    }
    serve = {"state": state, "startup_wait": "60s"}
    settings = {"tools": TOOLS, "upstreams": {"asking": asking}, "serve": serve}
    path.write_text(json.dumps(settings), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(path), "--port", str(port)]
    env = {f"KEY_{number}": key for number, key in enumerate(keys)}
    env["PURCHASES"] = str(place / "purchases")
    async with started(
        [*argv, "--workers", str(workers)], env, port=None if workers > 1 else port, cwd=ROOT
    ) as running:
        served = Replica(f"http://127.0.0.1:{port}/mcp", running.pid, place)
        if workers > 1:
            await eventually(lambda: " serves " in running.output())

        yield served


@asynccontextmanager
async def replicas(place: Path, store: str, *keys: str) -> AsyncIterator[tuple[Replica, Replica]]:
    """Two of them."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(replica(place, store, *keys))
        other = await stack.enter_async_context(replica(place, store, *keys))
        yield one, other


async def test_a_yes_is_used_once_by_all_replicas(tmp_path: Path, database_url: str) -> None:
    async with replicas(tmp_path, database_url, KEY) as (one, other):
        answer = await one.asked()
        assert await other.brought(answer) == "complete"
        assert one.purchases == ["Tokyo"]
        for again in (one, other, one):
            assert await again.brought(answer) == "input_required"

        assert one.purchases == ["Tokyo"]

        at_once, ends = await other.asked("Lima"), list[str]()

        async def bring(where: Replica) -> None:
            ends.append(await where.brought(at_once, "Lima"))

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(bring, other if number % 2 else one)

        assert sorted(ends) == ["complete"] + ["input_required"] * 7
        assert one.purchases == ["Tokyo", "Lima"]


async def test_a_yes_outlives_a_restart_and_so_does_that_it_was_used(tmp_path: Path) -> None:
    store = "state.db"  # beside the configuration
    async with replica(tmp_path, store, KEY) as before:
        answer, used = await before.asked(), await before.asked("Lima")
        assert await before.brought(used, "Lima") == "complete"

    async with replica(tmp_path, store, KEY) as after:
        assert await after.brought(used, "Lima") == "input_required"
        assert await after.brought(answer) == "complete"
        assert await after.brought(answer) == "input_required"
        assert after.purchases == ["Lima", "Tokyo"]

    assert (tmp_path / "state.db").exists()


async def test_keys_are_changed_without_losing_what_was_asked(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/state.db"
    async with (
        replica(tmp_path, store, KEY) as old,
        replica(tmp_path, store, OTHER_KEY, KEY) as both,
    ):
        assert await both.brought(await old.asked()) == "complete"
        newer = await both.asked("Lima")
        assert await old.brought(newer, "Lima") == "input_required"  # it has another key
        assert old.purchases == ["Tokyo"]

    async with replica(tmp_path, store, OTHER_KEY) as new:
        assert await new.brought(newer, "Lima") == "complete"
        assert new.purchases == ["Tokyo", "Lima"]


async def test_any_process_of_a_replica_takes_a_yes_also_when_the_one_that_asked_is_dead(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/state.db"
    async with replica(tmp_path, store, KEY, workers=2) as many:
        workers = psutil.Process(many.pid).children()
        pids = {one.pid for one in workers if "bridge.cli.worker" in " ".join(one.cmdline())}
        answer = await many.asked()
        for pid in pids:  # each is replaced
            psutil.Process(pid).kill()

        async def is_back() -> bool:
            try:
                found = await many.call("worker", {})
            except httpx2.TransportError:
                return False

            return int(found["result"]["structuredContent"]["result"]) not in pids

        await eventually(is_back)
        ends: list[str] = []

        async def bring() -> None:
            ends.append(await many.brought(answer))

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(bring)

        assert sorted(ends) == ["complete"] + ["input_required"] * 5
        assert many.purchases == ["Tokyo"]


async def test_an_answer_to_a_call_that_waits_in_another_replica_is_told_so(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/state.db"
    async with replicas(tmp_path, store, KEY) as (one, other):
        question = (await one.call("do", ASK))["result"]
        answers = dict.fromkeys(question["inputRequests"], YES)
        answer = {"requestState": question["requestState"], "inputResponses": answers}
        lost = await other.call("do", ASK, **answer)
        assert lost["error"] == {"code": -32602, "message": PARKED_ELSEWHERE}

        done = await one.call("do", ASK, **answer)
        assert done["result"]["structuredContent"]["replies"] == [{"result": YES}]


async def test_while_the_store_fails_nothing_runs_and_the_yes_stays_good(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with replica(tmp_path, f"sqlite:///{path}", KEY) as one:
        answer = await one.asked()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ALTER TABLE bridge_spent RENAME TO elsewhere")

        assert await one.brought(answer) == "failed"
        assert one.purchases == []
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ALTER TABLE elsewhere RENAME TO bridge_spent")

        assert await one.brought(answer) == "complete"
        assert one.purchases == ["Tokyo"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_store_that_cannot_be_reached_is_said_at_the_start_without_its_password(
    tmp_path: Path, workers: int
) -> None:
    state = {"keys": [KEY], "store": f"postgresql://me:canary-word@/name?host={tmp_path}"}
    path = tmp_path / "bridge.yaml"
    path.write_text(json.dumps({"tools": TOOLS, "serve": {"state": state}}), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(path), "--port", "0"]
    async with started([*argv, "--workers", str(workers)], cwd=ROOT) as running:
        code = await anyio.to_thread.run_sync(running.process.wait)
        said = running.output()

    assert (code, said.count("serve.state.store cannot be used: ")) == (1, 1), said
    assert "canary" not in said


async def test_without_its_package_a_config_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "bridge.stores.spent", raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    state = {"keys": [KEY], "store": "state.db"}
    settings = from_mapping({"tools": TOOLS, "serve": {"state": state}})

    with pytest.raises(ConfigError) as refused:
        async with sealing(settings.serve.state):
            pass

    assert str(refused.value) == 'serve.state needs more: pip install "mcp-agent-bridge[gateway]"'


async def test_a_url_that_names_no_database_is_refused_with_its_key() -> None:
    state = {"keys": [KEY], "store": "postgresql://me:half@canary:word@host/name"}
    settings = from_mapping({"tools": TOOLS, "serve": {"state": state}})

    with pytest.raises(ConfigError) as refused:
        async with sealing(settings.serve.state):
            pass

    assert str(refused.value).startswith("serve.state.store: the database must be a URL such as")
    assert "canary" not in str(refused.value)
