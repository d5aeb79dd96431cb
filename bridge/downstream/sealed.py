"""A state that a modern client carries for us: sealed, for one asker, one call and one answer.

The client sends the sealed text back with its person's answer and may send anything else.
Without a key of the configuration's, the key lives as long as this process, so that nothing
sealed before a restart opens after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from bridge.core.wire import dumps, loads

LIFETIME = 600.0
REMEMBERED = 10_000
OURS = "bridge1."
"""How every state of ours begins; one that does not is an upstream's, and none of our business."""

PARKED, ASKED = f"{OURS}p.", f"{OURS}a."
"""How the state of a call that waits begins, and that of a question about an approval."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, of whom, about which call.

    `request` is the digest of the call as the client sent it, `call` the hash of the call as it
    would run; None where a tool asked by itself and named none. `expires` is on our own clock.
    `theirs` is the state of the server behind the call, which asked after a person had approved
    it. `parked` names the call that waits here for the answer, where one does.
    """

    principal: str
    session: str
    request: str
    call: str | None
    nonce: str
    expires: float
    theirs: str | None = None
    parked: str | None = None


def is_ours(state: object) -> bool:
    """Whether a `requestState` was meant for us, whatever it is worth."""
    return isinstance(state, str) and state.startswith(OURS)


def is_parked(state: object) -> bool:
    """Whether a `requestState` was meant for a call that waits here, whatever it is worth."""
    return isinstance(state, str) and state.startswith(PARKED)


def after_kind(state: str) -> str:
    """A state of ours from its maker's mark on."""
    return state[len(ASKED) :]


class Seals:
    """Seals questions, opens them once, and remembers which have been answered.

    What is remembered is bounded: while REMEMBERED answers are younger than a question's
    lifetime, further ones are refused. `keys` are of 32 bytes or more each; the first seals, all
    open. `clock` counts seconds and never goes back; where keys are shared, it is everybody's.
    """

    def __init__(
        self, keys: Sequence[bytes] = (), clock: Callable[[], float] | None = None
    ) -> None:
        self._codec = AESGCMRequestStateCodec(list(keys) or [os.urandom(32)])
        self._clock = clock or (time.time if keys else time.monotonic)
        self._spent: dict[str, float] = {}
        self.mark = ""
        """What begins our states, after OURS: whose they are, where several processes serve."""

    def seal(
        self,
        principal: str,
        session: str,
        request: str,
        call: str | None = None,
        *,
        theirs: str | None = None,
        parked: str | None = None,
    ) -> str:
        """Seal a new question, good for one answer within its lifetime."""
        expires, nonce = self._clock() + LIFETIME, self.mark + os.urandom(16).hex()
        question = Question(principal, session, request, call, nonce, expires, theirs, parked)
        kind = ASKED if parked is None else PARKED
        return kind + self.mark + self._codec.seal(dumps(asdict(question)))

    def open(self, sealed: str) -> Question | None:
        """The question, if we sealed it, it is young enough and it was not answered yet."""
        rest = after_kind(sealed)
        if not is_ours(sealed) or not rest.startswith(self.mark):
            return None

        try:
            text = self._codec.unseal(rest.removeprefix(self.mark))
            question = Question(**loads(text))
        except (InvalidRequestState, ValueError, TypeError):
            return None

        # The mark outside is for whoever passes it on; the one inside cannot be exchanged.
        is_young = self._clock() < question.expires and question.nonce.startswith(self.mark)
        is_open = is_young and question.nonce not in self._spent
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
