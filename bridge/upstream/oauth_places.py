"""Where a login may lead us, and how much is read there: a server names the place, not we."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address

import anyio
import httpx2

from bridge.upstream.oauth_loopback import LoginFailed
from bridge.upstream.wording import place

ANSWER_BYTES = 1024 * 1024


async def check_place(url: httpx2.URL, upstream: httpx2.URL) -> None:
    """Refuse to talk where a server should not lead us.

    That is anywhere without TLS, and into our network from outside of it. A server that we reach
    ourselves on this machine, or without TLS, may lead to its own host.

    Raises:
        LoginFailed: It leads there.
    """
    if url.host == upstream.host and url.scheme in {"https", upstream.scheme}:
        return

    is_local = _is_loopback(url.host) and _is_loopback(upstream.host)
    if url.scheme != "https" and not (url.scheme == "http" and is_local):
        raise LoginFailed(f"it leads to {place(url)}, which is not https; refused")

    if await _is_inside(url.host) and not await _is_inside(upstream.host):
        raise LoginFailed(f"it leads to {place(url)}, which is not on the internet; refused")


class BoundedStream(httpx2.AsyncByteStream):
    """A body of at most `ANSWER_BYTES`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ANSWER_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise LoginFailed(
                    f"its authorization server answers with over {ANSWER_BYTES} bytes"
                )

            yield piece

    async def aclose(self) -> None:
        """Close what is below."""
        await self._stream.aclose()


def _is_loopback(host: str) -> bool:
    """Whether this names this machine, without asking anybody."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def _is_inside(host: str) -> bool:
    """Whether a host has an address that the internet does not lead to."""
    try:
        found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False  # a proxy may know it, or nobody does

    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    return not all(ip_address(address).is_global for address in addresses)
