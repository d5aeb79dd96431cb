"""What a model is told before the conversation: its instruction, and who it is (§4.1)."""

from __future__ import annotations

import inspect

from bridge.agents.contract import Instruction
from bridge.core.context import Context, ReadonlyContext
from bridge.core.instructions import append_instructions
from bridge.core.request import LLMRequest


async def instruct(ctx: Context, instruction: Instruction, request: LLMRequest) -> None:
    """Tell the model what the agent is to do; a function is asked anew each time."""
    told = instruction if isinstance(instruction, str) else instruction(ReadonlyContext(ctx))
    append_instructions(request, await told if inspect.isawaitable(told) else told)


def introduce(name: str, description: str, request: LLMRequest) -> None:
    """Tell the model which agent it speaks for."""
    about = f' What you are for: "{description}".' if description else ""
    append_instructions(request, f'You are an agent with the internal name "{name}".{about}')
