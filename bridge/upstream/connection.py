"""One upstream's connection: made when needed, remade when lost, closed from any task.

Calls run in their callers' tasks. A call is repeated once, and only if it provably did not run;
otherwise the caller hears that its outcome is unknown. Failures are told apart by type and code.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import anyio

from bridge.core.content import Result
from bridge.errors import OutcomeUnknown, Overloaded, ToolError, UpstreamError, UpstreamUnavailable
from bridge.telemetry import log
from bridge.upstream.channel import (
    NO_OPTIONS,
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    Limits,
    Options,
    Params,
    RpcError,
)
from bridge.upstream.dial import dial
from bridge.upstream.link import Link
from bridge.upstream.owner import Owner
from bridge.upstream.protocol import TOOLS_CHANGED, UNSUPPORTED_VERSION, Era
from bridge.upstream.status import UpstreamStatus
from bridge.upstream.target import Target

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0

T = TypeVar("T")


class Connection:
    """The one way to an upstream, shared by everybody who calls it."""

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        connect_timeout: float = 10.0,
        limits: Limits | None = None,
        era: Era | None = None,
    ) -> None:
        """`era` is one that is known beforehand; otherwise the server is asked, once."""
        self.name = name
        self.target = target
        self.connect_timeout = connect_timeout
        self.era = era
        self.limits = limits or Limits()
        self.on_tools_changed: list[Callable[[], None]] = []
        self._forget()

    def _forget(self) -> None:
        """Begin without anything alive: new, unpickled, or in another event loop."""
        self._owner: Owner | None = None
        self._closing: set[Owner] = set()
        self._era: Era | None = self.era
        self._failures = 0
        self._reason = self._words = ""
        self._not_before = 0.0
        self._is_closed = False

    def __getstate__(self) -> dict[str, Any]:
        """What survives a copy to another process: where to connect, nothing that is alive."""
        kept = ("name", "target", "connect_timeout", "limits", "era")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew from what survived."""
        self.__dict__.update(state)
        self.on_tools_changed = []
        self._forget()

    async def link(self) -> Link:
        """The live link; connects if there is none, at most once at a time.

        Raises:
            UpstreamUnavailable: It cannot be made now; says why and when the next attempt is.
        """
        owner = self._owner
        if owner is not None and owner.is_foreign:
            self._forget()
        elif owner is not None and owner.link is not None and owner.link.is_open:
            return owner.link

        return await self._connect()

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request; once more if it provably did not run, and only then.

        Raises:
            UpstreamError: The server answered with a JSON-RPC error.
            UpstreamUnavailable: The request did not run.
            OutcomeUnknown: It was sent and no answer came.
        """
        link = await self.link()
        try:
            return await link.request(method, params, options)
        except (RpcError, ChannelError) as exc:
            if not _did_not_run(exc):
                raise self._error(exc, method) from exc

        link = await self._another(link)
        try:
            return await link.request(method, params, options)
        except (RpcError, ChannelError) as exc:
            raise self._error(exc, method) from exc

    async def pinned(self, work: Callable[[Link], Awaitable[T]], what: str) -> T:
        """Do harmless work on one link; if that link is lost on the way, once more from its start.

        Raises:
            ToolError: As `request`, for the second failure.
        """
        link = await self.link()
        try:
            return await work(link)
        except (RpcError, ChannelError) as exc:
            if not _did_not_run(exc) and (link.is_open or isinstance(exc, RpcError)):
                raise self._error(exc, what) from exc

        link = await self._another(link)
        try:
            return await work(link)
        except (RpcError, ChannelError) as exc:
            raise self._error(exc, what) from exc

    async def aclose(self) -> None:
        """Close everything, from any task, any number of times; bounded in time."""
        self._is_closed = True
        here = [one for one in (*self._closing, self._owner) if one and not one.is_foreign]
        self._owner = None
        for owner in here:
            owner.stop()

        for owner in here:
            await owner.closed()

        self._closing.clear()

    def status(self, problems: tuple[str, ...] = ()) -> UpstreamStatus:
        """How this upstream is now."""
        status = partial(UpstreamStatus, self.name, str(self.target), problems=problems)
        owner = self._owner
        if owner is not None and owner.link is not None and owner.link.is_open:
            link = owner.link
            server = f"{link.server.get('name', '')} {link.server.get('version', '')}".strip()
            return status("ready", link.transport, link.era, link.protocol_version, server)

        if self._reason:
            return status("failed", reason=self._reason, next_attempt=self.pause)

        return status("connecting" if owner is not None and owner.is_connecting else "idle")

    @property
    def pause(self) -> float:
        """How long to wait, in seconds, before the next attempt to connect makes sense."""
        return max(0.0, self._not_before - anyio.current_time())

    async def _connect(self) -> Link:
        if self._is_closed:
            raise UpstreamUnavailable(f'upstream "{self.name}" is closed')

        owner = self._owner
        if owner is None or not owner.is_connecting:
            if self.pause > 0:
                raise UpstreamUnavailable(
                    f'upstream "{self.name}" is not available: {self._reason}; '
                    f"next attempt in {self.pause:.1f} s"
                )

            self._let_go(owner)
            self._owner = owner = self._new_owner()

        try:
            return await owner.connected()
        except Exception as exc:
            reason = self.target.without_secrets(f"{describe(exc)}{self._words}")
            self._failed(owner, reason)
            raise UpstreamUnavailable(f'upstream "{self.name}" is not available: {reason}') from exc

    def _new_owner(self) -> Owner:
        self._words = ""
        opened = partial(
            dial,
            self.target,
            self._notified,
            self.limits,
            remembered=self._era,
            probe_seconds=self.connect_timeout / 2,
            on_silence=self._silent,
        )
        return Owner(opened, self._attend, self.connect_timeout)

    def _failed(self, owner: Owner, reason: str) -> None:
        """Count one failed attempt once, however many callers waited for it."""
        if self._owner is not owner:
            return

        self._let_go(owner)
        self._owner = None
        self._reason = reason
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        self._not_before = anyio.current_time() + longest * random.uniform(0.5, 1.0)
        log.warning('upstream "%s": %s', self.name, self._reason)

    def _silent(self, words: str) -> None:
        """Keep what a server said instead of an answer, for the reason that is about to be told."""
        self._words = words

    async def _another(self, link: Link) -> Link:
        """Let go of this very link (a newer one, made meanwhile, stays) and take the next."""
        if self._owner is not None and self._owner.link is link:
            self._let_go(self._owner)
            self._owner = None

        return await self.link()

    def _let_go(self, owner: Owner | None) -> None:
        self._closing = {one for one in self._closing if not one.is_over}
        if owner is not None:
            owner.stop()
            self._closing.add(owner)

    def _notified(self, method: str, params: Params) -> None:
        if method == TOOLS_CHANGED:
            for tell in self.on_tools_changed:
                tell()

    async def _attend(self, link: Link) -> None:
        """Beside an open link: hear of changes, which the modern era wants asked for."""
        self._era = link.era
        self._failures, self._reason, self._not_before = 0, "", 0.0
        if link.era == "legacy" or not link.announces_tools:
            return

        pause = FIRST_PAUSE
        while link.is_open:
            params = {"notifications": {"toolsListChanged": True}}
            try:
                await link.request("subscriptions/listen", params)
                pause = FIRST_PAUSE
            except (RpcError, ChannelError) as exc:
                log.info('upstream "%s" ended its subscription: %s', self.name, exc)

            await anyio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)
            self._notified(TOOLS_CHANGED, {})  # whatever changed meanwhile went unheard

    def _error(self, exc: RpcError | ChannelError, what: str) -> ToolError:
        where = f'upstream "{self.name}"'
        said = self.target.without_secrets(str(exc))
        if isinstance(exc, RpcError):
            return UpstreamError(f"{where}: {said}", exc.error, is_protocol_error=True)

        if isinstance(exc, ChannelBusy):
            return Overloaded(f"{where}: {said}")

        refused = isinstance(exc, HttpStatusError) and 400 <= exc.status < 500
        if refused or not exc.sent:
            return UpstreamUnavailable(f"{where} is not available: {said}")

        return OutcomeUnknown(f"{where}: {said}; outcome unknown: {what} may have run")


def _did_not_run(exc: RpcError | ChannelError) -> bool:
    """Whether a new link may be tried: nothing was sent, or a server of the other era refused."""
    if isinstance(exc, RpcError):
        return exc.code == UNSUPPORTED_VERSION

    return not exc.sent and not isinstance(exc, ChannelBusy)


def describe(exc: BaseException) -> str:
    """What went wrong, in one line; a group of errors by its first."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]

    return str(exc) or type(exc).__name__
