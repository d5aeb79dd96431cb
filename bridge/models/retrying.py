"""When a request may be sent once more, and after how long a pause (RFC 9110 §10.2.3)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0  # seconds: who is told to wait longer hears of it instead
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


def pause_before(attempt: int, status: int | None, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait before a request is repeated; None if it is not to be.

    `attempt` counts from 0. A `status` of None means that no answer came. The server's own
    `Retry-After` is kept to; without one, each pause is up to twice as long as the one before.
    """
    if status is not None and status != TOO_MANY_REQUESTS and status < SERVER_ERROR:
        return None

    asked = _asked(headers.get("retry-after", ""))
    if asked is None:
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt) * random.uniform(0.5, 1.0)

    return asked if asked <= LONGEST_PAUSE else None


def _asked(text: str) -> float | None:
    """The value of `Retry-After`, seconds or a date; None where it is neither."""
    try:
        seconds = float(text)
    except ValueError:
        return _until(text)

    return max(0.0, seconds) if seconds == seconds else None


def _until(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None

    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
