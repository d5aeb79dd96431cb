"""The agents of one runner, found by name, and who may hand over to whom (§15.3, §20)."""

from __future__ import annotations

from typing import Final

from bridge.agents.contract import AnyAgent
from bridge.agents.events import USER
from bridge.core.scope import Key
from bridge.errors import ConfigError


class AgentTree:
    """A root agent with everything below it, each under one parent."""

    __slots__ = ("_agents", "_parents", "root")

    def __init__(self, root: AnyAgent) -> None:
        """Raises ConfigError if two agents have one name, or one has two parents or a bad name."""
        self.root = root
        self._agents: dict[str, AnyAgent] = {}
        self._parents: dict[str, AnyAgent | None] = {}
        self._add(root, None)

    def find(self, name: str) -> AnyAgent | None:
        """The agent of that name."""
        return self._agents.get(name)

    def parent(self, name: str) -> AnyAgent | None:
        """The agent above the one of that name; None above the root."""
        return self._parents.get(name)

    def may_be_returned_to(self, agent: AnyAgent) -> bool:
        """Whether a later turn may start at `agent`: it, and all above, may hand over upwards."""
        above: AnyAgent | None = agent
        while above is not None:
            if getattr(above, "disallow_transfer_to_parent", True):
                return False

            above = self.parent(above.name)

        return True

    def _add(self, agent: AnyAgent, parent: AnyAgent | None) -> None:
        if agent.name == USER:
            raise ConfigError(f'no agent can be named "{USER}": that is the person; rename it')

        if agent.name in self._agents:
            raise ConfigError(
                f'two agents are named "{agent.name}"; rename one, and put each below one agent'
            )

        self._agents[agent.name], self._parents[agent.name] = agent, parent
        for below in agent.sub_agents:
            self._add(below, agent)


AGENT_TREE: Final[Key[AgentTree]] = Key("agent tree")
