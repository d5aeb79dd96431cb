"""One run of one agent: what may step in before it, the agent itself, and after it (§15.5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from typing import TypeAlias

from bridge.agents.callbacks import Own, Stage, Stages, first, stages_of
from bridge.agents.contract import AnyAgent
from bridge.agents.events import USER, own_event
from bridge.agents.plugin import NO_PLUGINS, PLUGINS
from bridge.calls.streams import closing
from bridge.core.actions import EventActions
from bridge.core.content import Content
from bridge.core.context import CallbackContext, Context, InvocationContext
from bridge.core.delta import ContextDelta, InvocationDelta
from bridge.core.event import Event

Body: TypeAlias = Callable[[Context, Stages], AsyncIterator[Event]]


async def run_agent(
    agent: AnyAgent, own: Own, ctx: InvocationContext | Context, body: Body
) -> AsyncGenerator[Event]:
    """Run `agent` on a copy of the invocation, whose end is its own affair (§13.9).

    What is answered in the agent's place ends its run; so does a body that ends the invocation,
    and then nothing is asked afterwards.
    """
    here = Context.promote(ctx, ContextDelta(invocation=InvocationDelta(agent=agent)))
    stages = stages_of(own, here.scope.value(PLUGINS) or NO_PLUGINS)
    before = await _stage_event(here, stages.before_agent)
    if before is not None:
        if before.content is not None:
            here.end_invocation()

        yield before

    if here.ended:
        return

    async with closing(body(here, stages)) as events:
        async for event in events:
            yield event if event.author else replace(event, author=_author_of(here, event))

    if here.ended:
        return

    after = await _stage_event(here, stages.after_agent)
    if after is not None:
        yield after


async def _stage_event(ctx: Context, stage: Stage) -> Event | None:
    """What a stage says or files, as an event; None where it does neither."""
    if not stage:
        return None

    actions = EventActions()
    content = await first(stage, Content, CallbackContext(ctx, actions))
    if content is None and not actions.state_delta:
        return None

    return own_event(ctx, content=content, actions=actions)


def _author_of(ctx: Context, event: Event) -> str:
    is_users = event.content is not None and event.content.role == USER
    return USER if is_users else ctx.agent_name
