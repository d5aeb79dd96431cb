"""A client with a person who accepts every question, in front of bridge.

`python -m tests.conformance.person URL`: bridge serves the suite's server to it over stdio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from tests.conformance.task import VALUES, Task, calls, config


def main(argv: Sequence[str]) -> int:
    """Do the task."""
    task = Task.given(argv[-1], os.environ)
    with config(task) as path:
        anyio.run(_ask, task, path)

    return 0


async def _ask(task: Task, path: Path) -> None:
    """Call the tools through `bridge serve`."""
    command = ["-m", "bridge", "serve", str(path), "--transport", "stdio"]
    served = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    mode = "legacy" if task.version in HANDSHAKE_PROTOCOL_VERSIONS else "auto"
    async with Client(stdio_client(served), mode=mode, elicitation_callback=_accept) as client:
        found = (await client.list_tools()).tools
        for name, args in calls(task, {tool.name: tool.input_schema for tool in found}):
            await client.call_tool(name, args)


async def _accept(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    """Accept with every default; a field without one gets any value of its type."""
    schema = getattr(params, "requested_schema", {})
    content = {
        name: field.get("default", VALUES.get(field.get("type")))
        for name, field in schema.get("properties", {}).items()
    }
    return types.ElicitResult(action="accept", content=content)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
