"""THE pipeline: every call, from a model or from an MCP client, passes through here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import anyio

from bridge.calls.hooks import NO_HOOKS, Hooks, first_answer
from bridge.calls.missing import StandIn, not_found
from bridge.calls.streams import COLLECTED, Streams
from bridge.calls.values import alike, copied
from bridge.core.actions import EventActions
from bridge.core.caller import Caller
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Args, FunctionCall, Result
from bridge.core.context import Context, ProgressSink, ToolContext
from bridge.core.tool import Tool, is_function_tool
from bridge.errors import BridgeError, ToolError, UpstreamError
from bridge.telemetry import log
from bridge.tools.cancelled import self_cancelled

Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Runner: TypeAlias = Callable[[Sequence[Job]], Awaitable[None]]
"""Runs every job it is given, and returns when all of them are done."""

Settled: TypeAlias = tuple[Result | None, Exception | None]
"""What a call has come to so far: a result (perhaps None) or an error."""

NONE_ANSWERED: Mapping[str, ToolConfirmation] = MappingProxyType({})


class Outcome(NamedTuple):
    """What became of one call.

    `response` is the answer a model reads: the result, `{"error": …}`, or None where the tool
    gave none. `raw` is the MCP server's own answer (a protocol error is its error object), where
    it is still the answer: no hook replaced or changed it. `error` is the failure that stands.
    `actions` is what the call filed. `tool` is what was called, or a stand-in where nothing could
    be.

    A tuple, for one is made for every call: a frozen dataclass takes five times as long.
    """

    call: FunctionCall
    response: Result | None
    raw: Result | None
    error: Exception | None
    actions: EventActions
    tool: Tool


async def side_by_side(jobs: Sequence[Job]) -> None:
    """Run all jobs at once."""
    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(job)


async def one_by_one(jobs: Sequence[Job]) -> None:
    """Run the jobs in order, each after the one before it."""
    for job in jobs:
        await job()


async def execute(
    calls: Sequence[FunctionCall],
    tools: Mapping[str, Tool],
    ctx: Context,
    *,
    hooks: Hooks = NO_HOOKS,
    confirmations: Mapping[str, ToolConfirmation] = NONE_ANSWERED,
    on_progress: ProgressSink | None = None,
    caller: Caller | None = None,
    runner: Runner = side_by_side,
    streams: Streams = COLLECTED,
) -> list[Outcome]:
    """Run the calls and return their outcomes, in the order in which they were asked.

    Each call has a context and actions of its own; `confirmations` holds people's decisions by
    call id; `caller` is the MCP client that waits, if it is one. Whatever goes wrong in a call is
    that call's outcome and touches no other. Only cancellation, and what is no Exception, passes.
    `runner` runs the jobs of two or more calls, `streams` the tools that answer in pieces.
    """
    if len(calls) == 1:
        call = calls[0]
        desk = ToolContext(ctx, call.id, None, confirmations.get(call.id), on_progress, caller)
        desk.is_relayed = caller is not None and not hooks
        return [await _answer(call, tools, desk, hooks, streams)]

    outcomes: list[Outcome | None] = [None] * len(calls)

    def job(index: int, call: FunctionCall) -> Job:
        desk = ToolContext(ctx, call.id, None, confirmations.get(call.id), on_progress, caller)

        async def run() -> None:
            outcomes[index] = await _answer(call, tools, desk, hooks, streams)

        return run

    await runner([job(index, call) for index, call in enumerate(calls)])
    done = [outcome for outcome in outcomes if outcome is not None]
    if len(done) != len(calls):
        raise BridgeError("the runner returned before every call was done")

    return done


async def _answer(
    call: FunctionCall,
    tools: Mapping[str, Tool],
    ctx: ToolContext,
    hooks: Hooks,
    streams: Streams,
) -> Outcome:
    """One call, from its name to its outcome."""
    stopped = streams.stopped(call)
    if stopped is not None:
        return _outcome(call, StandIn(call.name), ctx, stopped, None)

    tool: Any = tools.get(call.name)
    # Tools and hooks are strangers' code: whatever fails in them is this call's alone.
    try:
        if hasattr(tool, "run_stream"):  # it wins, even where there is a run as well (§5.5)
            return _outcome(call, tool, ctx, await streams.answer(tool, ctx, call.args), None)

        if not is_function_tool(tool):
            return await _missing(call, tools, ctx, hooks)

        if hooks:
            return await _hooked(call, tool, ctx, hooks)

        result = await _run(tool, ctx, call.args)
    except Exception as exc:
        return _outcome(call, StandIn(call.name) if tool is None else tool, ctx, None, exc)

    return _outcome(call, tool, ctx, result, None)


async def _hooked(call: FunctionCall, tool: Any, ctx: ToolContext, hooks: Hooks) -> Outcome:
    """Before hooks → the tool → on-error hooks → after hooks, as §6.1 has it."""
    args = copied(call.args)  # hooks may edit it, and what was asked stays as it was asked
    result, error = await _settled(_attempt(hooks, ctx, tool, args))
    if error is not None:
        result, error = await _recovered(hooks, ctx, tool, args, error)

    if hooks.after:
        result, error = await _reviewed(hooks, ctx, tool, args, result, error)

    return _outcome(call, tool, ctx, result, error)


async def _missing(
    call: FunctionCall, tools: Mapping[str, Tool], ctx: ToolContext, hooks: Hooks
) -> Outcome:
    """A call of what cannot run here: only the on-error hooks may know an answer (§5.6)."""
    stand_in, error = StandIn(call.name), not_found(call.name, tools)
    settled = await _recovered(hooks, ctx, stand_in, copied(call.args), error)
    return _outcome(call, stand_in, ctx, *settled)


async def _attempt(hooks: Hooks, ctx: ToolContext, tool: Any, args: Args) -> Result | None:
    """What a before hook answers in the tool's place, else what the tool itself answers."""
    result = await first_answer(hooks.before, ctx, tool, args)
    return await _run(tool, ctx, args) if result is None else result


