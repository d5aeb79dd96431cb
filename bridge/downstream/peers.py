"""Neighbours on one machine, which reach each other through Unix sockets in a private directory.

A connection carries either questions and answers, a JSON line each, for as long as both live; or
one HTTP request that landed on the wrong process: a JSON line there, then back a JSON line with
the status and the headers, and the body until the end; or one `polling` of what a process counts.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteStream, SocketListener, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.core.wire import escaped, loads
from bridge.downstream.client import Message
from bridge.downstream.neighbours import Answer
from bridge.downstream.relay import (
    LONGEST_LINE,
    LOST,
    NAMES,
    described,
    relay,
    serve_request,
    until_left,
)

MARK: Final = re.compile(r"w[0-9]{1,9}-")
ANSWER_SECONDS: Final = 10.0


def mark_of(number: int) -> str:
    """The mark of the process of that number."""
    return f"w{number}-"


def socket_of(directory: Path, mark: str) -> Path:
    """Where that process takes what its neighbours send."""
    return directory / f"{mark}.sock"


class Peers:
    """The `Neighbours` of one process."""

    def __init__(self, directory: Path, mark: str, listener: SocketListener) -> None:
        self.mark = mark
        self._directory = directory
        self._listener = listener
        self._links: dict[str, _Link] = {}
        self._linking = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._gone: Callable[[str], None] = lambda mark: None
        self.counted: Callable[[], Message] = dict

    def owner(self, name: object) -> str | None:
        """See `Neighbours.owner`."""
        found = MARK.match(name) if isinstance(name, str) else None
        return None if found is None or found[0] == self.mark else found[0]

    async def ask(self, owner: str, question: Message) -> Message | None:
        """See `Neighbours.ask`."""
        with suppress(*LOST):
            link = self._links.get(owner) or await self._linked(owner)
            if link is not None:
                return await link.ask(question)

        return None

    async def ask_all(self, question: Message) -> list[Message]:
        """See `Neighbours.ask_all`."""
        answers: list[Message] = []

        async def ask(mark: str) -> None:
            answer = await self.ask(mark, question)
            if answer is not None:
                answers.append(answer)

        async with anyio.create_task_group() as tasks:
            for mark in self.others():
                tasks.start_soon(ask, mark)

        return answers

    async def forward(self, owner: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """See `Neighbours.forward`."""
        try:
            stream = await anyio.connect_unix(socket_of(self._directory, owner))
        except OSError:
            return False

        async with stream:
            with suppress(*LOST):
                await stream.send(escaped({"request": described(scope)}) + b"\n")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(until_left, receive, tasks.cancel_scope)
                await relay(stream, send)
                tasks.cancel_scope.cancel()

        return True

    async def serve(self, app: ASGIApp, answer: Answer, gone: Callable[[str], None]) -> None:
        """See `Neighbours.serve`."""
        self._gone = gone

        async def take(stream: ByteStream) -> None:
            async with stream:
                with suppress(*LOST, *NAMES, ValueError):
                    lines = BufferedByteReceiveStream(stream)
                    first = loads(await lines.receive_until(b"\n", LONGEST_LINE))
                    if "counted" in first:
                        await stream.send(escaped(self.counted()) + b"\n")
                    elif "request" in first:
                        await serve_request(app, first["request"], stream)
                    else:
                        await _answer_all(answer, lines, stream)

        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._listener.serve, take)
        finally:
            self._tasks = None

    def others(self) -> dict[str, Path]:
        """The marks and the sockets of all other processes that are there."""
        names = (name.removesuffix(".sock") for name in os.listdir(self._directory))
        found = [name for name in names if MARK.fullmatch(name) and name != self.mark]
        return {name: socket_of(self._directory, name) for name in found}

    async def _linked(self, owner: str) -> _Link | None:
        async with self._linking:
            if owner in self._links:
                return self._links[owner]

            if self._tasks is None:
                return None

            stream = await anyio.connect_unix(socket_of(self._directory, owner))
            await stream.send(b'{"questions":true}\n')
            link = self._links[owner] = _Link(stream)
            self._tasks.start_soon(self._attend, owner, link)
            return link

    async def _attend(self, owner: str, link: _Link) -> None:
        try:
            await link.run()
        finally:
            del self._links[owner]
            self._gone(owner)


class _Link:
    """Questions to one neighbour, and its answers."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._sending = anyio.Lock()  # a stream takes one message at a time
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[anyio.Event, list[Message | None]]] = {}
        self._is_over = False

    async def ask(self, question: Message) -> Message | None:
        """One question; None where no answer comes."""
        number, answered = next(self._numbers), (anyio.Event(), list[Message | None]())
        self._waiting[number] = answered
        try:
            if not self._is_over:
                async with self._sending:
                    await self._stream.send(escaped({"id": number, "question": question}) + b"\n")

                with anyio.move_on_after(ANSWER_SECONDS):
                    await answered[0].wait()
        finally:
            del self._waiting[number]

        return answered[1][0] if answered[1] else None

    async def run(self) -> None:
        """Take answers until the neighbour is gone."""
        try:
            async with self._stream:
                with suppress(*LOST, *NAMES, ValueError):
                    lines = BufferedByteReceiveStream(self._stream)
                    while True:
                        self._take(loads(await lines.receive_until(b"\n", LONGEST_LINE)))
        finally:
            self._is_over = True
            for answered, _ in self._waiting.values():
                answered.set()

    def _take(self, message: Message) -> None:
        waiting = self._waiting.get(message["id"])
        if waiting is not None:
            waiting[1].append(message["answer"])
            waiting[0].set()


@asynccontextmanager
async def open_peers(directory: Path, mark: str) -> AsyncIterator[Peers]:
    """Listen for the neighbours; what they send is taken once it is served."""
    place = socket_of(directory, mark)
    async with await anyio.create_unix_listener(place, mode=0o600) as listener:
        try:
            yield Peers(directory, mark, listener)
        finally:
            place.unlink(missing_ok=True)


async def _answer_all(answer: Answer, lines: BufferedByteReceiveStream, stream: ByteStream) -> None:
    sending = anyio.Lock()

    async def one(message: Message) -> None:
        found = await answer(message["question"])
        with suppress(*LOST):
            async with sending:
                await stream.send(escaped({"id": message["id"], "answer": found}) + b"\n")

    async with anyio.create_task_group() as tasks:
        with suppress(*LOST, *NAMES, ValueError):
            while True:
                tasks.start_soon(one, loads(await lines.receive_until(b"\n", LONGEST_LINE)))
