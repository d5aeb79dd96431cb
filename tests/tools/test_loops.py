"""Leaving a loop."""

from __future__ import annotations

from bridge.core.context import ToolContext, local_context
from bridge.tools.loops import exit_loop


async def test_leaving_a_loop_ends_it_and_the_summing_up_and_says_nothing() -> None:
    ctx = ToolContext(local_context(), "c")

    assert await exit_loop.run(ctx, {}) == {}
    assert (ctx.actions.escalate, ctx.actions.skip_summarization) == (True, True)
    assert exit_loop.name == "exit_loop"
    assert not hasattr(exit_loop, "display_result_on_skip_summarization")
