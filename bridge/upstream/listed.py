"""What a server lists, remembered as long as nothing says that it changed.

Each event loop has its own link to the server, so each knows for itself what was listed, and when.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from bridge.core.context import ReadonlyContext
from bridge.errors import ToolError
from bridge.upstream.channel import ChannelError
from bridge.upstream.connection import Connection
from bridge.upstream.link import Link
from bridge.upstream.listing import list_tools, usable
from bridge.upstream.media import Media
from bridge.upstream.owner import PerLoop
from bridge.upstream.sessions import Sessions
from bridge.upstream.tool import MCPTool, tools_from

UNHEARD_SECONDS = 60.0
"""How long a listing holds where the server would not, or might not, be heard of changes."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One answer to `tools/list`, and what was made of it."""

    definitions: list[Any] | None = None
    tools: tuple[MCPTool, ...] = ()
    problems: tuple[str, ...] = ()


NOTHING = Offer()


@dataclass(slots=True)
class Flight:
    """One listing on its way, for all who ask meanwhile; it knows what changes came before it."""

    link: Link
    number: int
    changes: int
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: Exception | None = field(
        default_factory=lambda: ChannelError("closed while it listed its tools", sent=False)
    )


@dataclass(slots=True)
class Seen:
    """What one event loop knows of the server's tools."""

    offer: Offer = NOTHING
    listed_on: Link | None = None
    listed_at: float = 0.0
    changes: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    is_wanted: bool = False
    flight: Flight | None = None
    started: int = 0
    landed: int = 0
    kept: ToolError | bool = False


class Listing:
    """The server's tools under their own names; the same tuple as long as nothing changed."""

    def __init__(
        self,
        connection: Connection,
        timeout: float | None,
        media: Media,
        sessions: Sessions | None = None,
    ) -> None:
        """`sessions` are who calls the tools; without, all share the one connection."""
        self.name = connection.name
        self._sessions = Sessions(connection, "shared") if sessions is None else sessions
        self.unheard_seconds = UNHEARD_SECONDS
        self._connection = connection
        self._timeout = timeout
        self._media = media
        self._begin()

    def _begin(self) -> None:
        self._seen = PerLoop(Seen)
        self._latest = NOTHING
        self._connection.on_connected.append(self._connected)
        self._connection.on_tools_changed.append(self._outdate)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("name", "unheard_seconds", "_connection", "_timeout", "_media", "_sessions")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def problems(self) -> tuple[str, ...]:
        """What the server lists and is not offered, one line each."""
        seen = self._seen.peek()
        return seen.offer.problems if seen is not None else ()

    async def tools(self, ctx: ReadonlyContext | None) -> Sequence[MCPTool]:
        """The tools; where a keeper sees to them, what it last found, without waiting."""
        seen = self._seen.here()
        if isinstance(seen.kept, ToolError):
            raise seen.kept

        return seen.offer.tools if seen.kept else await self.refreshed()

    def keep(self, found: ToolError | bool) -> None:
        """What a keeper knows: True (listed), why not, or False (nobody keeps this any more)."""
        self._seen.here().kept = found

    def awaited(self) -> anyio.Event:
        """What is set at the next change from now on."""
        seen = self._seen.here()
        seen.changed = anyio.Event()
        return seen.changed

    def holds_for(self, link: Link) -> float | None:
        """How many seconds a listing on this link may be trusted; None: until a change is heard.

        Over HTTP a server may be restarted with other tools without any link being lost. Only
        the modern subscription, which breaks then, tells of it.
        """
        is_heard = link.transport != "http" or (link.era == "modern" and link.announces_tools)
        return None if is_heard else self.unheard_seconds

    async def refreshed(self) -> Sequence[MCPTool]:
        """The tools as they are now; connects and lists if need be.

        A caller who stops waiting stops neither: the next one finds what came of it.
        """
        seen = self._seen.here()
        seen.is_wanted = True
        link = await self._connection.link()
        if not self._is_current(seen, link):
            await self._connection.pinned(self._list, "the listing")

        seen.is_wanted = False
        return seen.offer.tools

    def _is_current(self, seen: Seen, link: Link) -> bool:
        if seen.listed_on is not link:
            return False

        holds = self.holds_for(link)
        return holds is None or time.monotonic() - seen.listed_at < holds

    async def _list(self, link: Link) -> None:
        """Wait for a listing on this link that began after the latest change."""
        flight = self._flight(self._seen.here(), link)
        await flight.done.wait()
        if flight.failure is not None:
            raise flight.failure

    def _flight(self, seen: Seen, link: Link) -> Flight:
        """The listing under way; or one in the connection's task, where its callers may go.

        Raises:
            ChannelError: The link is closing.
        """
        flight = seen.flight
        if flight is not None and flight.link is link and flight.changes == seen.changes:
            return flight

        flight = Flight(link, seen.started + 1, seen.changes)
        if not self._connection.beside(link, partial(self._fly, seen, flight)):
            raise ChannelError("the connection is closing", sent=False)

        seen.flight, seen.started = flight, flight.number
        return flight

    async def _fly(self, seen: Seen, flight: Flight) -> None:
        try:
            offer = self._offer(await list_tools(flight.link, self._timeout))
            flight.failure = None
            if flight.number > seen.landed:  # a later one may have been faster
                self._land(seen, flight, offer)
        except Exception as exc:
            flight.failure = exc  # for those who wait; it is none of the connection's
        finally:
            if seen.flight is flight:
                seen.flight = None

            flight.done.set()

    def _land(self, seen: Seen, flight: Flight, offer: Offer) -> None:
        seen.offer, seen.landed, seen.is_wanted = offer, flight.number, False
        seen.listed_at = time.monotonic()
        # Where a change was announced meanwhile, the next who asks lists again.
        seen.listed_on = flight.link if flight.changes == seen.changes else None

    def _offer(self, definitions: list[Any]) -> Offer:
        """What is made of these definitions; the very same as before, if they are."""
        latest = self._latest
        if definitions == latest.definitions:
            return latest

        kept, problems = usable(definitions)
        tools = tools_from(self._sessions, kept, self._timeout, self._media)
        self._latest = offer = Offer(definitions, tools, tuple(problems))
        return offer

    def _connected(self, link: Link) -> None:
        """List at once if somebody wanted to and may be gone by now."""
        seen = self._seen.here()
        if seen.is_wanted:
            with suppress(ChannelError):
                self._flight(seen, link)

    def _outdate(self) -> None:
        seen = self._seen.here()
        seen.changes += 1
        seen.listed_on = None
        seen.changed.set()
