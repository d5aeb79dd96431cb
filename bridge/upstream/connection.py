"""One upstream's connection: made when needed, remade when lost, closed from any task.

Each event loop that uses it has a conversation of its own with the upstream, and keeps it.
Calls run in their callers' tasks. A call is repeated once, and only if it provably did not run;
otherwise the caller hears that its outcome is unknown. Failures are told apart by type and code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.errors import ToolError, UpstreamUnavailable
from bridge.telemetry import log
from bridge.upstream.channel import (
    NO_OPTIONS,
    ChannelError,
    Limits,
    Notify,
    Options,
    Params,
    RpcError,
)
from bridge.upstream.dial import dial
from bridge.upstream.failures import describe, did_not_run, is_doubtful, to_error
from bridge.upstream.link import Link
from bridge.upstream.news import NEWS, News, told
from bridge.upstream.owner import Owner, PerLoop
from bridge.upstream.place import Place
from bridge.upstream.protocol import ACKNOWLEDGED, TOOLS_CHANGED, Era
from bridge.upstream.status import UpstreamStatus
from bridge.upstream.target import Target

T = TypeVar("T")


class Connection:
    """The one way to an upstream, shared by everybody who calls it.

    `on_connected` is called with each new link, `on_tools_changed` without arguments when the
    tools may have changed, `on_news` with the method and params of each notification that a list
    or a followed resource changed; all in the event loop that the news came in.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        connect_timeout: float = 10.0,
        limits: Limits | None = None,
        era: Era | None = None,
        client: Caller | None = None,
    ) -> None:
        """`era` is one that is known beforehand; otherwise the server is asked, once.

        `client` is whose connection this is, if it is one client's alone: a legacy server is told
        what it can be asked, and asks it.
        """
        self.name = name
        self.target = target
        self.connect_timeout = connect_timeout
        self.era = era
        self.client = client
        self.limits = limits or Limits()
        self._begin()

    def _begin(self) -> None:
        """Begin without anything alive: new, or unpickled."""
        self.on_connected: list[Callable[[Link], None]] = []
        self.on_tools_changed: list[Callable[[], None]] = []
        self.on_news: list[Notify] = []
        self._news = PerLoop(partial(News, self.name, self.link, self.request, self._notified))
        self._places = PerLoop(Place)
        self._era: Era | None = self.era
        self._is_closed = False

    def __getstate__(self) -> dict[str, Any]:
        """What survives a copy to another process: where to connect, nothing that is alive."""
        kept = ("name", "target", "connect_timeout", "limits", "era", "client")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew from what survived."""
        self.__dict__.update(state)
        self._begin()

    async def link(self) -> Link:
        """This loop's live link; connects if there is none, at most once at a time.

        Raises:
            UpstreamUnavailable: It cannot be made now; says why and when the next attempt is.
        """
        return self._live() or await self._connect(self._places.here())

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request; once more if it provably did not run, and only then.

        Raises:
            UpstreamError: The server answered with a JSON-RPC error.
            UpstreamUnavailable: The request did not run.
            OutcomeUnknown: It was sent and no answer came.
        """
        link = self._live() or await self.link()
        try:
            return await link.request(method, params, options)
        except (RpcError, ChannelError) as exc:
            if not did_not_run(exc):
                raise self._error(exc, method, link) from exc

        link = await self._another(link)
        try:
            return await link.request(method, params, options)
        except (RpcError, ChannelError) as exc:
            raise self._error(exc, method, link) from exc

    async def pinned(self, work: Callable[[Link], Awaitable[T]], what: str) -> T:
        """Do harmless work on one link; if that link is lost on the way, once more from its start.

        Raises:
            ToolError: As `request`, for the second failure.
        """
        link = await self.link()
        try:
            return await work(link)
        except (RpcError, ChannelError) as exc:
            if not did_not_run(exc) and (link.is_open or isinstance(exc, RpcError)):
                raise to_error(self.name, self.target, exc, what) from exc

        link = await self._another(link)
        try:
            return await work(link)
        except (RpcError, ChannelError) as exc:
            raise to_error(self.name, self.target, exc, what) from exc

    async def subscribe(self, uri: str) -> None:
        """Hear of changes of one resource, in `on_news`; as often as it is to be unsubscribed.

        Raises:
            ToolError: As `request`.
        """
        await self._news.here().subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Hear of it no more, if nobody else subscribed to it; never raises."""
        await self._news.here().unsubscribe(uri)

    def beside(self, link: Link, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `work`, which must not raise, in the task that owns this link, and as long as that.

        It goes on when its caller goes. False if the link is closing.
        """
        owner = self._places.here().owner
        return owner is not None and owner.link is link and owner.start(work)

    def stop(self) -> None:
        """Ask everything in this event loop to close, without waiting; it is used no more."""
        self._is_closed = True
        self._places.here().stop()

    async def aclose(self) -> None:
        """Close everything, from any task, any number of times; bounded in time.

        What lives in other event loops is closed by them, soon.
        """
        self._is_closed = True
        self._places.elsewhere(Place.stop)
        await self._places.here().close()

    def status(self, problems: tuple[str, ...] = ()) -> UpstreamStatus:
        """How this upstream is now, in this event loop."""
        status = partial(UpstreamStatus, self.name, str(self.target), problems=problems)
        here = self._places.peek() or Place()
        owner = here.owner
        if owner is not None and owner.link is not None and owner.link.is_open:
            link = owner.link
            server = f"{link.server.get('name', '')} {link.server.get('version', '')}".strip()
            return status("ready", link.transport, link.era, link.protocol_version, server)

        if here.reason:
            return status("failed", reason=here.reason, next_attempt=here.pause)

        return status("connecting" if owner is not None and owner.is_connecting else "idle")

    @property
    def known_era(self) -> Era | None:
        """The era that the server spoke when it was last connected, or that was given; or None."""
        return self._era

    @property
    def is_over(self) -> bool:
        """Whether nothing of it lives in this event loop."""
        return self._places.here().is_over

    @property
    def pause(self) -> float:
        """How long to wait, in seconds, before the next attempt to connect makes sense."""
        return self._places.here().pause

    def _live(self) -> Link | None:
        """This loop's link, if it can be used."""
        owner = self._places.here().owner
        link = None if owner is None else owner.link
        return link if link is not None and link.channel.is_open else None

    async def _connect(self, here: Place) -> Link:
        if self._is_closed:
            raise UpstreamUnavailable(f'upstream "{self.name}" is closed')

        owner = here.owner
        if owner is None or not owner.is_connecting:
            if here.pause > 0:
                raise UpstreamUnavailable(
                    f'upstream "{self.name}" is not available: {here.reason}; '
                    f"next attempt in {here.pause:.1f} s"
                )

            here.let_go(owner)
            here.owner = owner = self._new_owner(here)

        try:
            link = await owner.connected()
        except Exception as exc:
            reason = self._reason(here, exc)
            raise UpstreamUnavailable(f'upstream "{self.name}" is not available: {reason}') from exc

        self._era = link.era
        return link

    def _new_owner(self, here: Place) -> Owner:
        here.words = ""
        opened = partial(
            dial,
            self.target,
            self._notified,
            self.limits,
            remembered=self._era,
            probe_seconds=self.connect_timeout / 2,
            on_silence=here.hear,
            client=self.client,
        )
        attend, failed = partial(self._attend, here), partial(self._failed, here)
        return Owner(opened, attend, failed, self.connect_timeout)

    def _failed(self, here: Place, owner: Owner, exc: Exception) -> None:
        """Count one failed attempt once, however many callers waited for it."""
        if here.owner is owner:
            here.failed(self._reason(here, exc))
            log.warning('upstream "%s": %s', self.name, here.reason)

    def _reason(self, here: Place, exc: Exception) -> str:
        return self.target.without_secrets(f"{describe(exc)}{here.words}")

    async def _another(self, link: Link) -> Link:
        """Let go of this very link (a newer one, made meanwhile, stays) and take the next."""
        here = self._places.here()
        if here.owner is not None and here.owner.link is link:
            here.stop()

        return await self.link()

    def _notified(self, method: str, params: Params) -> None:
        if method == ACKNOWLEDGED:
            self._news.here().acknowledged()
        elif method == TOOLS_CHANGED:
            for tell in self.on_tools_changed:
                tell()

        if method in NEWS and self.on_news:
            news = told(params)
            for take in list(self.on_news):
                take(method, news)

    async def _attend(self, here: Place, link: Link) -> None:
        """Beside an open link: hear of changes, which the modern era wants asked for."""
        self._era = link.era
        here.succeeded()
        for tell in self.on_connected:
            tell(link)

        if self.on_tools_changed or self.on_news:
            await self._news.here().attend(link)

    def _error(self, exc: RpcError | ChannelError, method: str, link: Link) -> ToolError:
        """What the caller hears; and if it is a sign of other tools, they are listed anew."""
        if is_doubtful(link, method, exc) and self._places.here().doubts():
            self._notified(TOOLS_CHANGED, {})

        return to_error(self.name, self.target, exc, method)
