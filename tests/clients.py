"""The SDK's own client, as people use it: over the command of a server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

Mode: TypeAlias = Literal["auto", "legacy"]

ERAS: dict[Mode, str] = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How the client opens a conversation, and the version a server of both eras then speaks."""


@asynccontextmanager
async def over_sse(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[Any]:
    """The SDK's HTTP+SSE transport. A message that arrives while it closes breaks it (2.3)."""
    try:
        async with sse_client(url, headers) as streams:
            yield streams
    except* anyio.BrokenResourceError:
        pass


@asynccontextmanager
async def over_stdio(
    command: Sequence[str],
    mode: Mode = "auto",
    *,
    env: Mapping[str, str] | None = None,
    stderr: Path | None = None,
) -> AsyncIterator[Client]:
    """A client of the server that the command starts; its stderr goes to a file, or nowhere."""
    server = StdioServerParameters(command=command[0], args=[*command[1:]], env={**(env or {})})
    with (stderr or Path(os.devnull)).open("w") as log:
        async with Client(stdio_client(server, log), mode=mode) as client:
            yield client
