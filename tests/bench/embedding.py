"""What a call costs inside a Python program: `python -m tests.bench.embedding`.

Beside the same request sent raw over the same channel, which is as little as it can cost. All
take turns in one event loop, over one echo upstream; each call is awaited before the next.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio

from bridge.calls.call import execute
from bridge.core.content import FunctionCall
from bridge.core.context import ToolContext, local_context
from bridge.upstream.channel import Options
from bridge.upstream.link import modern_request
from bridge.upstream.tool import MCPTool
from bridge.upstream.toolset import MCPToolset
from tests.bench.contenders import ECHO

RAW, TOOL, EXECUTED = "the channel's raw request", "a tool's run", "a tool through execute"
TEXT = "hello"
ANSWER = {"output": TEXT}
TIMEOUT = 60.0


def measured(rounds: int = 15, calls: int = 200) -> dict[str, dict[str, float]]:
    """For each way to call: CPU in µs, and how many times that of the raw request (median)."""
    return anyio.run(_measured, rounds, calls)


async def _measured(rounds: int, calls: int) -> dict[str, dict[str, float]]:
    async with MCPToolset(ECHO) as toolset:
        ways = await _ways(toolset)
        for way in ways.values():
            await _cost(way, calls)

        costs: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                costs[name].append(await _cost(way, calls))

    found = {}
    for name, taken in costs.items():
        ratios = [one / raw for one, raw in zip(taken, costs[RAW], strict=True)]
        found[name] = {"cpu_us": statistics.median(taken), "ratio": statistics.median(ratios)}

    return found


async def _ways(toolset: MCPToolset) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Each way to call `echo`, after it was seen to give the right answer."""
    ctx = local_context()
    tools = {tool.name: tool for tool in await toolset.tools(ctx)}
    echo, args = tools["echo"], {"text": TEXT}
    link = await toolset.connection.link()
    given = {"name": "echo", "arguments": args}
    params, options = modern_request(link.transport, "tools/call", given, Options(timeout=TIMEOUT))
    if not isinstance(echo, MCPTool):
        raise TypeError(f'"echo" is no tool of an MCP server: {echo!r}')

    call = [FunctionCall("c1", "echo", args)]

    async def raw() -> Any:
        return await link.channel.request("tools/call", params, options)

    async def run() -> Any:
        return await echo.run(ToolContext(ctx, "c1"), args)

    async def executed() -> Any:
        return await execute(call, tools, ctx)

    said = (await raw())["content"][0]["text"], await run(), (await executed())[0].response
    if said != (TEXT, ANSWER, ANSWER):
        raise RuntimeError(f"what is measured does not work: {said}")

    return {RAW: raw, TOOL: run, EXECUTED: executed}


async def _cost(way: Callable[[], Awaitable[Any]], calls: int) -> float:
    begun = time.process_time_ns()
    for _ in range(calls):
        await way()

    return (time.process_time_ns() - begun) / calls / 1e3


def table(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """A line for each way to call."""
    yield "one call from Python"
    for name, one in found.items():
        yield f"  {name:<28}{one['cpu_us']:7.1f} µs CPU   {one['ratio']:5.2f} x"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(measured()))
