"""How things are written down, whatever they are written to: as text that every store can hold."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from bridge.core.event import EPOCH, Event
from bridge.core.session import Session, SessionKey
from bridge.core.wire import loads
from bridge.errors import StoreError

LONGEST_ID: Final = 255  # bytes; three of them and a state key fit into one index entry
LONGEST_KEY: Final = 1024  # bytes
LARGEST_RECORD: Final = 32 * 1024 * 1024  # characters


def pack(value: Any, what: str) -> str:
    """Write a JSON value as text; `what` names it where it is refused.

    Raises:
        StoreError: The value is not JSON, or too large.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))  # a lone surrogate is JSON only escaped
    except (TypeError, ValueError, RecursionError) as exc:
        raise StoreError(f"{what} cannot be stored, for it is not JSON: {exc}") from exc

    if len(text) > LARGEST_RECORD:
        raise StoreError(f"{what} cannot be stored: {len(text)} characters, over {LARGEST_RECORD}")

    return text


def unpack(text: str) -> Any:
    """The JSON value that `pack` wrote."""
    return loads(text)


def pack_state(state: Mapping[str, Any]) -> dict[str, str]:
    """Each value of a state as text.

    Raises:
        StoreError: A key is unfit or its value is not JSON; the text names it.
    """
    for key in state:
        check_text(key, f'state key "{key}"', LONGEST_KEY, may_be_empty=True)

    return {key: pack(value, f'state key "{key}"') for key, value in state.items()}


def unpack_state(packed: Mapping[str, str]) -> dict[str, Any]:
    """The state that `pack_state` wrote."""
    return {key: unpack(text) for key, text in packed.items()}


def pack_event(event: Event) -> str:
    """An event as text."""
    return pack(event.to_json(), f'event "{event.id}" by "{event.author}"')


def unpack_event(text: str) -> Event:
    """The event that `pack_event` wrote."""
    return Event.from_json(unpack(text))


def first_revision() -> int:
    """Where a new session starts to count: at random, so that it is not mistaken for another
    that had its key before it."""
    return secrets.randbits(40)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970: exact, and the same in every database."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The moment, in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def check_append(session: Session, event: Event) -> None:
    """Refuse to append what is no event, or to what is no session.

    Raises:
        TypeError: The text says which it is.
    """
    if not isinstance(session, Session):
        raise TypeError(f"a Session is appended to, not a {type(session).__name__}")

    if not isinstance(event, Event):
        raise TypeError(f"an Event is appended, not a {type(event).__name__}")


def check_key(key: SessionKey) -> None:
    """Refuse a key that does not name one session.

    Raises:
        StoreError: App, user or session is missing, too long, or no text a store can hold.
    """
    check_owner(key.app_name, key.user_id)
    check_id(key.session_id, "session id")


def check_owner(app_name: str, user_id: str) -> None:
    """Refuse an app or a user that is missing, too long, or no text a store can hold.

    Raises:
        StoreError: The text says which it is.
    """
    check_id(app_name, "app name")
    check_id(user_id, "user id")


def check_id(value: str, what: str) -> None:
    """Refuse an id that is missing, too long, or no text a store can hold.

    Raises:
        StoreError: The text says which it is.
    """
    check_text(value, what, LONGEST_ID)


def check_text(value: str, what: str, longest: int, *, may_be_empty: bool = False) -> None:
    """Refuse a text that is missing, longer than `longest` bytes, or that no store can hold.

    Raises:
        StoreError: The text says what is wrong.
    """
    if not value and not may_be_empty:
        raise StoreError(f"the {what} is missing")

    if "\0" in value:
        raise StoreError(f"the {what} has a NUL character in it")

    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise StoreError(f"the {what} is not valid Unicode text") from None

    if size > longest:
        raise StoreError(f"the {what} is {size} bytes long, over {longest}")
