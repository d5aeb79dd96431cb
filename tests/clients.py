"""The SDK's own client, as people use it: over the command of a server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

Mode: TypeAlias = Literal["auto", "legacy"]

ERAS: dict[Mode, str] = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How the client opens a conversation, and the version a server of both eras then speaks."""


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