async def _recovered(
    hooks: Hooks, ctx: ToolContext, tool: Tool, args: Args, error: Exception
) -> Settled:
    """What the on-error hooks make of an error: a result, another error, or nothing."""
    stage = first_answer(hooks.on_error, ctx, tool, args, error)
    result, worse = await _settled(stage)
    return (result, worse) if result is not None or worse is not None else (None, error)


async def _reviewed(
    hooks: Hooks,
    ctx: ToolContext,
    tool: Tool,
    args: Args,
    result: Result | None,
    error: Exception | None,
) -> Settled:
    """What the after hooks make of a result or an error.

    They get a copy to edit. A result that they neither replaced nor changed is still the very
    same object, so that an MCP server's own answer can go out.
    """
    seen = copied(result)
    stage = first_answer(hooks.after, ctx, tool, args, seen, error)
    answer, worse = await _settled(stage)
    if worse is not None:
        return None, worse

    if answer is not None:
        seen, error = answer, None

    return (result if alike(seen, result) else seen), error


async def _settled(stage: Awaitable[Result | None]) -> Settled:
    """The result or the error of one stage."""
    try:
        return await stage, None
    except Exception as exc:
        return None, exc


async def _run(tool: Any, ctx: ToolContext, args: Args) -> Result | None:
    """Run the tool, and see that it answers with an object or not at all."""
    try:
        result = await tool.run(ctx, args)
    except anyio.get_cancelled_exc_class() as exc:
        raise self_cancelled(exc, f'the tool "{tool.name}"') from exc

    if result is None or isinstance(result, dict):
        return result

    kind = type(result).__name__
    raise ToolError(f'the tool "{tool.name}" returned a {kind}; a tool returns a dict or None')


def _outcome(
    call: FunctionCall,
    tool: Tool,
    ctx: ToolContext,
    result: Result | None,
    error: Exception | None,
) -> Outcome:
    if error is None:
        answered = ctx.upstream_answer
        raw = answered[1] if answered is not None and answered[0] is result else None
        return Outcome(call, result, raw, None, ctx.actions, tool)

    if not isinstance(error, ToolError):
        log.warning('the call of "%s" failed unexpectedly', call.name, exc_info=error)

    raw = error.raw if isinstance(error, UpstreamError) else None
    text = str(error) or type(error).__name__
    return Outcome(call, {"error": text}, raw, error, ctx.actions, tool)
