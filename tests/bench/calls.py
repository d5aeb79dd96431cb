"""What one call costs in CPU time, from its name to its outcome: `python -m tests.bench.calls`.

It drives `execute` by hand, without an event loop, so that nothing but the pipeline is
measured. The tool answers at once; what it costs to await it bare is the floor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from bridge.calls.call import execute
from bridge.calls.hooks import NO_HOOKS, Hook, Hooks
from bridge.core.confirmation import Subject, ToolConfirmation
from bridge.core.content import Args, FunctionCall, Result
from bridge.core.context import Context, ToolContext, local_context
from bridge.core.declaration import Declaration
from bridge.core.tool import Tool
from bridge.tools.function import function_tool
from bridge.tools.gate import Rule, check
from bridge.tools.toolsets import CombinedToolset, StaticToolset

ARGS = {"city": "Tokyo", "days": 3}
SUBJECT = Subject("bench", "instant", "0")
ANSWER = {"output": {"temperature": 22, "sky": "sunny"}}


@dataclass(frozen=True, slots=True)
class Instant:
    """A tool like those of an MCP server, whose server is infinitely fast."""

    name: str
    description: str = "Answer at once."
    is_long_running: bool = False
    rule: Rule | None = None
    subject: Subject = SUBJECT

    def declaration(self) -> Declaration:
        return Declaration(self.name, self.description, {"type": "object"})

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        if self.rule is not None:
            await check(ctx, self.rule, self.subject, args)

        ctx.upstream_answer = (ANSWER, ANSWER)
        return ANSWER

    def with_rule(self, rule: Rule) -> Instant:
        return replace(self, rule=rule)

    def relabelled(self, name: str, description: str | None = None) -> Instant:
        return replace(self, name=name)


class Watching(Hook):
    """A hook that overrides every stage and does nothing."""

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> None:
        return None

    async def on_tool_error(
        self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
    ) -> None:
        return None

    async def after_tool(
        self,
        ctx: ToolContext,
        tool: Tool,
        args: Args,
        result: Result | None,
        error: Exception | None,
    ) -> None:
        return None


async def forecast(city: str, days: int = 1) -> dict[str, Any]:
    """Say what the weather will be."""
    return ANSWER


async def noop() -> None:
    """Do nothing."""


def noop_in_a_thread() -> None:
    """Do nothing, without being async."""


def in_a_loop(job: Callable[[], Awaitable[Any]], rounds: int, runs: int) -> float:
    """CPU time of one job that has to wait, for a thread: the median, in an event loop."""

    async def work() -> float:
        begun = time.process_time()
        for _ in range(rounds):
            await job()

        return (time.process_time() - begun) / rounds * 1e6

    return statistics.median(anyio.run(work) for _ in range(runs))


async def full_stack(ctx: Context) -> Mapping[str, Tool]:
    """Combined(Prefixed(Renamed(Confirmed(Filtered(static))))), whose confirmation never asks."""
    stack = (
        StaticToolset([Instant("instant"), Instant("hidden")])
        .filtered(["inst*"])
        .confirmed(lambda name, args: False)
        .renamed({"instant": "now"})
        .prefixed("bench__")
    )
    return {tool.name: tool for tool in await CombinedToolset([stack]).tools(ctx)}


def driven(work: Awaitable[Any]) -> None:
    """Run to its end what never has to wait."""
    for _ in work.__await__():
        raise RuntimeError("the benchmark is only about work that never waits")


def microseconds(job: Callable[[], Awaitable[Any]], rounds: int, runs: int) -> float:
    """CPU time of one job: the median of several runs of many rounds."""
    taken = []
    for _ in range(runs):
        begun = time.process_time()
        for _ in range(rounds):
            driven(job())

        taken.append((time.process_time() - begun) / rounds * 1e6)

    return statistics.median(taken)


def measured(rounds: int, runs: int) -> dict[str, float]:
    """Microseconds of each kind of call, by what it is."""
    ctx = local_context()
    instant = Instant("instant")
    empty: Mapping[str, Tool] = {"instant": instant}
    full = anyio.run(full_stack, ctx)
    local: Mapping[str, Tool] = {"forecast": function_tool(forecast)}
    three = Hooks([Watching(), Watching(), Watching()])
    bare = ToolContext(ctx, "c1")

    def one(name: str, tools: Mapping[str, Tool], hooks: Hooks = NO_HOOKS) -> float:
        calls = [FunctionCall("c1", name, ARGS)]
        [outcome] = anyio.run(lambda: execute(calls, tools, ctx, hooks=hooks))
        if outcome.response != ANSWER:
            raise RuntimeError(f"what is measured does not work: {outcome}")

        return microseconds(lambda: execute(calls, tools, ctx, hooks=hooks), rounds, runs)

    never = Rule("noop", False, lambda name, args: False)
    asks = Rule("noop", True)
    guarded: Mapping[str, Tool] = {"noop": function_tool(noop).with_rule(never)}
    confirmed: Mapping[str, Tool] = {"noop": function_tool(noop).with_rule(asks)}
    threaded: Mapping[str, Tool] = {"noop": function_tool(noop_in_a_thread, name="noop")}
    nothing = [FunctionCall("c1", "noop", {})]

    def noop_call(tools: Mapping[str, Tool], *decided: str) -> Callable[[], Awaitable[Any]]:
        def run() -> Awaitable[Any]:
            yes = {call_id: ToolConfirmation(confirmed=True) for call_id in decided}  # used once
            return execute(nothing, tools, ctx, hooks=three, confirmations=yes)

        return run

    return {
        "bare await of a no-op function": microseconds(noop, rounds, runs),
        "no-op function tool, three hooks, a rule": microseconds(noop_call(guarded), rounds, runs),
        "no-op function tool, three hooks, a yes": microseconds(
            noop_call(confirmed, "c1"), rounds, runs
        ),
        "no-op function in a thread, three hooks": in_a_loop(
            noop_call(threaded), max(1, rounds // 10), runs
        ),
        "bare await of the tool": microseconds(lambda: instant.run(bare, ARGS), rounds, runs),
        "empty stack": one("instant", empty),
        "full stack, a rule that never asks": one("bench__now", full),
        "full stack, three hooks": one("bench__now", full, three),
        "a Python function, schema and all": one("forecast", local),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    found = measured(options.rounds, options.runs)
    floor = found["bare await of the tool"]
    for what, cost in found.items():
        print(f"{what:<42}{cost:8.2f} µs{cost / floor:8.1f} x")  # noqa: T201


if __name__ == "__main__":
    main()
