"""bridge as the client under test: `python -m tests.conformance.client URL`.

The suite starts a server, puts its URL behind the command, and says in the environment which
scenario and version it is about. bridge gets a configuration for that URL and calls the tools that
it finds. Where a server asks the person, bridge serves a client that has one (`person.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import httpx2

import bridge
from bridge.errors import BridgeError
from tests.conformance.task import Task, calls, config

ASKING = ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state")


class Failed(Exception):
    """A call, or the listing, did not succeed."""


def main(argv: Sequence[str]) -> int:
    """Do the task; 1 with the reason on stderr if it cannot be done."""
    task = Task.given(argv[-1], os.environ)
    if task.scenario in ASKING:
        # Another program, so that this one need not load the SDK.
        os.execv(sys.executable, [sys.executable, "-m", "tests.conformance.person", argv[-1]])

    try:
        with config(task) as path:
            anyio.run(_embed, task, path)
    except (Failed, BridgeError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1

    return 0


async def _log_in(upstream: str, url: str) -> None:
    """Be the browser of a person who agrees: the suite's server sends it to bridge at once."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(url)


async def _embed(task: Task, path: Path) -> None:
    """Call the tools of the configured toolset."""
    async with bridge.open_toolset(path, login=_log_in) as toolset:
        ctx = bridge.local_context()
        tools = {tool.name: tool for tool in await toolset.tools(ctx)}
        for status in toolset.statuses():
            if status.state == "failed":
                raise Failed(status.reason)

        schemas = {
            name: found.parameters_json_schema or {}
            for name, tool in tools.items()
            if (found := tool.declaration()) is not None
        }
        for number, (name, args) in enumerate(calls(task, schemas)):
            call = bridge.FunctionCall(str(number), name, args)
            [outcome] = await bridge.execute([call], tools, ctx)
            if outcome.error is not None:
                raise Failed(f"{name}: {outcome.error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
