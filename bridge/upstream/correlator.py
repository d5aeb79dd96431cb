"""Matches answers that arrive on a stream to the requests that wait for them."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from bridge.core.content import Result
from bridge.core.rpc import INTERNAL_ERROR, rpc_error
from bridge.telemetry import log
from bridge.upstream.alarm import Alarm
from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    Limits,
    Message,
    Options,
    Params,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.desk import Desk

__all__ = ["Correlator", "Message", "result_of"]

CALLED_OFF: Final = "cancelled by the caller"
TIMED_OUT: Final = "timed out"

_Deadline: TypeAlias = tuple[float, str, float]
"""When a request's time is up, in the loop's time; its method, and the seconds it was given."""


class Correlator:
    """The requests of one channel that have no answer yet, and what else the server says.

    A request costs one future: no task, no cancel scope, and no timer, since one for the earliest
    deadline serves them all. Whatever ends the channel calls `fail_all`, so no caller ever waits
    for a conversation that is over.
    """

    def __init__(self, desk: Desk, limits: Limits) -> None:
        self._desk = desk
        self._limits = limits
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._progress: dict[int, Callable[[Params], None]] = {}
        self._deadlines: dict[int, _Deadline] = {}
        self._alarm = Alarm(self._expire)
        self._left: dict[int, float] = {}
        self.late_answers = 0

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(
        self,
        method: str,
        params: Params,
        options: Options,
        send: Callable[[Message], Awaitable[None] | None],
    ) -> Result:
        """Send a request with `send` and wait for its answer.

        `send` must not block; what it raises reaches the caller. For a request, never for a
        notification, it may return an awaitable, which is awaited before the answer is. When the
        caller is cancelled or the time is up, the server is told with `notifications/cancelled`
        and not waited for.

        Raises:
            RpcError: The server answered with an error.
            ChannelError: No answer came.
        """
        if len(self._waiting) >= self._limits.in_flight:
            raise self._busy()

        number = next(self._numbers)
        if options.on_progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
            self._progress[number] = options.on_progress

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting[number] = future
        if options.caller is not None:
            self._desk.callers[number] = options.caller

        if options.timeout is not None:
            when = loop.time() + options.timeout
            self._deadlines[number] = when, method, options.timeout
            self._alarm.at(when)

        try:
            sending = send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            if sending is not None:
                await _sent(sending, future)

            return await future
        except (asyncio.CancelledError, RequestTimeout) as exc:
            if method != "initialize":  # which must not be cancelled (MCP, cancellation)
                timed_out = isinstance(exc, RequestTimeout)
                self._tell_cancelled(number, TIMED_OUT if timed_out else CALLED_OFF, send)

            raise
        finally:
            del self._waiting[number]
            self._progress.pop(number, None)
            self._desk.callers.pop(number, None)
            self._deadlines.pop(number, None)

    def receive(self, message: Any) -> Message | None:
        """Take one incoming message; return what must be sent back at once, if anything.

        Answers wake their callers; what the server says or asks of itself goes over the desk.
        """
        if not isinstance(message, dict):
            log.warning("ignored a message that is not a JSON object")
            return None

        method = message.get("method")
        if method is None:
            self.answer(message)
            return None

        if "id" in message:
            return self._desk.asked(message)

        params = message.get("params")
        self._notification(method, params if isinstance(params, dict) else {})
        return None

    def answer(self, message: Message) -> None:
        """Take an answer: the caller who waits for it wakes up."""
        future = self._future(message.get("id"))
        if future is None:
            self.late_answers += 1
            return

        try:
            future.set_result(result_of(message))
        except RpcError as exc:
            future.set_exception(exc)

    def fail(self, number: object, error: ChannelError) -> None:
        """End one waiting request, if there is one of that number."""
        future = self._future(number)
        if future is not None:
            future.set_exception(error)

    def fail_all(self, reason: str) -> None:
        """End every waiting request at once: it was sent, and no answer can come."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ChannelError(reason, sent=True))

        self._alarm.stop()

    def _busy(self) -> ChannelBusy:
        return ChannelBusy(f"{len(self._waiting)} requests are already in flight")

    def _future(self, number: object) -> asyncio.Future[Any] | None:
        """Who waits for this number; our numbers are integers, which JSON's `true` is not."""
        future = self._waiting.get(number) if type(number) is int else None
        return None if future is None or future.done() else future

    def _notification(self, method: str, params: Params) -> None:
        if method == "notifications/progress":
            token = params.get("progressToken")
            listener = self._progress.get(token) if isinstance(token, int) else None
            if listener is not None:
                listener(params)
        else:
            self._desk.told(method, params)

    def pause(self, number: int) -> None:
        """Stop the time of a request; see `questions.Clock`."""
        deadline = self._deadlines.get(number)
        if deadline is not None and number not in self._left:
            when, method, seconds = deadline
            self._left[number] = when - asyncio.get_running_loop().time()
            self._deadlines[number] = math.inf, method, seconds

    def resume(self, number: int) -> None:
        """Let it go on."""
        left, deadline = self._left.pop(number, None), self._deadlines.get(number)
        if left is not None and deadline is not None:
            _, method, seconds = deadline
            when = asyncio.get_running_loop().time() + left
            self._deadlines[number] = when, method, seconds
            self._alarm.at(when)

    def _expire(self, now: float) -> float:
        """End the requests whose time is up by then; when that of the next one is."""
        following = math.inf
        for number, (when, method, seconds) in self._deadlines.items():
            if when <= now:
                self.fail(number, RequestTimeout(method, seconds))
            else:
                following = min(following, when)

        return following

    def _tell_cancelled(
        self, number: int, reason: str, send: Callable[[Message], Awaitable[None] | None]
    ) -> None:
        params = {"requestId": number, "reason": reason}
        try:
            send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        except ChannelError:
            log.debug("the channel closed before request %d could be cancelled", number)


def result_of(answer: Message) -> Result:
    """The result that an answer holds, as the server sent it.

    Raises:
        RpcError: It holds an error, or neither.
    """
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        raise RpcError(error)

    if not isinstance(result, dict):
        raise rpc_error(INTERNAL_ERROR, "the answer holds neither result nor error")

    return result


async def _sent(sending: Awaitable[None], future: asyncio.Future[Result]) -> None:
    try:
        await sending
    except BaseException:
        if not future.cancel() and not future.cancelled():
            future.exception()  # it failed too: say that somebody knows, or asyncio complains

        raise
