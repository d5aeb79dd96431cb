"""What may be said of the sessions that clients have at an upstream: shared or their own."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from bridge.config.fields import wrong

POLICIES = ("auto", "shared", "per-client")
MOST_SESSIONS = 10_000


def _is_policy(value: Any) -> str:
    if isinstance(value, str) and value in POLICIES:
        return value

    near = difflib.get_close_matches(value, POLICIES, 1) if isinstance(value, str) else []
    raise wrong(
        f'is no way to keep sessions. Did you mean "{near[0]}"?'
        if near
        else f"is no way to keep sessions. Write {', '.join(POLICIES[:-1])} or {POLICIES[-1]}."
    )


def _is_count(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)  # what a variable holds is text

    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SESSIONS:
        raise wrong(f"is no number of sessions. Write one from 1 to {MOST_SESSIONS}.")

    return value


SessionPolicy = Annotated[Literal["auto", "shared", "per-client"], BeforeValidator(_is_policy)]
SessionCount = Annotated[int, BeforeValidator(_is_count)]
