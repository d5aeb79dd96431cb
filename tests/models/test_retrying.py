"""When a request is sent once more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from bridge.models.retrying import LONGEST_PAUSE, pause_before


@pytest.mark.parametrize("status", [300, 400, 401, 404, 422])
def test_what_will_not_change_is_not_asked_again(status: int) -> None:
    assert pause_before(0, status, {"retry-after": "1"}) is None


@pytest.mark.parametrize("status", [429, 500, 503, 529, None])
def test_what_may_change_is_asked_again_after_growing_pauses(status: int | None) -> None:
    pauses = [pause_before(attempt, status, {}) or 0 for attempt in range(12)]

    ceilings = [min(LONGEST_PAUSE, 0.5 * 2**attempt) for attempt in range(12)]
    bounds = zip(pauses, ceilings, strict=True)
    assert all(ceiling / 2 <= pause <= ceiling for pause, ceiling in bounds)


@pytest.mark.parametrize(("text", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0)])
def test_the_servers_own_pause_is_kept_to(text: str, seconds: float) -> None:
    assert pause_before(5, 503, {"retry-after": text}) == seconds


def test_the_servers_own_pause_may_be_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=30)
    headers = {"retry-after": format_datetime(moment, usegmt=True)}

    pause = pause_before(0, 429, headers)
    assert pause is not None
    assert 0 < pause <= 30


def test_a_date_that_has_passed_asks_for_no_pause() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert pause_before(0, 429, headers) == 0.0


@pytest.mark.parametrize("text", ["soon", "nan", "Wed, 99 Oct 2015"])
def test_a_pause_that_cannot_be_read_counts_as_none(text: str) -> None:
    pause = pause_before(0, 429, {"retry-after": text})
    assert pause is not None
    assert 0.25 <= pause <= 0.5


@pytest.mark.parametrize("text", ["3600", "inf", "1e999"])
def test_nobody_waits_longer_than_a_minute(text: str) -> None:
    assert pause_before(0, 429, {"retry-after": text}) is None
