"""Other processes that serve the same clients at one address, as far as a front needs them.

A request may land on any of them. What is one process's alone (a session, a stream, a question to
a client, a sealed state) has a name that begins with that process's mark, so that each of them
sees whose it is. Marks are never used again: what an ended process left names nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.downstream.client import Message

FORWARDED: Final = "bridge.forwarded"
"""Set in a request's scope where a neighbour has sent it here: it is not sent on again."""

Answer: TypeAlias = Callable[[Message], Awaitable[Message | None]]
"""Answers what a neighbour asks; never raises."""


class Neighbours(Protocol):
    """The processes beside this one."""

    @property
    def mark(self) -> str:
        """What begins the names of all that is this process's; empty where it serves alone."""
        ...

    def owner(self, name: object) -> str | None:
        """The mark of the other process whose this is; None if it is ours or nobody's."""
        ...

    async def ask(self, owner: str, question: Message) -> Message | None:
        """Ask one process; None if it is gone, or has no answer."""
        ...

    async def ask_all(self, question: Message) -> list[Message]:
        """Ask every other process that is there; the answers of those that have one."""
        ...

    async def forward(self, owner: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Have another process answer an HTTP request; False if it is gone.

        The scope is one that the guard has let in.
        """
        ...

    async def serve(self, app: ASGIApp, answer: Answer, gone: Callable[[str], None]) -> None:
        """Take requests and questions from the others, until cancelled.

        `gone` takes the mark of a process that was asked something and has ended since.
        """
        ...


class Alone:
    """No neighbours: everything is here."""

    mark = ""

    def owner(self, name: object) -> str | None:
        """Nobody else's."""
        return None

    async def ask(self, owner: str, question: Message) -> Message | None:
        """Nobody is there to answer."""
        return None

    async def ask_all(self, question: Message) -> list[Message]:
        """Nobody is there to answer."""
        return []

    async def forward(self, owner: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Nobody is there to send it to."""
        return False

    async def serve(self, app: ASGIApp, answer: Answer, gone: Callable[[str], None]) -> None:
        """Nothing comes."""


ALONE: Final = Alone()
