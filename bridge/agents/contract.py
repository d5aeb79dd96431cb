"""What counts as an agent: small contracts, recognised by shape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from bridge.agents.callbacks import Own
from bridge.agents.live import LiveModel
from bridge.core.context import Context, ReadonlyContext
from bridge.core.declaration import Schema
from bridge.core.event import Event
from bridge.core.model import Model
from bridge.core.request import GenerateConfig
from bridge.core.tool import Tool, Toolset

Instruction: TypeAlias = str | Callable[[ReadonlyContext], str | Awaitable[str]]
"""What an agent is told to do, or who says it, anew for each question to the model."""


@runtime_checkable
class AnyAgent(Protocol):
    """Something that can be run within an invocation, alone or below another agent."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def sub_agents(self) -> Sequence[AnyAgent]: ...
    def run(self, ctx: Context) -> AsyncIterator[Event]: ...


class ModelAgent(AnyAgent, Protocol):
    """An agent that a model speaks for: what the flow has to know of it."""

    @property
    def own(self) -> Own: ...
    @property
    def model(self) -> Model | LiveModel | None: ...
    @property
    def instruction(self) -> Instruction: ...
    @property
    def single_tools(self) -> Sequence[Tool]: ...
    @property
    def all_toolsets(self) -> Sequence[Toolset]: ...
    @property
    def include_contents(self) -> str: ...
    @property
    def output_form(self) -> Schema | None: ...
    @property
    def generate_config(self) -> GenerateConfig: ...
    @property
    def disallow_transfer_to_parent(self) -> bool: ...
    @property
    def disallow_transfer_to_peers(self) -> bool: ...
