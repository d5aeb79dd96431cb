"""An MCP server, seen as a toolset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool, Toolset
from bridge.errors import ConfigError, ToolError, ToolsetError
from bridge.telemetry import log
from bridge.tools.checked import CheckedToolset
from bridge.tools.closing import Closing
from bridge.tools.gate import Provider
from bridge.tools.toolsets import (
    Composable,
    ConfirmedToolset,
    FilteredToolset,
    PrefixedToolset,
    check_confirm,
)
from bridge.upstream.channel import Limits
from bridge.upstream.connection import Connection
from bridge.upstream.keeper import Keeper
from bridge.upstream.library import Library
from bridge.upstream.listed import Listing
from bridge.upstream.media import Media
from bridge.upstream.sessions import Policy, Sessions
from bridge.upstream.status import UpstreamStatus
from bridge.upstream.target import Target, to_target

ToolFilter: TypeAlias = Sequence[str] | Callable[[ReadonlyContext, Tool], bool]
OnUnavailable: TypeAlias = Literal["raise", "skip"]


class MCPToolset(Composable, Closing):
    """The tools of one MCP server: listed when first asked for, and again when they change.

    `target` is a URL, a command as a list of arguments, or a `Connection` of the caller's, which
    is borrowed: never closed here, never replaced. `tool_filter` is a list of globs on the
    server's own names, or `predicate(ctx, tool) -> bool`. `require_confirmation` is True, or a
    provider `(name, args) -> bool`. `on_unavailable="skip"` offers nothing while the server
    cannot be reached; "raise" says so. `media` is what an agent's model gets of pictures and
    sounds in answers: "text" describes them, "parts" sends them along, "artifacts" saves them
    and tells their names. `session` is who shares a session with whom, `most_sessions` and
    `session_idle_seconds` bound clients' own; see `Sessions`.

    Use it as `async with MCPToolset(…) as toolset:`, or call `aclose()`, from any task.
    """

    def __init__(
        self,
        target: str | Sequence[str] | Target | Connection,
        *,
        name: str = "mcp_tool_set",
        tool_filter: ToolFilter | None = None,
        tool_name_prefix: str | None = None,
        require_confirmation: bool | Provider = False,
        on_unavailable: OnUnavailable = "raise",
        media: Media = "text",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 60.0,
        connect_timeout: float = 10.0,
        limits: Limits | None = None,
        session: Policy = "auto",
        most_sessions: int = 100,
        session_idle_seconds: float = 600.0,
    ) -> None:
        """Raises ConfigError if the target, or what is to be done with it, makes no sense."""
        _refuse_unknown("on_unavailable", on_unavailable, get_args(OnUnavailable))
        _refuse_unknown("media", media, get_args(Media))
        _refuse_unknown("session", session, get_args(Policy))
        check_confirm("require_confirmation", require_confirmation)
        self._is_borrowed = isinstance(target, Connection)
        if not isinstance(target, Connection):
            found = to_target(target, env=env, headers=headers)
            target = Connection(name, found, connect_timeout=connect_timeout, limits=limits)

        self.connection: Connection = target
        self.sessions = Sessions(self.connection, session, most_sessions, session_idle_seconds)
        self._on_unavailable = on_unavailable
        self._listing = Listing(self.connection, timeout, media, self.sessions)
        self.library = Library(self.connection, timeout)
        globs = () if tool_filter is None or callable(tool_filter) else tool_filter
        self._checked = CheckedToolset(self._listing, {"tool_filter": globs})
        self._offered: Toolset = self._checked
        if tool_filter is not None:
            self._offered = FilteredToolset(self._offered, tool_filter)

        if require_confirmation is not False:
            self._offered = ConfirmedToolset(self._offered, require_confirmation)

        if tool_name_prefix:
            self._offered = PrefixedToolset(self._offered, tool_name_prefix)

    @property
    def name(self) -> str:
        """The upstream's name."""
        return self.connection.name

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called, without arguments, when the server says that its tools changed."""
        return self.connection.on_tools_changed

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        """The tools on offer; connects and lists if need be.

        Raises:
            ToolsetError: The server cannot be reached, or its list cannot be read.
        """
        try:
            return await self._offered.tools(ctx)
        except ToolError as exc:
            if self._on_unavailable == "raise":
                raise ToolsetError(str(exc)) from exc

            log.warning('toolset "%s" is left out: %s', self.name, exc)
            return ()

    async def keep(self, on_change: Callable[[], None]) -> None:
        """Stay connected, with growing pauses where that fails, until cancelled.

        `on_change` is called whenever what the server offers may have changed: it came, it
        went, or it said so.
        """
        await Keeper(self.connection, self._listing, self.library, on_change).run()

    def status(self) -> UpstreamStatus:
        """How the server is now."""
        problems = *self._checked.problems, *self.library.problems
        return replace(self.connection.status(problems), session=self.sessions.policy_chosen)

    async def aclose(self) -> None:
        """Close the connection, unless it is borrowed; from any task, any number of times.

        Clients' own sessions are closed in any case.
        """
        await self.sessions.aclose()
        if not self._is_borrowed:
            await self.connection.aclose()


def _refuse_unknown(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises ConfigError if the parameter has a value that would be taken for another."""
    if value not in known:
        raise ConfigError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
