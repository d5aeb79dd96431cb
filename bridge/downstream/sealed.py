"""A question as a modern client carries it: sealed, for one asker, one call and one answer.

The client sends the sealed text back with the person's answer and may send anything else. The
key lives as long as this process, so nothing sealed before a restart opens after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from bridge.core.wire import dumps, loads

LIFETIME = 600.0
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, of whom, about which call.

    `request` is the digest of the call as the client sent it, `call` the hash of the call as it
    would run; None where a tool asked by itself and named none. `expires` is on our own clock.
    """

    principal: str
    session: str
    request: str
    call: str | None
    nonce: str
    expires: float


class Seals:
    """Seals questions, opens them once, and remembers which have been answered.

    What is remembered is bounded: while REMEMBERED answers are younger than a question's
    lifetime, further ones are refused. `clock` counts seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._codec = AESGCMRequestStateCodec([os.urandom(32)])
        self._clock = clock
        self._spent: dict[str, float] = {}

    def seal(self, principal: str, session: str, request: str, call: str | None) -> str:
        """Seal a new question, good for one answer within its lifetime."""
        expires = self._clock() + LIFETIME
        question = Question(principal, session, request, call, os.urandom(16).hex(), expires)
        return self._codec.seal(dumps(asdict(question)))

    def open(self, sealed: str) -> Question | None:
        """The question, if we sealed it, it is young enough and it was not answered yet."""
        try:
            question = Question(**loads(self._codec.unseal(sealed)))
        except (InvalidRequestState, ValueError):
            return None

        is_open = self._clock() < question.expires and question.nonce not in self._spent
        return question if is_open else None

    def spend(self, question: Question) -> bool:
        """Take the one answer this question has; False if it is taken or none can be taken now."""
        now = self._clock()
        if len(self._spent) >= REMEMBERED:
            self._spent = {nonce: end for nonce, end in self._spent.items() if end > now}

        if question.nonce in self._spent or len(self._spent) >= REMEMBERED:
            return False

        self._spent[question.nonce] = question.expires
        return True
