"""Decisions as they rest: one row each, of texts and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bridge.core.content_json import call_from_json, call_to_json
from bridge.core.session import SessionKey
from bridge.core.stores import Decision
from bridge.errors import StoreError
from bridge.stores.records import (
    check_id,
    check_key,
    from_micros,
    pack,
    to_micros,
    unpack,
)


def pack_decision(key: SessionKey, decision: Decision, decided_at: datetime) -> dict[str, Any]:
    """The row of a decision that nothing has come of yet.

    Raises:
        StoreError: Key or id is unfit, or the arguments are not JSON.
    """
    check_key(key)
    check_id(decision.confirmation_id, "confirmation id")
    return {
        "app_name": key.app_name,
        "user_id": key.user_id,
        "session_id": key.session_id,
        "confirmation_id": decision.confirmation_id,
        "confirmed": decision.confirmed,
        "call": pack(call_to_json(decision.call), "the call of a decision"),
        "args": pack(decision.args, "the edited arguments of a decision"),
        "hash": decision.hash,
        "decided_at": to_micros(decided_at),
        "answered_at": None,
        "response": None,
    }


def unpack_decision(row: Mapping[str, Any]) -> Decision:
    """The decision of a row."""
    answered_at, response = row["answered_at"], row["response"]
    return Decision(
        confirmation_id=row["confirmation_id"],
        confirmed=row["confirmed"],
        call=call_from_json(unpack(row["call"])),
        args=unpack(row["args"]),
        hash=row["hash"],
        decided_at=from_micros(row["decided_at"]),
        answered_at=None if answered_at is None else from_micros(answered_at),
        response=None if response is None else unpack(response),
    )


def unspent(confirmation_id: str) -> StoreError:
    """What to raise where a response comes before its decision."""
    return StoreError(f'confirmation "{confirmation_id}" is not spent yet, so nothing came of it')
