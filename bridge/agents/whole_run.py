"""What happens around the agents of one run: what is said is seen, kept and passed on (§15.1).

The order is: plugins see an event, it is stored, it is yielded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import anyio

from bridge.agents.callbacks import first, overridden
from bridge.agents.events import USER, own_event
from bridge.agents.plugin import Plugins
from bridge.agents.run_config import RunConfig
from bridge.calls.streams import closing
from bridge.core.actions import EventActions
from bridge.core.content import Content, Part
from bridge.core.context import Context
from bridge.core.delta import ContextDelta, InvocationDelta
from bridge.core.event import Event
from bridge.core.stores import SessionService

Speaks: TypeAlias = Callable[[Context], AsyncIterator[Event]]

AFTERWARDS: Final = 10.0
"""Seconds that all `after_run` hooks together may take."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Where one run's events go, and who sees them on the way."""

    sessions: SessionService
    plugins: Plugins

    async def take_in(
        self, ctx: Context, said: Content | None, state_delta: Mapping[str, Any]
    ) -> tuple[Context, Event | None]:
        """Store what the user says; returns the run's context, and the event if there is one."""
        if said is None:
            return ctx, None

        replaced = await first(self._stage("on_user_message"), Content, ctx, said)
        if replaced is not None:
            said = replaced
            ctx = ctx.with_delta(ContextDelta(invocation=InvocationDelta(user_content=said)))

        if isinstance(ctx.run_config, RunConfig) and ctx.run_config.save_input_blobs:
            said = await _without_blobs(ctx, said)

        actions = EventActions(state_delta=dict(state_delta))
        event = own_event(ctx, author=USER, content=said, actions=actions)
        await self._append(ctx, event)
        return ctx, event

    async def events(self, ctx: Context, speak: Speaks) -> AsyncIterator[Event]:
        """What plugins and agents say, each event stored before it is yielded.

        Raises:
            ExceptionGroup: Several plugins failed when the run was over.
            Exception: What an agent or a plugin raises.
        """
        try:
            instead = await self.answered_before(ctx)
            if instead is not None:
                yield instead
                return

            async with closing(speak(ctx)) as events:
                async for event in events:
                    yield await self.kept(ctx, event)
        finally:
            await self.over(ctx)

    async def answered_before(self, ctx: Context) -> Event | None:
        """What a plugin answers in the agents' place, stored; None where none does."""
        instead = await first(self._stage("before_run"), Content, ctx)
        if instead is None:
            return None

        event = own_event(ctx, content=instead)
        await self._append(ctx, event)
        return event

    async def kept(self, ctx: Context, event: Event) -> Event:
        """The event as the plugins leave it, stored unless it is a piece of one."""
        stage = self._stage("on_event")
        event = (await first(stage, Event, ctx, event) if stage else None) or event
        if not event.partial:
            await self._append(ctx, event)

        return event

    async def over(self, ctx: Context) -> None:
        """Let every plugin see the end of the run, whatever the others do.

        Raises:
            ExceptionGroup: Several plugins failed; a single failure is raised as it is.
        """
        failures: list[Exception] = []
        with anyio.move_on_after(AFTERWARDS, shield=True):
            for hook in self._stage("after_run"):
                try:
                    await hook(ctx)
                except Exception as exc:  # a plugin is a stranger's code
                    failures.append(exc)

        if len(failures) == 1:
            raise failures[0]

        if failures:
            raise ExceptionGroup("several plugins failed when the run was over", failures)

    async def _append(self, ctx: Context, event: Event) -> None:
        try:
            await self.sessions.append_event(ctx.session, event)
        except Exception as exc:
            exc.add_note(f'event "{event.id}" by "{event.author}" was not stored')
            raise

    def _stage(self, name: str) -> tuple[Callable[..., Any], ...]:
        return overridden(self.plugins.members, name)


async def _without_blobs(ctx: Context, said: Content) -> Content:
    """Keep the bytes that were sent as artifacts, and say in their place where they are."""
    if ctx.invocation.artifacts is None:
        return said

    parts = list(said.parts)
    for index, part in enumerate(parts):
        if part.inline_data is None:
            continue

        name = f"artifact_{ctx.invocation_id}_{index}"
        await ctx.artifacts.save(name, part)
        parts[index] = Part(text=f"Uploaded file: {name}. It is kept among the artifacts.")

    return replace(said, parts=tuple(parts))
