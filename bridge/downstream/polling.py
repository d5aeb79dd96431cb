"""What each of the processes that serve one address counts, asked of all of them at once.

Each is asked over a connection of its own, which is closed again: it is asked rarely, its answer
may be long, and whoever is given up on holds up nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from bridge.core.wire import loads
from bridge.downstream.client import Message
from bridge.downstream.peers import Peers
from bridge.downstream.relay import LONGEST_LINE, LOST, NAMES

POLL_SECONDS: Final = 1.0
"""How long the others get for their answers, all at the same time."""


class Poll:
    """The processes beside this one, by what they count."""

    def __init__(self, peers: Peers, count: int, seconds: float = POLL_SECONDS) -> None:
        """`count` is how many processes there should be, this one among them."""
        self._peers = peers
        self._count = count
        self._seconds = seconds

    def answer(self, counted: Callable[[], Message]) -> None:
        """Let the others have what this makes when they ask; it must not raise."""
        self._peers.counted = counted

    async def ask(self) -> tuple[list[Message], int]:
        """The answers that came in time, and how many processes there should be beside these."""
        answers: list[Message] = []
        with anyio.move_on_after(self._seconds):
            async with anyio.create_task_group() as tasks:
                for place in self._peers.others().values():
                    tasks.start_soon(_ask, place, answers)

        return answers, max(0, self._count - 1 - len(answers))


async def _ask(place: Path, answers: list[Message]) -> None:
    """Ask one process; one that is gone, or not open yet, adds nothing."""
    try:
        async with await anyio.connect_unix(place) as stream:
            await stream.send(b'{"counted":true}\n')
            lines = BufferedByteReceiveStream(stream)
            found = loads(await lines.receive_until(b"\n", LONGEST_LINE))
    except (*LOST, *NAMES, ValueError):
        return

    if found:
        answers.append(found)
