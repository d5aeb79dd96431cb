"""One conversation with a server, kept for several processes that serve the same clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.upstream.capabilities import wants
from bridge.upstream.channel import ChannelError, Limits, Message, Options, Params, RpcError
from bridge.upstream.dial import dial
from bridge.upstream.guest import Guest
from bridge.upstream.link import Link
from bridge.upstream.owner import Owner
from bridge.upstream.passing import Passed, Passing
from bridge.upstream.protocol import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE, Era
from bridge.upstream.seat import Seat
from bridge.upstream.target import Target

SOONER: Final = 0.95
"""The part of its time to connect after which the host gives up, so as to be first to say why."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """One server that conversations are kept with; `connect_timeout` is in seconds."""

    target: Target
    connect_timeout: float
    limits: Limits


class Conversation:
    """One conversation with a server, and the seats of the processes that take part."""

    def __init__(
        self,
        hosting: Hosting,
        told: Message | None,
        era: Era | None,
        on_end: Callable[[], object],
    ) -> None:
        """`told` is whose it is, if it is one client's alone: it then ends with the last seat."""
        self._hosting = hosting
        self._client = None if told is None else Guest(told, self._youngest)
        self._era = era
        self._on_end = on_end
        self._seats: list[Seat] = []
        self._joining = 0
        self._owner: Owner | None = None
        self._closing: list[Owner] = []
        self._followed: dict[str, list[Seat]] = {}
        self._following = anyio.Lock()
        self._level: str | None = None
        self._passing: Passing | None = None
        self._behind: set[Seat] = set()
        self.words = ""
        """What the server said instead of an answer, if nobody could connect."""

    @property
    def passes(self) -> bool:
        """Whether requests can be passed on."""
        return self._passing is not None

    async def link(self) -> Link:
        """The live link; connects if there is none, once for all who ask meanwhile.

        Raises:
            Exception: What went wrong while connecting.
        """
        owner = self._owner
        if owner is None or owner.is_over or not (owner.is_connecting or _is_open(owner)):
            owner = self._begin()

        return await owner.connected()

    @contextmanager
    def joining(self) -> Iterator[None]:
        """While a process is about to take part, nothing ends for want of anybody."""
        self._joining += 1
        try:
            yield
        finally:
            self._joining -= 1
            self._end_if_empty()

    def sit(self, seat: Seat) -> None:
        """A process takes part from now on."""
        channel = self._live().channel
        if not channel.is_open:
            raise ChannelError(channel.closed_because, sent=False)

        self._passing = channel if isinstance(channel, Passing) else None
        if not seat.is_gone:
            seat.table = self
            self._seats.append(seat)

    def leave(self, seat: Seat) -> None:
        """A process takes part no more; with the last one, a client's own conversation ends."""
        if seat in self._seats:
            self._seats.remove(seat)

        self.pace(seat, False)
        owner = self._owner
        if owner is not None and any(seat in who for who in self._followed.values()):
            owner.start(partial(self._unfollow_all, seat))

        self._end_if_empty()

    def pace(self, seat: Seat, is_behind: bool) -> None:
        """Have the server wait, if it can, while any process has not read what it should."""
        if is_behind and seat in self._seats:
            self._behind.add(seat)
        else:
            self._behind.discard(seat)

        if self._passing is not None:
            self._passing.listen(not self._behind)

    def doubt(self, seat: Seat) -> None:
        """The server ran nothing of what it was sent: whoever asks next gets a new link."""
        if seat in self._seats:
            self._let_go()

    def request(
        self, seat: Seat, method: str, params: Params, options: Options
    ) -> Awaitable[Result]:
        """Send one request, as it is; see `Channel.request`.

        What concerns all processes together is settled here: which resources are followed, and
        from which level on there are log messages.
        """
        link = self._live()
        if link.era == "legacy" and method in (SUBSCRIBE, UNSUBSCRIBE):
            return self._follow(seat, link, method, params, options)

        if link.era == "legacy" and method == SET_LEVEL:
            return self._set_level(link, params, options)

        return link.channel.request(method, params, options)

    def pass_on(self, request: bytes, caller: Caller | None) -> Passed:
        """Send one request unread; see `Passing.pass_on`."""
        if self._passing is None:
            raise ChannelError("the conversation with the server has ended", sent=False)

        return self._passing.pass_on(request, caller)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        await self._live().notify(method, params)

    async def aclose(self) -> None:
        """End it; bounded in time."""
        self._let_go()
        for owner in self._closing:
            await owner.closed()

    def _begin(self) -> Owner:
        self._let_go()
        hosting, self.words = self._hosting, ""
        dialled = partial(
            dial,
            hosting.target,
            self._told,
            hosting.limits,
            remembered=self._era,
            probe_seconds=hosting.connect_timeout / 2,
            on_silence=self._hear,
            client=self._client,
        )
        seconds = hosting.connect_timeout * SOONER
        self._owner = Owner(dialled, self._attend, lambda owner, exc: None, seconds)
        return self._owner

    def _let_go(self) -> None:
        """Let go of the link, and of every seat that has it."""
        self._closing = [one for one in self._closing if not one.is_over]
        seats, self._seats = self._seats, []
        owner, self._owner = self._owner, None
        self._passing = None
        self._behind.clear()
        if owner is not None:
            why = "" if owner.link is None else owner.link.channel.closed_because
            owner.stop()
            self._closing.append(owner)
            for seat in seats:
                seat.end(why or "the conversation with the server was closed")

    def _end_if_empty(self) -> None:
        if self._client is not None and not self._seats and not self._joining:
            self._let_go()
            self._on_end()

    def _live(self) -> Link:
        owner = self._owner
        if owner is None or owner.link is None:
            raise ChannelError("the conversation with the server has ended", sent=False)

        return owner.link

    async def _attend(self, link: Link) -> None:
        """Beside an open link, until it is lost: then every seat hears of it."""
        self._era, self._level = link.era, None
        self._followed.clear()
        try:
            await link.channel.wait_closed()
        finally:
            if self._owner is not None and self._owner.link is link:
                self._let_go()

    def _told(self, method: str, params: Params) -> None:
        for seat in self._seats:
            seat.write({"jsonrpc": "2.0", "method": method, "params": params})

    def _hear(self, words: str) -> None:
        self.words = words

    def _youngest(self) -> Seat | None:
        return self._seats[-1] if self._seats else None

    async def _follow(
        self, seat: Seat, link: Link, method: str, params: Params, options: Options
    ) -> Result:
        """The server is asked by the first that follows a resource, and by the last that did."""
        uri = str(params.get("uri"))
        answer: Result = {}
        async with self._following:
            who = self._followed.setdefault(uri, [])
            if method == SUBSCRIBE and not who:
                answer = await link.channel.request(method, params, options)

            if method == SUBSCRIBE:
                who.append(seat)
            elif seat in who:
                who.remove(seat)
                if not who:
                    answer = await link.channel.request(method, params, options)

        return answer

    async def _unfollow_all(self, seat: Seat) -> None:
        for uri, who in list(self._followed.items()):
            while seat in who:
                try:
                    params: Params = {"uri": uri}
                    options = Options(timeout=self._hosting.connect_timeout)
                    await self._follow(seat, self._live(), UNSUBSCRIBE, params, options)
                except (RpcError, ChannelError):
                    return  # it tells more than anybody wants to hear: that does no harm

    async def _set_level(self, link: Link, params: Params, options: Options) -> Result:
        """The most talkative level that anybody wants; each client gets what it wants of that."""
        level = params.get("level")
        if wants(self._level, level):
            return {}

        answer = await link.channel.request(SET_LEVEL, params, options)
        self._level = str(level)
        return answer


def _is_open(owner: Owner) -> bool:
    return owner.link is not None and owner.link.is_open
