"""From a target to a live link: the transports tried in order, the era negotiated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from bridge.core.caller import Caller
from bridge.upstream.channel import ChannelError, HttpStatusError, Limits, Notify, RequestTimeout
from bridge.upstream.command import Command
from bridge.upstream.hosted import open_hosted
from bridge.upstream.http import open_http
from bridge.upstream.link import Link, negotiate
from bridge.upstream.protocol import Era
from bridge.upstream.sse import open_sse
from bridge.upstream.stdio import StdioChannel, open_stdio
from bridge.upstream.target import Endpoint, Hosted, Target

TOO_OLD_FOR_STREAMABLE_HTTP = {400, 404, 405}
"""The statuses that tell a client to try HTTP+SSE (MCP, transports, backwards compatibility)."""


@asynccontextmanager
async def dial(
    target: Target,
    on_notification: Notify,
    limits: Limits,
    *,
    remembered: Era | None = None,
    probe_seconds: float = 5.0,
    on_silence: Callable[[str], None] = lambda words: None,
    client: Caller | None = None,
) -> AsyncIterator[Link]:
    """Connect and negotiate; the connection ends when the block does.

    `on_silence` takes what a server said instead of an answer, when it is waited for no longer.
    `client` is whose session this is, if it is one client's alone.

    Raises:
        ChannelError: Nothing there, or nothing that speaks MCP.
        RpcError: The server refused both eras.
    """
    if isinstance(target, Hosted):
        opened = _dial_host(target, on_notification, limits, remembered, probe_seconds, client)
    elif isinstance(target, Command):
        opened = _dial_command(
            target, on_notification, limits, remembered, probe_seconds, client, on_silence
        )
    else:
        opened = _dial_endpoint(target, on_notification, limits, remembered, probe_seconds, client)

    async with opened as link:
        yield link


@asynccontextmanager
async def _dial_command(
    command: Command,
    on_notification: Notify,
    limits: Limits,
    remembered: Era | None,
    probe_seconds: float,
    client: Caller | None,
    on_silence: Callable[[str], None],
) -> AsyncIterator[Link]:
    died: ChannelError
    async with open_stdio(command, on_notification, limits, client) as channel:
        try:
            link = await negotiate(channel, "stdio", remembered, probe_seconds, client)
        except (anyio.get_cancelled_exc_class(), RequestTimeout):
            on_silence(channel.last_words)
            raise
        except ChannelError as exc:
            died = exc
        else:
            yield link
            return

    # Some old servers die of a request they do not know: such a one gets the handshake at once.
    if remembered == "legacy" or not channel.closed_because:
        raise _told_by(channel, died)

    async with open_stdio(command, on_notification, limits, client) as channel:
        try:
            link = await negotiate(channel, "stdio", "legacy", probe_seconds, client)
        except ChannelError as exc:
            died = exc
        else:
            yield link
            return

    raise _told_by(channel, died)


def _told_by(channel: StdioChannel, died: ChannelError) -> ChannelError:
    """The failure, with all that is known once the process is gone."""
    return ChannelError(channel.closed_because or str(died), sent=died.sent)


@asynccontextmanager
async def _dial_host(
    target: Hosted,
    on_notification: Notify,
    limits: Limits,
    remembered: Era | None,
    probe_seconds: float,
    client: Caller | None,
) -> AsyncIterator[Link]:
    endpoint = target.itself if isinstance(target.itself, Endpoint) else None
    if endpoint is None or remembered != "modern":
        async with open_hosted(target, on_notification, limits, client) as link:
            if link is not None:
                yield link
                return

    if endpoint is None:
        raise ChannelError(f"{target} cannot be called by itself", sent=False)

    itself = _dial_endpoint(endpoint, on_notification, limits, "modern", probe_seconds, client)
    async with itself as link:
        yield link


@asynccontextmanager
async def _dial_endpoint(
    endpoint: Endpoint,
    on_notification: Notify,
    limits: Limits,
    remembered: Era | None,
    probe_seconds: float,
    client: Caller | None,
) -> AsyncIterator[Link]:
    refused: HttpStatusError | None = None
    place = (endpoint.url, endpoint.headers, on_notification, limits)
    if endpoint.transport != "sse":
        opened = open_http(*place, default=client, credentials=endpoint.credentials)
        async with opened as channel:
            try:
                link = await negotiate(channel, "http", remembered, probe_seconds, client)
            except HttpStatusError as exc:
                if endpoint.transport == "http" or exc.status not in TOO_OLD_FOR_STREAMABLE_HTTP:
                    raise

                refused = exc
            else:
                yield link
                return

    async with AsyncExitStack() as stack:
        stream = open_sse(*place, default=client, credentials=endpoint.credentials)
        try:
            old = await stack.enter_async_context(stream)
            link = await negotiate(old, "sse", remembered, probe_seconds, client)
        except ChannelError as exc:
            if refused is None:
                raise

            raise ChannelError(f"{refused}; as HTTP+SSE: {exc}", sent=True) from exc

        yield link
