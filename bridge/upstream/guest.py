"""The client of a request that another process of ours passes on, as the host sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bridge.core.content import Result
from bridge.core.rpc import INTERNAL_ERROR, rpc_error
from bridge.upstream.channel import Message, Params


class Place(Protocol):
    """Where a client sits: the process that its request came from."""

    async def ask(self, method: str, params: Params, number: int | None) -> Result:
        """Have the client asked behind a request; see `Caller.ask`."""
        ...

    def tell(self, method: str, params: Params, number: int | None) -> None:
        """Pass a notification on to the client behind a request; see `Caller.tell`."""
        ...

    def hold(self, number: int, holds: bool) -> None:
        """Say that a request's time stands still from now on, or goes on."""
        ...


class Guest:
    """The client of one request, or of a whole conversation: a `Caller`."""

    meta: Mapping[str, Any] = {}
    brought: Mapping[str, Any] = {}

    def __init__(
        self, told: Message, place: Callable[[], Place | None], number: int | None = None
    ) -> None:
        """`place` is where the client sits now; `number` is its request there."""
        self.key: str = told["key"]
        self.modern: bool = told["modern"]
        self.capabilities: Mapping[str, Any] = told["capabilities"]
        self.log_level: str | None = told["level"]
        self._place = place
        self._number = number

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """Put a server's request to the client; see `Caller.ask`."""
        place = self._place()
        if place is None:
            raise rpc_error(INTERNAL_ERROR, "the client is gone")

        return await place.ask(method, params, self._number)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on to the client; see `Caller.tell`."""
        place = self._place()
        if place is not None:
            place.tell(method, params, self._number)

    def hold(self, holds: bool) -> None:
        """Have the time of its request stand still where it is measured, or go on."""
        place = self._place()
        if place is not None and self._number is not None:
            place.hold(self._number, holds)
