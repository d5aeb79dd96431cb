"""One client's conversation, whatever carries it: what it declared, and what it is asked.

A legacy client has one for as long as its session; a modern one has one for each request, made
of the request's own envelope.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import anyio

from bridge.core.content import Result
from bridge.core.ending import Ending
from bridge.core.rpc import RpcError, rpc_error
from bridge.upstream.protocol import CANCELLED

Message: TypeAlias = dict[str, Any]
Post: TypeAlias = Callable[[Message], None]
"""Takes a message for the client, on one stream of its; never blocks, never raises."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def nothing() -> Mapping[str, Any]:
    """NOTHING, for fields that want a factory."""
    return NOTHING


LOCAL = "local"
"""The principal of every client that is not authenticated."""

MOST_ASKED = 64
"""How many questions one client may have open."""


class Client:
    """What is known of one client, and the requests of ours that it has not answered."""

    def __init__(
        self,
        principal: str = LOCAL,
        session: str = "",
        *,
        modern: bool = False,
        version: str = "",
        capabilities: Mapping[str, Any] = NOTHING,
        info: Mapping[str, Any] = NOTHING,
        log_level: str | None = None,
        push: Post | None = None,
        mark: str = "",
    ) -> None:
        """`session` is empty over stateless HTTP; `push` reaches the client outside requests.

        `mark` begins the ids of our requests where several processes put some to the client.
        """
        self.principal = principal
        self.session = session
        self.modern = modern
        self.version = version
        self.capabilities = capabilities
        self.info = info
        self.log_level = log_level
        self.push = push
        self.mark = mark
        self.subscribed: set[str] = set()
        self.running: dict[str | int, Ending] = {}
        self._numbers = itertools.count(1)
        self._asked: dict[int | str, _Question] = {}

    async def ask(self, post: Post, method: str, params: dict[str, Any], seconds: float) -> Result:
        """Send the client a request through `post`, and wait for its answer.

        Raises:
            RpcError: It refused, or did not answer in time.
        """
        if len(self._asked) >= MOST_ASKED:
            raise rpc_error(-32000, "the client has too many open questions")

        number: int | str = next(self._numbers)
        question = _Question()
        if self.mark:
            number = f"{self.mark}{number}"

        self._asked[number] = question
        try:
            post({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            with anyio.move_on_after(seconds):
                await question.answered.wait()
        finally:
            del self._asked[number]
            if not question.answered.is_set():
                notice = {"requestId": number, "reason": "nobody waits for the answer any more"}
                post({"jsonrpc": "2.0", "method": CANCELLED, "params": notice})

        return question.result(method, seconds)

    def answer(self, message: Message) -> None:
        """Take the client's answer to a request of ours; one that nobody waits for is dropped."""
        number = message.get("id")
        if isinstance(number, str) or type(number) is int:
            question = self._asked.get(number)
            if question is not None:
                question.take(message)

    def cancel(self, request_id: object) -> None:
        """End a request of the client's that is still running."""
        running = self.running.get(request_id) if isinstance(request_id, str | int) else None
        if running is not None:
            running.cancel()

    def close(self) -> None:
        """The client is gone: nothing of it runs on, and nobody waits for its answers."""
        for running in self.running.values():
            running.cancel()

        self.close_questions("the client left before it answered")

    def close_questions(self, why: str) -> None:
        """Nobody waits for the client's answers any more."""
        gone = {"code": -32000, "message": why}
        for question in self._asked.values():
            question.take({"error": gone})


class _Question:
    __slots__ = ("_message", "answered")

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self._message: Message = {}

    def take(self, message: Message) -> None:
        if not self.answered.is_set():
            self._message = message
            self.answered.set()

    def result(self, method: str, seconds: float) -> Result:
        if not self.answered.is_set():
            raise rpc_error(-32000, f"the client did not answer {method} within {seconds:g} s")

        error, result = self._message.get("error"), self._message.get("result")
        if isinstance(error, dict):
            raise RpcError(error)

        if not isinstance(result, dict):
            raise rpc_error(-32603, f"the client's answer to {method} holds no result")

        return result
