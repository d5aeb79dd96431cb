"""Handing a conversation over to another agent (§20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bridge.agents.contract import AnyAgent
from bridge.agents.tree import AGENT_TREE, AgentTree
from bridge.core.content import Args, Result
from bridge.core.context import Context, ToolContext
from bridge.core.declaration import Declaration
from bridge.core.instructions import append_instructions
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import BridgeError, InvalidArguments

TRANSFER: Final = "transfer_to_agent"


@dataclass(frozen=True, slots=True)
class TransferTool:
    """The tool by which a model hands over."""

    targets: tuple[str, ...]
    name: str = TRANSFER
    description: str = "Hand the conversation over to another agent that is better suited to it."
    is_long_running: bool = False

    def declaration(self) -> Declaration:
        """Which agents there are is part of the schema."""
        wanted = {
            "type": "string",
            "description": "The name of the agent to hand over to.",
            "enum": list(self.targets),
        }
        schema = {
            "type": "object",
            "properties": {"agent_name": wanted},
            "required": ["agent_name"],
        }
        return Declaration(self.name, self.description, schema)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Ask for the handing over; it is done once the answer to this call is out.

        Raises:
            InvalidArguments: No agent is named.
        """
        name = args.get("agent_name")
        if not isinstance(name, str) or not name:
            raise InvalidArguments(f'name the agent to hand over to: "agent_name" of {self.name}')

        ctx.actions.transfer_to_agent = name
        return {}


def offer_transfer(ctx: Context, request: LLMRequest) -> None:
    """Let the model hand over, where there is somebody to hand over to.

    Raises:
        DuplicateTool: Another tool has that name.
    """
    targets = transfer_targets(ctx)
    if not targets:
        return

    pack_tool(request, TransferTool(tuple(target.name for target in targets)))
    append_instructions(request, _instruction(ctx, targets))


def transfer_targets(ctx: Context) -> list[AnyAgent]:
    """Whom the running agent may hand over to: those below it, its parent, and its peers."""
    agent: AnyAgent = ctx.agent
    targets = list(agent.sub_agents)
    parent = _tree(ctx).parent(agent.name)
    if parent is None or not hasattr(parent, "model"):
        return targets

    if not getattr(agent, "disallow_transfer_to_parent", False):
        targets.append(parent)

    if not getattr(agent, "disallow_transfer_to_peers", False):
        targets += [peer for peer in parent.sub_agents if peer.name != agent.name]

    return targets


def transfer_target(ctx: Context, name: str) -> AnyAgent:
    """The agent to hand over to.

    Raises:
        BridgeError: The running agent may not hand over to any of that name.
    """
    targets = transfer_targets(ctx)
    for target in targets:
        if target.name == name:
            return target

    known = ", ".join(f'"{target.name}"' for target in targets) or "nobody"
    raise BridgeError(f'"{ctx.agent_name}" cannot hand over to "{name}", but to: {known}')


def _tree(ctx: Context) -> AgentTree:
    """The runner's tree; of an agent that is run without a runner, what is below it."""
    return ctx.scope.value(AGENT_TREE) or AgentTree(ctx.agent)


def _instruction(ctx: Context, targets: Sequence[AnyAgent]) -> str:
    described = [f"- {target.name}: {target.description or 'no description'}" for target in targets]
    parent = _tree(ctx).parent(ctx.agent_name)
    lines = [
        "You may hand the conversation over to one of these agents:",
        *described,
        f"If one of them is better suited to answer than you are, call {TRANSFER} with its name, "
        "and say nothing besides. Otherwise answer yourself.",
    ]
    if parent is not None and parent in targets:
        lines.append(f"If neither you nor they fit, hand over to {parent.name}.")

    return "\n".join(lines)
