"""The event streams of Streamable HTTP that outlive one response: resumed where they stopped."""

from __future__ import annotations

import random

import anyio

from bridge.telemetry import log
from bridge.upstream.channel import ChannelError, RpcError
from bridge.upstream.http_wire import HttpWire
from bridge.upstream.inbox import Inbox
from bridge.upstream.refusal import is_final

RESUMES = 3  # failures in a row before an interrupted answer is given up
LONGEST_PAUSE = 30.0


async def listen_on(wire: HttpWire, inbox: Inbox) -> None:
    """Hear what a legacy server says unasked, for as long as there is a session.

    It begins again, where it stopped, whenever it ends. Returns if there is no such stream.
    """
    failures = 0
    while wire.is_legacy and wire.session_id is not None:
        try:
            await wire.listen(inbox)
            failures = 0
        except (RpcError, ChannelError) as exc:
            log.debug("a stream of unasked messages ended: %s", exc)
            if is_final(exc):
                return

            failures += 1

        longest = min(LONGEST_PAUSE, inbox.retry_seconds * 2 ** min(failures, 10))
        await anyio.sleep(longest * random.uniform(0.5, 1.0))


async def resume(wire: HttpWire, inbox: Inbox) -> None:
    """Get the rest of a response that ended before its answer (MCP 2025-11-25, resumability).

    Raises:
        ChannelError: It cannot be had.
    """
    failures = 0
    while inbox.answer is None:
        await anyio.sleep(inbox.retry_seconds)
        try:
            await wire.listen(inbox)
            failures = 0
        except (RpcError, ChannelError) as exc:
            failures += 1
            if inbox.answer is None and (is_final(exc) or failures == RESUMES):
                raise ChannelError(
                    f"the answer was interrupted and cannot be resumed: {exc}", sent=True
                ) from exc
