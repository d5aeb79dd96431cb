"""The task that owns one connection: it alone enters and leaves what the connection is made of.

Cancel scopes and task groups must be left by the task that entered them. Callers come and go in
tasks of their own, so none of them can own a connection: one task is made for it, opens it, waits,
and closes it, whoever asks. Nobody else's cancellation reaches it.

Nor can a connection be used from another event loop than its task's: each loop has its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import anyio

from bridge.telemetry import log
from bridge.upstream.channel import ChannelError
from bridge.upstream.clock import CONNECTING
from bridge.upstream.link import Link

CLOSE_SECONDS = 20.0

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for each event loop, made where it is first asked for, and used only there.

    The values of closed loops are dropped when the next one is made.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        # Weak keys alone would not do: what waits in a loop refers to it, so that values of
        # closed loops are taken out as well.
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        self._latest: tuple[ref[asyncio.AbstractEventLoop], T] | None = None

    def here(self) -> T:
        """The running loop's value."""
        loop = asyncio.get_running_loop()
        latest = self._latest
        if latest is not None and latest[0]() is loop:  # nearly always: one loop uses all of it
            return latest[1]

        value = self._values.get(loop)
        value = self._made(loop) if value is None else value
        self._latest = ref(loop), value
        return value

    def peek(self) -> T | None:
        """The running loop's value, if there is one; where none runs, any that is there."""
        with self._lock:
            live = [(loop, one) for loop, one in self._values.items() if not loop.is_closed()]

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return live[-1][1] if live else None

        return next((one for other, one in live if other is loop), None)

    def elsewhere(self, act: Callable[[T], None]) -> None:
        """Have every other live loop call `act` with its value, soon."""
        here = asyncio.get_running_loop()
        with self._lock:
            others = [(loop, one) for loop, one in self._values.items() if loop is not here]

        for loop, value in others:
            with suppress(RuntimeError):  # it was closed, and so is what lived in it
                loop.call_soon_threadsafe(act, value)

    def _made(self, loop: asyncio.AbstractEventLoop) -> T:
        with self._lock:
            for other in [one for one in self._values if one.is_closed()]:
                del self._values[other]

            value = self._values[loop] = self._make()
            return value


class Owner:
    """One connection's life, from dialling to the end of everything it started."""

    def __init__(
        self,
        dial: Callable[[], AbstractAsyncContextManager[Link]],
        attend: Callable[[Link], Coroutine[Any, Any, None]],
        on_failure: Callable[[Owner, Exception], None],
        connect_seconds: float,
    ) -> None:
        """`dial` opens the connection; `attend` runs beside it while it is open.

        `on_failure` is told why it could not be made, whether anybody waits for it or not.
        """
        self._dial = dial
        self._attend = attend
        self._on_failure = on_failure
        self._connect_seconds = connect_seconds
        self._stop = anyio.Event()
        self._ready = anyio.Event()
        self._done = anyio.Event()
        self._scope = anyio.CancelScope()
        self.link: Link | None = None
        self.failure: Exception | None = None
        self._beside: anyio.abc.TaskGroup | None = None
        # An empty context: what the first caller happened to carry is none of the connection's.
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), context=contextvars.Context())

    @property
    def is_over(self) -> bool:
        """Whether everything is closed."""
        return self._done.is_set()

    @property
    def is_connecting(self) -> bool:
        """Whether the connection is neither made nor failed yet."""
        return not self._ready.is_set()

    async def connected(self) -> Link:
        """Wait for the connection; a caller who stops waiting does not stop it.

        Raises:
            Exception: What went wrong while connecting.
        """
        await self._ready.wait()
        if self.link is None:
            raise self.failure or ChannelError("closed while connecting", sent=False)

        return self.link

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `work` beside the open connection, whose end cancels it; False if it is not open.

        It outlives its caller, and must not raise.
        """
        if self._beside is None or self._stop.is_set():
            return False

        contextvars.Context().run(self._beside.start_soon, work)
        return True

    def stop(self) -> None:
        """Ask the task to close everything, without waiting for it."""
        self._stop.set()
        if not self._ready.is_set():
            self._scope.cancel()

    async def closed(self) -> None:
        """Wait until everything is closed; bounded, and not cut short by a cancelled caller."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._done.wait()

        if not self._done.is_set():
            log.error("a connection did not close within %g s; it is abandoned", CLOSE_SECONDS)
            self._task.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + self._connect_seconds
                CONNECTING.set(self._scope)
                await self._live()

            if self._scope.cancelled_caught and self.failure is None and not self._stop.is_set():
                waited = f"no connection within {self._connect_seconds:g} s"
                self.failure = ChannelError(waited, sent=False)
        except Exception as exc:
            self.failure = exc  # whatever ends a connection is its callers' news
        finally:
            if self.failure is not None and self.is_connecting and not self._stop.is_set():
                self._on_failure(self, self.failure)

            self._ready.set()
            self._done.set()

    async def _live(self) -> None:
        async with self._dial() as link, anyio.create_task_group() as beside:
            self._scope.deadline = float("inf")
            self.link = link
            self._beside = beside
            self._ready.set()
            beside.start_soon(self._attend, link)
            beside.start_soon(self._until_closed, link)
            await self._stop.wait()
            beside.cancel_scope.cancel()

    async def _until_closed(self, link: Link) -> None:
        await link.channel.wait_closed()
        self._stop.set()
