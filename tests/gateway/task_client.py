"""A legacy client that knows tasks, over raw JSON-RPC, and a real `bridge serve` before it."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import httpx
from httpx_sse import EventSource

from tests import nursery
from tests.differential.wire import PATIENCE, Command, Message, Url, Where, Wire, _Http, connected
from tests.processes import started, unused_port
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "tests" / "servers" / "tasking.py")]
STATUS = "notifications/tasks/status"
RELATED = "io.modelcontextprotocol/related-task"
FORM: Message = {"elicitation": {"form": {}}}
YES: Message = {"action": "accept", "content": {"approve": True}}
Upstreams: TypeAlias = Mapping[str, Mapping[str, Any]]


def tasking(*options: str, **settings: Any) -> dict[str, Any]:
    """The settings of an upstream that runs tasks."""
    return {"command": [*SERVER, *options], "connect_timeout": "60s", **settings}


@asynccontextmanager
async def serving(
    place: Path, front: str, upstreams: Upstreams, **more: Any
) -> AsyncIterator[Where]:
    """`bridge serve` before these upstreams, and where its clients find it."""
    path = place / "bridge.yaml"
    serve = {"startup_wait": "60s", **more.pop("serve", {})}
    path.write_text(json.dumps({"upstreams": upstreams, "serve": serve, **more}), "utf-8")
    argv = nursery.server("-m", "bridge", "serve", str(path), "--transport", front)
    if front == "stdio":
        yield Command(tuple(argv), cwd=ROOT)
        return

    port = unused_port()
    async with started([*argv, "--port", str(port)], port=port, cwd=ROOT):
        yield Url(f"http://127.0.0.1:{port}/mcp")


class TaskClient:
    """One client; `answer` is what its person says to every form."""

    def __init__(self, wire: Wire, answer: Message | None) -> None:
        self.wire = wire
        self.asked: list[Message] = []
        self._answer = answer
        self._numbers = itertools.count(1)
        self.greeting: Message = {}

    async def begin(self, version: str = "2025-11-25") -> None:
        """Shake hands."""
        declared = {} if self._answer is None else FORM
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": version, "capabilities": declared, "clientInfo": info}
        self.greeting = (await self.ask("initialize", params))["result"]
        await self.wire.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """The reply to one request: its result or its error, and nothing else."""
        number = next(self._numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})}
        reply = await self.wire.exchange(message, {})
        return {key: value for key, value in reply.items() if key not in ("jsonrpc", "id")}

    async def call(self, name: str, task: Any = None, **arguments: Any) -> Message:
        """The reply to a call, which is to be a task if that is given."""
        params: Message = {"name": name, "arguments": arguments}
        return await self.ask("tools/call", params if task is None else {**params, "task": task})

    async def create(self, name: str, **arguments: Any) -> str:
        """Have a call run as a task; its id."""
        reply = await self.call(name, {"ttl": 60000}, **arguments)
        found: str = reply["result"]["task"]["taskId"]
        return found

    async def about(self, method: str, task: str) -> Message:
        """The reply to `tasks/…` about one task."""
        return await self.ask(f"tasks/{method}", {"taskId": task})

    async def listed(self) -> list[str]:
        """The ids of all tasks that this client is shown."""
        found: list[str] = []
        params: Message = {}
        while True:
            result = (await self.ask("tasks/list", params))["result"]
            found += [one["taskId"] for one in result["tasks"]]
            if "nextCursor" not in result:
                return found

            params = {"cursor": result["nextCursor"]}

    def told(self) -> list[tuple[str, str]]:
        """What this client heard of tasks: id and status."""
        heard = [one["params"] for one in self.wire.heard if one.get("method") == STATUS]
        return [(one["taskId"], one["status"]) for one in heard]

    async def listen(self, url: str) -> None:
        """Take what comes outside of requests, over Streamable HTTP, until cancelled."""
        headers = {"Accept": "text/event-stream", **self.wire._session}
        async with (
            httpx.AsyncClient(timeout=None, trust_env=False) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            async for event in EventSource(response).aiter_sse():
                if event.data:
                    self.wire.take(event.data)

    @asynccontextmanager
    async def elsewhere(self, url: str) -> AsyncIterator[TaskClient]:
        """The same client over another connection of Streamable HTTP."""
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            wire = _Http(http, url)
            wire._session = self.wire._session
            other = TaskClient(wire, self._answer)
            other._numbers = self._numbers
            yield other

    async def attend(self) -> None:
        """Answer what is asked, until cancelled."""
        while True:
            question = await eventually(self._question, within=600)
            self.asked.append(question)
            reply = {"jsonrpc": "2.0", "id": question["id"], "result": self._answer}
            await self.wire.post(reply, {})

    def _question(self) -> Message | None:
        questions = [one for one in self.wire.heard if "id" in one and "method" in one]
        return questions[len(self.asked)] if len(questions) > len(self.asked) else None


@asynccontextmanager
async def client_at(where: Where, answer: Message | None = None) -> AsyncIterator[TaskClient]:
    """A client that has shaken hands, with a person before it if there is an answer."""
    async with AsyncExitStack() as stack:
        wire = await stack.enter_async_context(connected(where))
        client = TaskClient(wire, answer)
        await client.begin()
        tasks = await stack.enter_async_context(anyio.create_task_group())
        if isinstance(where, Url):
            tasks.start_soon(client.listen, where.url)

        if answer is not None:
            tasks.start_soon(client.attend)

        try:
            yield client
        finally:
            tasks.cancel_scope.cancel()
