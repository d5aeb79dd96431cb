"""What an inbox makes of what a server sends."""

from __future__ import annotations

import pytest
from httpx_sse import ServerSentEvent

from bridge.upstream.inbox import Inbox


@pytest.mark.parametrize(
    ("asked", "kept"), [(0, 0.1), (-5, 0.1), (2_500, 2.5), (60_000, 30.0), (10**400, 30.0)]
)
def test_pause_that_a_server_asks_for_is_kept_within_bounds(asked: int, kept: float) -> None:
    inbox = Inbox(1, lambda message: None, lambda message: None)

    assert inbox.take_event(ServerSentEvent(id="e1", retry=asked)) == []
    assert (inbox.retry_seconds, inbox.last_event_id) == (kept, "e1")
