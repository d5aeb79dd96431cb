"""A person's answer to one exact call, and the name that ties the two together."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from bridge.core.content import Args
from bridge.errors import InvalidArguments

LARGEST_EXACT_INTEGER = 2**53 - 1
_USING = threading.Lock()


class _Once:
    """What can be used up. It is no value: equality, `repr` and JSON know nothing of it."""

    __slots__ = ("_used",)

    # For which call it is used, and for what acts in it; a call of None is over for good.
    _used: tuple[object, tuple[Subject, ...]]


@dataclass(frozen=True, slots=True)
class ToolConfirmation(_Once):
    """Asked (`confirmed` False, unanswered), granted or refused.

    `payload` shows the person what will happen: the effective arguments and their `hash` where
    the gate asked, whatever a handler chose where a handler did. `hash` on a granted
    confirmation is the hash of the call that was approved; None fits any arguments. A grant can
    be used once; its copies are as used as it is.
    """

    hint: str = ""
    confirmed: bool = False
    payload: Any = None
    hash: str | None = None

    def use(self, call: object, subject: Subject) -> bool:
        """Use this grant up for one call; False where it is used already. From any thread.

        `call` is an object that no other call has. Where several parts of one call each wait for
        a yes, such as a guarded tool inside a guarded tool, each uses the same grant, once.
        """
        with _USING:
            user, done = getattr(self, "_used", (call, ()))
            if user is not call or subject in done:
                return False

            object.__setattr__(self, "_used", (call, (*done, subject)))
            return True

    def __getstate__(self) -> tuple[Any, ...]:
        """The fields, and whether it is used, for copies and pickles."""
        return (self.hint, self.confirmed, self.payload, self.hash, hasattr(self, "_used"))

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Become the copy; the fields alone are what earlier versions wrote."""
        for name, value in zip(("hint", "confirmed", "payload", "hash"), state, strict=False):
            object.__setattr__(self, name, value)

        if any(state[4:]):
            object.__setattr__(self, "_used", (None, ()))


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call acts on: one upstream's tool, under its own name and exact definition.

    `upstream` is "local" for tools that run here. `definition` is the hash of the tool's
    definition, so that a yes does not outlive a change of what the tool says it does.
    """

    upstream: str
    tool: str
    definition: str


def call_hash(principal: str, subject: Subject, args: Args) -> str:
    """Name a call by everything a person says yes to.

    Returns the SHA-256, in hexadecimal, of the canonical JSON (RFC 8785) of principal,
    upstream, the upstream's own tool name, its definition and the arguments.

    Raises:
        InvalidArguments: The arguments have no canonical JSON (not a number, not JSON).
    """
    try:
        return json_hash([principal, subject.upstream, subject.tool, subject.definition, args])
    except ValueError as exc:
        raise InvalidArguments(
            f"the arguments of {subject.tool!r} cannot be approved: {exc}"
        ) from exc


def json_hash(value: Any) -> str:
    """The SHA-256, in hexadecimal, of a JSON value's canonical form (RFC 8785).

    Raises:
        ValueError: The value is not JSON.
    """
    return hashlib.sha256(rfc8785.dumps(_exact(value))).hexdigest()


def _exact(value: Any) -> Any:
    """Tag what a double cannot hold, so that two different integers never share a hash.

    Keys that begin with NUL get one more, so that no argument can imitate a tag.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) > LARGEST_EXACT_INTEGER:
        return {"\0integer": str(value)}
    if isinstance(value, dict):
        return {"\0" + k if k.startswith("\0") else k: _exact(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value
