"""How a question to a model is put together, in the one order that counts (§4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.agents.callbacks import Stages
from bridge.agents.contents import Reader, contents_for
from bridge.agents.contract import ModelAgent
from bridge.agents.events import long_running_ids, model_event, with_call_ids
from bridge.agents.instructions import instruct, introduce
from bridge.agents.replay import Replay
from bridge.agents.run_config import DEFAULT_RUN, RunConfig
from bridge.agents.structured import offer_structured_answer
from bridge.agents.transfer import offer_transfer
from bridge.calls.call import Outcome, execute
from bridge.calls.streams import IN_TURN, STOP_STREAMING, Streams, closing
from bridge.calls.values import copied
from bridge.core.context import Context, ReadonlyContext, ToolContext
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.tool import Tool, Toolset, is_function_tool
from bridge.errors import DuplicateTool, ToolsetError


@dataclass(slots=True)
class AgentRun:
    """One run of an agent that a model speaks for.

    `tools` is None until they are collected, which is once a run. `hands_over` is False where
    the conversation stays with this agent.
    """

    agent: ModelAgent
    ctx: Context
    stages: Stages
    streams: Streams = IN_TURN
    hands_over: bool = True
    tools: tuple[Tool, ...] | None = None

    @property
    def config(self) -> RunConfig:
        """How this run is to be done."""
        config = self.ctx.run_config
        return config if isinstance(config, RunConfig) else DEFAULT_RUN

    def said(self, response: LLMResponse, request: LLMRequest, **given: Any) -> Event:
        """What the model said as an event, in which every call has an id."""
        event = model_event(self.ctx, with_call_ids(self.ctx, response), **given)
        waiting = long_running_ids(event.function_calls(), request.tools or {})
        return replace(event, long_running_tool_ids=waiting)

    async def execute(self, said: Event, request: LLMRequest) -> list[Outcome]:
        """What becomes of the calls in an event; no tool gets at the event's own arguments."""
        return await execute(
            [replace(call, args=copied(call.args)) for call in said.function_calls()],
            request.tools or {},
            self.ctx,
            hooks=self.stages.tools,
            runner=self.config.task_runner,
            streams=self.streams,
        )

    @property
    def tools_by_name(self) -> Mapping[str, Tool]:
        """The collected tools, as a call names them."""
        return {tool.name: tool for tool in self.tools or ()}


async def prepare(run: AgentRun, request: LLMRequest) -> AsyncIterator[Event]:
    """Fill in the request; yields what decided calls have come to, which the request then tells.

    Raises:
        ToolsetError: Tools cannot be listed or prepared; the model is not to be asked.
        BridgeError: The history, or a person's decision in it, cannot be read.
    """
    agent, ctx = run.agent, run.ctx
    _begin(agent, request)
    await collect(run)
    # Before the contents, so that the model reads what came of the calls.
    async with closing(replayed(run)) as events:
        async for event in events:
            yield event

    await instruct(ctx, agent.instruction, request)
    introduce(agent.name, agent.description, request)
    request.contents += _contents(run)
    if agent.output_form is not None and _has_tools(agent):
        offer_structured_answer(request, agent.output_form)

    if run.hands_over:
        offer_transfer(ctx, request)

    # Last of all, so that tools see, and may add to, the whole conversation.
    await _let_tools_prepare(run.tools or (), ctx, request)
    await _let_toolsets_prepare(agent.all_toolsets, ctx, request)


async def collect(run: AgentRun) -> None:
    """List the agent's tools: its own, then each toolset's, once a run.

    Raises:
        ToolsetError: A toolset cannot be listed, or a tool has a name that means something else.
    """
    if run.tools is not None:
        return

    tools = list(run.agent.single_tools)
    for toolset in run.agent.all_toolsets:
        # A toolset is a stranger's code: whatever goes wrong in it ends this step, by its name.
        try:
            tools += await toolset.tools(ReadonlyContext(run.ctx))
        except Exception as exc:
            raise ToolsetError(f'the tools of "{toolset.name}" cannot be listed: {exc}') from exc

    _check_names(tools)
    run.tools = tuple(tools)


def _check_names(tools: Sequence[Tool]) -> None:
    """Refuse two tools that answer to one name: replayed calls are looked up before any packing."""
    taken: set[str] = set()
    for tool in tools:
        if tool.name == STOP_STREAMING:
            raise DuplicateTool(f'"{STOP_STREAMING}" stops streams; name your tool otherwise')

        if not is_function_tool(tool) and not hasattr(tool, "run_stream"):
            continue

        if tool.name in taken:
            raise DuplicateTool(
                f'two tools are named "{tool.name}"; rename one, or give its toolset a prefix'
            )

        taken.add(tool.name)


def replayed(run: AgentRun) -> AsyncIterator[Event]:
    """Run the calls that the user's newest reply has decided; the tools are collected."""
    replay = Replay(
        ctx=run.ctx,
        tools=run.tools_by_name,
        hooks=run.stages.tools,
        task_runner=run.config.task_runner,
        streams=run.streams,
    )
    return replay.events()


def _begin(agent: ModelAgent, request: LLMRequest) -> None:
    """Start from the agent's own configuration, of which the request gets a copy."""
    config = replace(agent.generate_config, tools=list(agent.generate_config.tools))
    if agent.output_form is not None and not _has_tools(agent):
        config.response_schema = agent.output_form

    request.config = config


def _contents(run: AgentRun) -> Sequence[Any]:
    ctx = run.ctx
    reader = Reader(run.agent.name, ctx.branch, ctx.isolation_scope, ctx.user_content)
    whole = run.agent.include_contents != "none"
    return contents_for(reader, ctx.session.events, whole=whole)


def _has_tools(agent: ModelAgent) -> bool:
    return bool(agent.single_tools or agent.all_toolsets)


async def _let_tools_prepare(tools: Sequence[Tool], ctx: Context, request: LLMRequest) -> None:
    """Each tool in turn edits the request; the first that cannot ends it."""
    for tool in tools:
        process = getattr(tool, "process_request", None)
        if process is None:
            raise ToolsetError(
                f'the tool "{tool.name}" cannot be offered to a model: it has no process_request'
            )

        await process(ToolContext.preparing(ctx), request)


async def _let_toolsets_prepare(
    toolsets: Sequence[Toolset], ctx: Context, request: LLMRequest
) -> None:
    """Each toolset that wants to edits the request, after all tools."""
    for toolset in toolsets:
        process = getattr(toolset, "process_request", None)
        if process is None:
            continue

        try:
            await process(ToolContext.preparing(ctx), request)
        except Exception as exc:  # a toolset is a stranger's code
            raise ToolsetError(
                f'toolset "{toolset.name}" cannot prepare the request: {exc}'
            ) from exc
