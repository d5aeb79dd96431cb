"""Calls of modern clients that wait, between two requests, for what a server asked in the middle.

A legacy server asks with a request of its own and goes on waiting. A modern client cannot be
sent a request: it gets `input_required`, leaves, and comes back with the answer. Meanwhile the
call is parked here, for a bounded time; whoever does not come back has it cancelled.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INVALID_PARAMS, RpcError, rpc_error
from bridge.downstream.asker import Asker
from bridge.downstream.sealed import LIFETIME, Question, Seals
from bridge.errors import StoreError
from bridge.upstream.protocol import INPUT_REQUIRED

Work: TypeAlias = Callable[[Asker, ProgressSink | None], Awaitable[Result]]

PARKED_NO_MORE = "no call waits for this (any more): call again from the beginning"
PARKED_ELSEWHERE = (
    "the call that this answers waits in another process of bridge, or in one that has ended; "
    "nothing ran here. Route all requests of a client to one replica, and bring the answer there, "
    "or call again from the beginning"
)
NOT_TAKEN = (
    "the answer was not taken: the record of the answers that were used cannot be reached now. "
    "The call still waits for it: bring it again later"
)
MOST_PARKED: Final = 256
"""How many calls may wait for people at once."""


class Parking:
    """Where the calls of one server wait. Its tasks live in a group that the front gives it."""

    def __init__(self, seals: Seals, most: int = MOST_PARKED, seconds: float = LIFETIME) -> None:
        self._seals = seals
        self._most = most
        self._seconds = seconds
        self._parked: dict[str, _Parked] = {}
        self._place = secrets.token_hex(8)  # no other process, nor the next one, has this name
        self.tasks: TaskGroup | None = None

    async def run(
        self, asker: Asker, request: str, work: Work, on_progress: ProgressSink | None
    ) -> Result:
        """Run `work` until it is done, or until its server asks the client something.

        `request` is the digest of what the client sent; only the same may come back for more.

        Raises:
            RpcError: Too many calls are waiting.
            Exception: Whatever `work` raises.
        """
        if self.tasks is None or len(self._parked) >= self._most:
            raise rpc_error(-32000, "too many calls are waiting for people; nothing ran")

        name = f"{self._place}.{secrets.token_hex(16)}"
        parked = _Parked(asker, request, name, on_progress)
        asker.asks = parked.ask
        self._parked[parked.name] = parked
        self.tasks.start_soon(self._attend, parked, work)
        return await self._next(parked)

    async def resume(
        self,
        asker: Asker,
        question: Question,
        responses: Mapping[str, Any],
        on_progress: ProgressSink | None,
    ) -> Result:
        """Hand the client's answers to the call that waits for them, and go on as `run` does.

        Raises:
            RpcError: It waits no more, or not for these, or not here.
        """
        name = question.parked or ""
        if not name.startswith(f"{self._place}."):
            raise rpc_error(INVALID_PARAMS, PARKED_ELSEWHERE)

        parked = self._parked.get(name)
        if parked is None or parked.is_attended or not await self._taken(question):
            raise rpc_error(INVALID_PARAMS, PARKED_NO_MORE)

        parked.take(asker, responses, on_progress)
        return await self._next(parked)

    async def _taken(self, question: Question) -> bool:
        try:
            return await self._seals.spend(question)
        except StoreError as exc:
            raise rpc_error(-32000, NOT_TAKEN) from exc

    def close(self) -> None:
        """Cancel every call that waits."""
        for parked in self._parked.values():
            parked.scope.cancel()

    async def _attend(self, parked: _Parked, work: Work) -> None:
        try:
            with parked.scope:
                try:
                    parked.result = await work(parked.asker, parked.tell_progress)
                except Exception as exc:  # raised again where the client waits
                    parked.error = exc
        finally:
            del self._parked[parked.name]
            parked.is_done = True
            parked.wake()

    async def _next(self, parked: _Parked) -> Result:
        """What the client gets now: the end of the call, or what its server asks."""
        parked.is_attended = True
        parked.scope.deadline = float("inf")
        try:
            while not parked.is_done and not parked.asked:
                await parked.changed()
        except BaseException:
            parked.scope.cancel()  # the client left while it waited: in this era, that cancels
            raise

        if parked.is_done:
            return parked.outcome()

        parked.is_attended = False
        parked.scope.deadline = anyio.current_time() + self._seconds
        asker = parked.asker
        return {
            "resultType": INPUT_REQUIRED,
            "inputRequests": {
                key: {"method": one.method, "params": one.params}
                for key, one in parked.asked.items()
            },
            "requestState": self._seals.seal(
                asker.principal, asker.session, parked.request, parked=parked.name
            ),
        }


class _Asked:
    """One request of a server's that waits for a client's answer."""

    __slots__ = ("_answer", "_answered", "method", "params")

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params
        self._answer: Any = None
        self._answered = anyio.Event()

    def take(self, answer: Any) -> None:
        self._answer = answer
        self._answered.set()

    async def answer(self) -> Result:
        await self._answered.wait()
        if not isinstance(self._answer, dict):
            raise rpc_error(INVALID_PARAMS, f"the client brought no answer to {self.method}")

        error = self._answer.get("error")
        if isinstance(error, dict) and self._answer.keys() <= {"error"}:
            raise RpcError(error)

        return self._answer


class _Parked:
    """One call, its client of the moment, and what its server wants to know."""

    def __init__(
        self, asker: Asker, request: str, name: str, on_progress: ProgressSink | None
    ) -> None:
        self.asker = asker
        self.request = request
        self.name = name
        self.scope = anyio.CancelScope()
        self.asked: dict[str, _Asked] = {}
        self.is_attended = True
        self.is_done = False
        self.result: Result | None = None
        self.error: Exception | None = None
        self._on_progress = on_progress
        self._questions = 0
        self._changed = anyio.Event()

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """Have the client asked with its next answer, and wait for what it brings."""
        self._questions += 1
        key, asked = f"q{self._questions}", _Asked(method, params)
        self.asked[key] = asked
        self.wake()
        try:
            return await asked.answer()
        finally:
            self.asked.pop(key, None)

    def take(
        self, asker: Asker, responses: Mapping[str, Any], on_progress: ProgressSink | None
    ) -> None:
        """Go on for a client that has come back: its stream is the call's from now on."""
        self.asker.post = asker.post
        self._on_progress = on_progress
        asked, self.asked = self.asked, {}
        for key, one in asked.items():
            if key in responses:
                one.take(responses[key])
            else:
                self.asked[key] = one  # it is asked again

    async def tell_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Tell the client of the moment, if it wants to hear."""
        if self._on_progress is not None and self.is_attended:
            await self._on_progress(progress, total, message)

    def outcome(self) -> Result:
        """What became of the call."""
        if self.error is not None:
            raise self.error

        if self.result is None:
            raise rpc_error(-32000, "the call was cancelled while it waited for an answer")

        return self.result

    def wake(self) -> None:
        """Tell whoever waits in `changed`."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there is something to look at."""
        await self._changed.wait()
        self._changed = anyio.Event()
