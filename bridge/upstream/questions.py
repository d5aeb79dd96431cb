"""A server's requests that wait for a client's answer, each in a task of its channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import anyio
from anyio.abc import TaskGroup

from bridge.core.caller import Caller
from bridge.core.encodable import encodable
from bridge.core.rpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError, rpc_error
from bridge.telemetry import log
from bridge.upstream.channel import ChannelError, Message, Params

MOST_ASKED = 32
"""How many requests of one server may wait for clients at once."""

Reply: TypeAlias = Callable[[Message], Awaitable[None]]
"""Sends what answers a server's request.

Raises:
    RpcError, ChannelError: It was not taken.
"""


class Clock(Protocol):
    """The time that requests under way have left, by their numbers; unknown ones are ignored."""

    def pause(self, number: int) -> None:
        """Stop a request's time."""
        ...

    def resume(self, number: int) -> None:
        """Let a stopped time go on."""
        ...


class Questions:
    """The requests of one server that clients are asked just now.

    Meanwhile the time of our own requests that may have caused them stands still: the server
    cannot go on with those before a person has thought.
    """

    def __init__(self, tasks: TaskGroup, reply: Reply, clock: Clock) -> None:
        self._tasks = tasks
        self._reply = reply
        self._clock = clock
        self._waiting: dict[str | int, anyio.CancelScope] = {}
        self._thinking: dict[int, int] = {}

    def put(
        self, caller: Caller, request_id: Any, method: str, params: Params, causes: Sequence[int]
    ) -> None:
        """Have the client asked, and the server answered then; `causes` are requests of ours.

        Raises:
            RpcError: Too many wait already, or the id of the server's request cannot be used.
        """
        if type(request_id) not in {str, int} or request_id in self._waiting:
            raise rpc_error(INVALID_REQUEST, "a request needs a string or an integer of its own")

        if len(self._waiting) >= MOST_ASKED:
            raise rpc_error(INTERNAL_ERROR, f"{MOST_ASKED} requests wait for clients already")

        self._waiting[request_id] = scope = anyio.CancelScope()
        self._tasks.start_soon(self._attend, scope, caller, request_id, method, params, causes)

    def call_off(self, request_id: object) -> bool:
        """End the request of that id, if there is one: nobody wants its answer any more."""
        scope = self._waiting.get(request_id) if isinstance(request_id, str | int) else None
        if scope is not None:
            scope.cancel()

        return scope is not None

    async def _attend(
        self,
        scope: anyio.CancelScope,
        caller: Caller,
        request_id: str | int,
        method: str,
        params: Params,
        causes: Sequence[int],
    ) -> None:
        try:
            with scope:
                outcome = await self._asked(caller, method, params, causes)
                await self._reply(encodable({"jsonrpc": "2.0", "id": request_id, **outcome}))
        except (RpcError, ChannelError) as exc:
            log.debug("the answer to %s was not taken: %s", method, exc)
        finally:
            del self._waiting[request_id]

    async def _asked(
        self, caller: Caller, method: str, params: Params, causes: Sequence[int]
    ) -> dict[str, Any]:
        """The result or the error that the client answers with."""
        self._think(causes, 1)
        try:
            return {"result": await caller.ask(method, params)}
        except RpcError as exc:
            return {"error": exc.error}
        except Exception:  # how a client is reached is not the channel's: it may fail in any way
            log.warning("a client could not be asked: %s", method, exc_info=True)
            return {"error": rpc_error(INTERNAL_ERROR, "the client could not be asked").error}
        finally:
            self._think(causes, -1)

    def _think(self, causes: Sequence[int], more: int) -> None:
        """Count who is being asked for each request; its time goes on when nobody is any more."""
        for number in causes:
            before = self._thinking.get(number, 0)
            self._thinking[number] = before + more
            if before == 0:
                self._clock.pause(number)
            elif before + more == 0:
                del self._thinking[number]
                self._clock.resume(number)
