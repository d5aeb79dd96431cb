"""What changes while the server runs, and who is told."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.subscriptions import event_to_notification
from mcp_types import LoggingLevel

WATCHED = "test://watched-resource"
LEVELS: tuple[LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
PATIENCE = 1.0  # seconds a legacy session may take to be told


class World:
    """Lists that change, a watched resource, and the clients that want to hear of it.

    Modern clients listen on the bus; legacy ones are remembered by their session.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.has_extra_tool = False
        self.has_extra_prompt = False
        self.watched_version = 1
        self._sessions: dict[str, ServerSession] = {}
        self._watchers: set[str] = set()
        self._levels: dict[str, LoggingLevel] = {}

    def remember(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """A legacy session has begun; it hears of changed lists from now on."""
        self._sessions[_session_id(ctx)] = ctx.session

    def watch(self, ctx: ServerRequestContext[Any, Any], uri: str, wanted: bool) -> None:
        """A legacy session subscribes to a resource, or no longer."""
        change = self._watchers.add if wanted else self._watchers.discard
        change(f"{_session_id(ctx)} {uri}")

    def set_level(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel) -> None:
        """A legacy session wants log messages from this level on."""
        self._levels[_session_id(ctx)] = level

    async def log(
        self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel, text: str
    ) -> None:
        """Send a log message that belongs to this request, if its client wants it."""
        least = self._levels.get(_session_id(ctx), "debug")
        if LEVELS.index(level) >= LEVELS.index(least):
            await ctx.session.send_log_message(level, text, "everything", ctx.request_id)

    async def change_tools(self) -> None:
        """One tool comes, or goes again."""
        self.has_extra_tool = not self.has_extra_tool
        await self._announce(ToolsListChanged())

    async def change_prompts(self) -> None:
        """One prompt comes, or goes again."""
        self.has_extra_prompt = not self.has_extra_prompt
        await self._announce(PromptsListChanged())

    async def change_watched(self) -> None:
        """The watched resource gets a new text."""
        self.watched_version += 1
        await self._announce(ResourceUpdated(uri=WATCHED))

    async def _announce(self, event: ServerEvent) -> None:
        await self.bus.publish(event)
        notification = event_to_notification(event, {})
        for session_id, session in [*self._sessions.items()]:
            if isinstance(event, ResourceUpdated) and (
                f"{session_id} {event.uri}" not in self._watchers
            ):
                continue

            try:
                with anyio.fail_after(PATIENCE):
                    await session.send_notification(notification)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
                del self._sessions[session_id]  # it has gone without a word


def _session_id(ctx: ServerRequestContext[Any, Any]) -> str:
    """The HTTP session's id; a process that speaks over its standard streams has one session."""
    headers = getattr(ctx.request, "headers", {})
    return headers.get("mcp-session-id", "stdio")
