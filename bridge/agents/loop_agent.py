"""An agent that runs other agents, in turn, again and again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from bridge.agents.callbacks import Own, Stages, callbacks_of
from bridge.agents.contract import AnyAgent
from bridge.agents.lifecycle import run_agent
from bridge.agents.llm_agent import Callbacks, check_name
from bridge.calls.streams import closing
from bridge.core.context import Context, InvocationContext
from bridge.core.event import Event
from bridge.errors import ConfigError


@dataclass(frozen=True, slots=True, eq=False)
class LoopAgent:
    """Runs its sub-agents in order, at most `max_iterations` times over.

    An event that escalates ends the loop once the agent it came from is done.

    Raises:
        ConfigError: The name cannot be used, or `max_iterations` is not a positive number.
    """

    name: str
    sub_agents: Sequence[AnyAgent]
    max_iterations: int
    description: str = ""
    before_agent: Callbacks = None
    after_agent: Callbacks = None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "sub_agents", tuple(self.sub_agents))
        if self.max_iterations < 1:
            raise ConfigError(f'max_iterations of "{self.name}" must be at least 1')

    def run(self, ctx: InvocationContext | Context) -> AsyncGenerator[Event]:
        """The events of all rounds; close it if you do not take them all."""
        callbacks = {
            "before_agent": callbacks_of(self.before_agent),
            "after_agent": callbacks_of(self.after_agent),
        }
        return run_agent(self, Own((), callbacks), ctx, self._loop)

    async def _loop(self, ctx: Context, stages: Stages) -> AsyncIterator[Event]:
        for _ in range(self.max_iterations):
            for agent in self.sub_agents:
                is_over = False
                async with closing(agent.run(ctx)) as events:
                    async for event in events:
                        yield event
                        is_over = is_over or event.actions.escalate

                if is_over or ctx.ended:
                    return
