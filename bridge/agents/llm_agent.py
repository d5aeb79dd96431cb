"""An agent that a model speaks for."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from bridge.agents.callbacks import Callback, Own, Stages, callbacks_of
from bridge.agents.contract import AnyAgent, Instruction
from bridge.agents.events import USER, visible_text
from bridge.agents.flow import run_flow
from bridge.agents.lifecycle import run_agent
from bridge.agents.live import LiveModel
from bridge.agents.processors import AgentRun
from bridge.agents.structured import schema_of
from bridge.calls.hooks import Hook
from bridge.calls.streams import closing
from bridge.core.context import Context, InvocationContext
from bridge.core.declaration import Schema
from bridge.core.event import Event
from bridge.core.model import Model
from bridge.core.request import GenerateConfig
from bridge.core.tool import Tool, Toolset
from bridge.core.wire import loads
from bridge.errors import ConfigError
from bridge.tools.function import function_tool
from bridge.tools.names import is_legal
from bridge.tools.streaming import streaming_tool

Callbacks: TypeAlias = Callback | Sequence[Callback] | None
"""One callback, several in order, or none; each may be async or not."""

AnyTool: TypeAlias = Tool | Toolset | Callable[..., Any]
"""A tool, a toolset, or a plain function, which becomes a tool as `function_tool` makes one."""

AnySchema: TypeAlias = Schema | type[Any] | None
"""A JSON Schema, or a class that can tell its own, as pydantic models do."""

_STAGES: Final = (
    *("before_agent", "after_agent", "before_model", "after_model", "on_model_error"),
    *("before_tool", "on_tool_error", "after_tool"),
)


@dataclass(frozen=True, slots=True, eq=False)
class LlmAgent:
    """A model with an instruction, tools, and perhaps agents to hand over to.

    `tools` may hold tools, toolsets and plain functions; `single_tools` and `all_toolsets` are
    what becomes of them and of `toolsets`. `hooks` are objects with methods named as the stages
    are; the eight callbacks are for single functions. `output_schema` (JSON Schema, or a pydantic
    model class) is the form of the answer, `input_schema` that of what an `AgentTool` of this
    agent takes; `output_form` and `input_form` are their JSON Schemas. `output_key` is the key of
    state that the final answer is written to. `include_contents="none"` tells the model of the
    current turn alone.

    Raises:
        ConfigError: The name cannot be used, or something given is not what it has to be.
    """

    name: str
    model: Model | LiveModel | None = None
    instruction: Instruction = ""
    description: str = ""
    tools: Sequence[AnyTool] = ()
    toolsets: Sequence[Toolset] = ()
    sub_agents: Sequence[AnyAgent] = ()
    hooks: Sequence[Hook] = ()
    before_agent: Callbacks = None
    after_agent: Callbacks = None
    before_model: Callbacks = None
    after_model: Callbacks = None
    on_model_error: Callbacks = None
    before_tool: Callbacks = None
    on_tool_error: Callbacks = None
    after_tool: Callbacks = None
    input_schema: AnySchema = None
    output_schema: AnySchema = None
    output_key: str = ""
    include_contents: Literal["default", "none"] = "default"
    generate_config: GenerateConfig = field(default_factory=GenerateConfig)
    disallow_transfer_to_parent: bool = False
    disallow_transfer_to_peers: bool = False
    single_tools: tuple[Tool, ...] = field(init=False, repr=False)
    all_toolsets: tuple[Toolset, ...] = field(init=False, repr=False)
    input_form: Schema | None = field(init=False, repr=False)
    output_form: Schema | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        tools, toolsets = _sorted_out(self.tools, self.name)
        self._set("single_tools", tools)
        self._set("all_toolsets", (*toolsets, *self.toolsets))
        self._set("sub_agents", tuple(self.sub_agents))
        self._set("hooks", tuple(self.hooks))
        self._set("input_form", schema_of(self.input_schema, f'input_schema of "{self.name}"'))
        self._set("output_form", schema_of(self.output_schema, f'output_schema of "{self.name}"'))
        if self.include_contents not in ("default", "none"):
            raise ConfigError(f'include_contents of "{self.name}" is "default" or "none"')

    @property
    def own(self) -> Own:
        """This agent's part in the stages around it, its model and its tools."""
        return Own(self.hooks, {stage: callbacks_of(getattr(self, stage)) for stage in _STAGES})

    def run(self, ctx: InvocationContext | Context) -> AsyncGenerator[Event]:
        """The events of one run within an invocation; close it if you do not take them all."""
        return run_agent(self, self.own, ctx, self._speak)

    async def _speak(self, ctx: Context, stages: Stages) -> AsyncIterator[Event]:
        async with closing(run_flow(AgentRun(self, ctx, stages))) as events:
            async for event in events:
                self._keep_output(event)
                yield event

    def _keep_output(self, event: Event) -> None:
        """File the final answer under the agent's key of state, as the event is on its way."""
        is_answer = event.is_final_response() and not event.partial
        if not self.output_key or not is_answer or event.author != self.name:
            return

        text = visible_text(event.content)
        if text.strip():
            value = text if self.output_form is None else _parsed(text)
            event.actions.state_delta[self.output_key] = value

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def check_name(name: str) -> None:
    """Raises ConfigError if `name` cannot be an agent's."""
    if not is_legal(name) or name == USER:
        raise ConfigError(
            f'"{name}" cannot name an agent: use 1 to 64 letters, digits, "_" or "-", and not '
            f'"{USER}", who is the person'
        )


def _sorted_out(
    given: Sequence[AnyTool], agent_name: str
) -> tuple[tuple[Tool, ...], tuple[Toolset, ...]]:
    """Tools and toolsets apart, each in their order; functions made tools."""
    tools: list[Tool] = []
    toolsets: list[Toolset] = []
    for item in given:
        if isinstance(item, Tool):
            tools.append(item)
        elif isinstance(item, Toolset) and callable(item.tools):
            toolsets.append(item)
        elif inspect.isasyncgenfunction(item) or inspect.isgeneratorfunction(item):
            tools.append(streaming_tool(item))
        elif callable(item):
            tools.append(function_tool(item))
        else:
            kind = type(item).__name__
            raise ConfigError(
                f'a {kind} among the tools of "{agent_name}" is no tool, toolset or function; '
                "an agent becomes a tool by AgentTool"
            )

    return tuple(tools), tuple(toolsets)


def _parsed(text: str) -> Any:
    """The JSON of a structured answer; the text where the model did not keep to it."""
    try:
        return loads(text)
    except ValueError:
        return text


Agent = LlmAgent
