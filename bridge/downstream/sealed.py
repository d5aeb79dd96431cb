"""A state that a modern client carries for us: sealed, for one asker, one call and one answer.

The client sends the sealed text back with its person's answer and may send anything else.
Without a key of the configuration's, the key lives as long as this process, so that nothing
sealed before a restart opens after it. Where several bridges have one key, each opens what any of
them sealed; that an answer is taken once is then up to a record that they share.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from bridge.core.wire import dumps, loads
from bridge.errors import StoreError
from bridge.telemetry import log

LIFETIME = 600.0
REMEMBERED = 10_000
OURS = "bridge1."
"""How every state of ours begins; one that does not is an upstream's, and none of our business."""

PARKED, ASKED = f"{OURS}p.", f"{OURS}a."
"""How the state of a call that waits begins, and that of a question about an approval."""

_ANY_MARK: Final = re.compile(r"(?:[a-z0-9]+-)?")
"""Some process's mark, or none: what the codec seals has a dot before it has a "-"."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, of whom, about which call.

    `request` is the digest of the call as the client sent it, `call` the hash of the call as it
    would run; None where a tool asked by itself and named none. `expires` is on our own clock.
    `theirs` is the state of the server behind the call, which asked after a person had approved
    it. `parked` names the call that waits here for the answer, where one does. `record` names the
    record in which the answer is taken.
    """

    principal: str
    session: str
    request: str
    call: str | None
    nonce: str
    expires: float
    theirs: str | None = None
    parked: str | None = None
    record: str = ""


def is_ours(state: object) -> bool:
    """Whether a `requestState` was meant for us, whatever it is worth."""
    return isinstance(state, str) and state.startswith(OURS)


def is_parked(state: object) -> bool:
    """Whether a `requestState` was meant for a call that waits here, whatever it is worth."""
    return isinstance(state, str) and state.startswith(PARKED)


def after_kind(state: str) -> str:
    """A state of ours from its maker's mark on."""
    return state[len(ASKED) :]


class Spent(Protocol):
    """A record of the answers that were taken.

    `name` names this very record: what was sealed for another one is worth nothing here, where
    nobody knows whether it was answered.
    """

    @property
    def name(self) -> str: ...

    async def take(self, nonce: str, expires: float) -> bool:
        """Take the answer to a question, which expires then: True for the first who asks, only.

        Raises:
            StoreError: It cannot be looked up or written down now.
        """
        ...


class Remembered:
    """A record for one process, with room for REMEMBERED answers that have not expired."""

    name = ""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spent: dict[str, float] = {}

    async def take(self, nonce: str, expires: float) -> bool:
        """See `Spent.take`; False also where none can be taken now."""
        now = self._clock()
        if len(self._spent) >= REMEMBERED:
            self._spent = {nonce: end for nonce, end in self._spent.items() if end > now}

        if nonce in self._spent or len(self._spent) >= REMEMBERED:
            return False

        self._spent[nonce] = expires
        return True


class Seals:
    """Seals questions, opens them, and takes one answer to each.

    `keys` are of 32 bytes or more each; the first seals, all open. `spent` is the record of
    answers that all who have these keys share; without it there is one for this process, in which
    further answers are refused while REMEMBERED of them are younger than a question's lifetime.
    `clock` counts seconds and never goes back; where keys are shared, it is everybody's.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        clock: Callable[[], float] | None = None,
        spent: Spent | None = None,
    ) -> None:
        self._codec = AESGCMRequestStateCodec(list(keys) or [os.urandom(32)])
        self._clock = clock or (time.time if keys else time.monotonic)
        self._is_shared = spent is not None
        self._spent: Spent = Remembered(self._clock) if spent is None else spent
        self.mark = ""
        """What begins our states, after their kind: whose they are, where several processes serve.

        With a shared record that is only what waits here: any process may answer the rest.
        """

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
        mark = "" if self._is_shared and parked is None else self.mark
        expires, nonce = self._clock() + LIFETIME, mark + os.urandom(16).hex()
        name = self._spent.name
        question = Question(principal, session, request, call, nonce, expires, theirs, parked, name)
        kind = ASKED if parked is None else PARKED
        return kind + mark + self._codec.seal(dumps(asdict(question)))

    def open(self, sealed: str) -> Question | None:
        """The question, if it was sealed for whoever is here, and is young enough."""
        rest = after_kind(sealed)
        mark = _mark_of(rest) if self._is_shared else self.mark
        if not is_ours(sealed) or not rest.startswith(mark):
            return None

        try:
            text = self._codec.unseal(rest.removeprefix(mark))
            question = Question(**loads(text))
        except (InvalidRequestState, ValueError, TypeError):
            return None

        # The mark outside is for whoever passes it on; the one inside cannot be exchanged.
        is_young = self._clock() < question.expires and question.nonce.startswith(mark)
        return question if is_young and question.record == self._spent.name else None

    async def spend(self, question: Question) -> bool:
        """Take the one answer this question has; False if it is taken or none can be taken now.

        Raises:
            StoreError: The record cannot be used now: nothing may run for this answer.
        """
        try:
            return await self._spent.take(question.nonce, question.expires)
        except StoreError as exc:
            log.warning("the record of answers cannot be used; nothing runs for this one: %s", exc)
            raise


def _mark_of(rest: str) -> str:
    found = _ANY_MARK.match(rest)
    return found[0] if found is not None else ""
