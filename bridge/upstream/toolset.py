"""An MCP server, seen as a toolset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import anyio

from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool, Toolset
from bridge.errors import ToolError, ToolsetError, UpstreamUnavailable
from bridge.telemetry import log
from bridge.tools.gate import Provider
from bridge.tools.toolsets import Composable, ConfirmedToolset, FilteredToolset, PrefixedToolset
from bridge.upstream.channel import Limits
from bridge.upstream.connection import Connection, describe
from bridge.upstream.link import Link
from bridge.upstream.listing import list_tools, usable
from bridge.upstream.media import Media
from bridge.upstream.status import UpstreamStatus
from bridge.upstream.target import Target, to_target
from bridge.upstream.tool import MCPTool, tools_from

ToolFilter: TypeAlias = Sequence[str] | Callable[[ReadonlyContext, Tool], bool]
SETTLED_SECONDS = 10.0
DEBOUNCE_SECONDS = 0.5


class MCPToolset(Composable):
    """The tools of one MCP server: listed when first asked for, and again when they change.

    `target` is a URL, a command as a list of arguments, or a `Connection` of the caller's, which
    is borrowed: never closed here, never replaced. `tool_filter` is a list of globs on the
    server's own names, or `predicate(ctx, tool) -> bool`. `require_confirmation` is True, or a
    provider `(name, args) -> bool`. `on_unavailable="skip"` offers nothing while the server
    cannot be reached; "raise" says so. `media` is what an agent's model gets of pictures and
    sounds in answers: "text" describes them, "parts" sends them along, "artifacts" saves them
    and tells their names.

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
        on_unavailable: Literal["raise", "skip"] = "raise",
        media: Media = "text",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 60.0,
        connect_timeout: float = 10.0,
        limits: Limits | None = None,
    ) -> None:
        self._is_borrowed = isinstance(target, Connection)
        if not isinstance(target, Connection):
            found = to_target(target, env=env, headers=headers)
            target = Connection(name, found, connect_timeout=connect_timeout, limits=limits)

        self.connection: Connection = target
        self._on_unavailable = on_unavailable
        self._listing = _Listing(self.connection, timeout, media)
        self._offered: Toolset = self._listing
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
        await _Keeper(self.connection, self._listing, on_change).run()

    def status(self) -> UpstreamStatus:
        """How the server is now."""
        return self.connection.status(tuple(self._listing.problems))

    async def aclose(self) -> None:
        """Close the connection, unless it is borrowed; from any task, any number of times."""
        if not self._is_borrowed:
            await self.connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Listing:
    """The server's tools under their own names; the same tuple as long as nothing changed."""

    def __init__(self, connection: Connection, timeout: float | None, media: Media) -> None:
        self.name = connection.name
        self.problems: list[str] = []
        self._connection = connection
        self._timeout = timeout
        self._media = media
        self._tools: tuple[MCPTool, ...] = ()
        self._definitions: list[Any] | None = None
        self._listed_on: Link | None = None
        self._changes = 0
        self._kept: ToolError | bool = False
        connection.on_tools_changed.append(self._outdate)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("name", "_connection", "_timeout", "_media")}
        fresh: dict[str, Any] = {"problems": [], "_tools": (), "_changes": 0, "_kept": False}
        return {**kept, **fresh, "_definitions": None, "_listed_on": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connection.on_tools_changed.append(self._outdate)

    async def tools(self, ctx: ReadonlyContext | None) -> Sequence[MCPTool]:
        """The tools; where a keeper sees to them, what it last found, without waiting."""
        if isinstance(self._kept, ToolError):
            raise self._kept

        return self._tools if self._kept else await self.refreshed()

    def keep(self, found: ToolError | bool) -> None:
        """What a keeper knows: True (listed), why not, or False (nobody keeps this any more)."""
        self._kept = found

    async def refreshed(self) -> Sequence[MCPTool]:
        """The tools as they are now; connects and lists if need be."""
        if await self._connection.link() is not self._listed_on:
            await self._connection.pinned(self._list, "the listing")

        return self._tools

    async def _list(self, link: Link) -> None:
        changes = self._changes
        definitions = await list_tools(link, self._timeout)
        if changes == self._changes:  # else one was announced meanwhile, and the next asks again
            self._listed_on = link

        if definitions != self._definitions:
            kept, self.problems = usable(definitions)
            self._tools = tools_from(self._connection, kept, self._timeout, self._media)
            self._definitions = definitions

    def _outdate(self) -> None:
        self._changes += 1
        self._listed_on = None


class _Keeper:
    """Keeps one upstream connected and listed."""

    def __init__(
        self, connection: Connection, listing: _Listing, on_change: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._listing = listing
        self._on_change = on_change
        self._outdated = anyio.Event()
        self._crashes = 0

    async def run(self) -> None:
        self._connection.on_tools_changed.append(self._wake)
        self._listing.keep(UpstreamUnavailable(f'upstream "{self._connection.name}" is connecting'))
        try:
            while True:
                await self._once()
        finally:
            self._listing.keep(False)
            self._connection.on_tools_changed.remove(self._wake)

    async def _once(self) -> None:
        started = anyio.current_time()
        try:
            await self._listing.refreshed()
            link = await self._connection.link()
        except Exception as exc:  # whatever is wrong with one upstream is that upstream's alone
            failure = exc if isinstance(exc, ToolError) else ToolError(describe(exc))
            self._listing.keep(failure)
            self._on_change()
            await anyio.sleep(max(self._connection.pause, 0.1))
            return

        self._outdated = anyio.Event()
        self._listing.keep(True)
        self._on_change()
        await self._until_outdated(link)
        if link.is_open:
            await anyio.sleep(DEBOUNCE_SECONDS)
        elif anyio.current_time() - started < SETTLED_SECONDS:
            # It came and went at once: a server that crashes must not be started in a hurry.
            self._crashes = min(self._crashes + 1, 5)
            await anyio.sleep(2.0**self._crashes / 2)
        else:
            self._crashes = 0

    async def _until_outdated(self, link: Link) -> None:
        async with anyio.create_task_group() as tasks:

            async def lost() -> None:
                await link.channel.wait_closed()
                tasks.cancel_scope.cancel()

            tasks.start_soon(lost)
            await self._outdated.wait()
            tasks.cancel_scope.cancel()

    def _wake(self) -> None:
        self._outdated.set()
