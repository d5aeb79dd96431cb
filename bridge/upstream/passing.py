"""Requests that are another process's: passed on, and their results brought back, unread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.upstream.between import result_number
from bridge.upstream.channel import ChannelError, Limits, Message
from bridge.upstream.correlator import CALLED_OFF, Correlator
from bridge.upstream.desk import Desk
from bridge.upstream.guest import Guest

Passed: TypeAlias = asyncio.Future[bytes | Result]
"""What gets a server's line with a result, or the result, if the line had to be read."""


@runtime_checkable
class Passing(Protocol):
    """A channel that passes requests of other processes on."""

    def pass_on(self, request: bytes, caller: Caller | None) -> Passed:
        """Send a request, of which `request` is all from its `method` on.

        What is returned raises what `Channel.request` does; cancelling it calls the request off.

        Raises:
            ChannelBusy: Too many requests are in flight.
        """
        ...

    def listen(self, listens: bool) -> None:
        """Take what the server writes, or let it wait; may be said again."""
        ...


class PassingCorrelator(Correlator):
    """A `Correlator` that also brings back, unread, what answers requests that were passed on."""

    def __init__(self, desk: Desk, limits: Limits) -> None:
        super().__init__(desk, limits)
        self._unread: set[int] = set()

    def pass_on(
        self,
        request: bytes,
        caller: Caller | None,
        put: Callable[[bytes], None],
        send: Callable[[Message], None],
    ) -> Passed:
        """Give a request a number, and `put` it on its way; `send` is for calling it off.

        Raises:
            ChannelBusy: Too many requests are in flight.
        """
        if len(self._waiting) >= self._limits.in_flight:
            raise self._busy()

        number = next(self._numbers)
        passed: Passed = asyncio.get_running_loop().create_future()
        self._waiting[number] = passed
        self._unread.add(number)
        if caller is not None:
            self._desk.callers[number] = caller

        passed.add_done_callback(partial(self._over, number, send))
        try:
            put(b'{"jsonrpc":"2.0","id":%d,%b' % (number, request))
        except ChannelError as exc:
            passed.set_exception(exc)

        return passed

    def deliver(self, line: bytes) -> bool:
        """Take one incoming line unread; False if it has to be read."""
        number = result_number(line) if self._unread else None
        if number not in self._unread or (future := self._future(number)) is None:
            return False

        future.set_result(line)
        return True

    def pause(self, number: int) -> None:
        """Stop the time of a request where it is measured; see `questions.Clock`."""
        super().pause(number)
        self._hold(number, True)

    def resume(self, number: int) -> None:
        """Let it go on."""
        super().resume(number)
        self._hold(number, False)

    def _hold(self, number: int, holds: bool) -> None:
        caller = self._desk.callers.get(number)
        if isinstance(caller, Guest):
            caller.hold(holds)

    def _over(self, number: int, send: Callable[[Message], None], passed: Passed) -> None:
        """The result came, or none will, or nobody wants it any more."""
        del self._waiting[number]
        self._unread.remove(number)
        self._desk.callers.pop(number, None)
        if passed.cancelled():
            self._tell_cancelled(number, CALLED_OFF, send)
