"""A cell of the era matrix: bridge before a server of one era, and clients of either."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client

from bridge.upstream.protocol import Era
from tests import nursery
from tests.clients import Mode
from tests.processes import started, unused_port

ROOT = Path(__file__).resolve().parents[2]
SERVER = ("-m", "tests.gateway.matrix_server")
MODES: dict[Era, Mode] = {"legacy": "legacy", "modern": "auto"}
FILLED = {"username": "Ann", "email": "ann@example.com"}


@asynccontextmanager
async def bridge_before(era: Era, transport: str, place: Path) -> AsyncIterator[str]:
    """The URL of a bridge whose one upstream is a server of this era, reached this way."""
    path = place / "bridge.yaml"
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            where: dict[str, Any] = {
                "command": nursery.server(*SERVER, "stdio", "--era", era),
                "cwd": str(ROOT),
            }
        else:
            port = unused_port()
            argv = nursery.server(*SERVER, "--port", str(port), "--era", era)
            await stack.enter_async_context(started(argv, port=port, cwd=ROOT))
            where = {"url": f"http://127.0.0.1:{port}/mcp"}

        upstream = {**where, "prefix": "", "connect_timeout": "60s"}
        settings = {"upstreams": {"server": upstream}, "serve": {"startup_wait": "60s"}}
        path.write_text(json.dumps(settings), "utf-8")  # JSON is YAML
        port = unused_port()
        argv = nursery.server("-m", "bridge", "serve", str(path), "--port", str(port))
        await stack.enter_async_context(started(argv, port=port, cwd=ROOT))
        yield f"http://127.0.0.1:{port}/mcp"


@dataclass
class Person:
    """Who sits before the client: what they are asked and told, and how they answer."""

    action: str = "accept"
    asked: list[Any] = field(default_factory=list)
    heard: list[Any] = field(default_factory=list)
    logged: list[Any] = field(default_factory=list)

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        content = None
        if self.action == "accept" and hasattr(params, "requested_schema"):
            fields = params.requested_schema["properties"]
            content = {name: FILLED.get(name, "something") for name in fields}

        return types.ElicitResult.model_validate({"action": self.action, "content": content})

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        self.asked.append(params)
        text = types.TextContent(text="Paris.")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(self, context: Any) -> types.ListRootsResult:
        self.asked.append("roots")
        return types.ListRootsResult(
            roots=[types.Root(uri="file:///a"), types.Root(uri="file:///b")]
        )

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data))

    async def hear(self, message: Any) -> None:
        self.heard.append(message)

    def heard_of(self, kind: type) -> bool:
        return any(isinstance(message, kind) for message in self.heard)


@asynccontextmanager
async def client_of(
    url: str, era: Era, person: Person | None = None, *, listens: Any = None, **options: Any
) -> AsyncIterator[Client]:
    """A stock client of this era with a person before it, or one that declares nothing.

    Who declares nothing shares the upstream's session, and hears what everybody hears.
    """
    if person is not None:
        options |= {
            "elicitation_callback": person.elicit,
            "sampling_callback": person.sample,
            "list_roots_callback": person.roots,
        }
    elif listens is not None:
        options |= {"message_handler": listens.hear, "logging_callback": listens.log}

    async with Client(url, mode=MODES[era], **options) as client:
        yield client


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text
