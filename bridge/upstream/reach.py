"""Connects a socket to a host, whichever of its addresses takes us first (RFC 8305)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest

import anyio

STAGGER_SECONDS = 0.25  # the head start of each address before the next is tried as well

Address = tuple[int, tuple[str | int | bytes, ...]]


async def reach(host: str, port: int) -> socket.socket:
    """A connected socket, in non-blocking mode, which the caller closes.

    Raises:
        OSError: The name has no address, or no address takes us; the first one's error.
    """
    return await reach_any(await _addresses(host, port))


async def reach_any(addresses: Sequence[Address]) -> socket.socket:
    """As `reach`, for addresses that are known; each gets a head start over the next."""
    if len(addresses) == 1:
        return await _connect(*addresses[0])

    failures: list[OSError] = []
    winners: list[socket.socket] = []
    try:
        await _race(addresses, winners, failures)
    except BaseException:  # also when the wait is cancelled: nobody else knows the sockets
        for winner in winners:
            winner.close()

        raise

    for late in winners[1:]:
        late.close()

    if not winners:
        raise failures[0]

    return winners[0]


async def _race(
    addresses: Sequence[Address], winners: list[socket.socket], failures: list[OSError]
) -> None:
    async with anyio.create_task_group() as race:

        async def run(address: Address, failed: anyio.Event) -> None:
            try:
                winners.append(await _connect(*address))
            except OSError as exc:
                failures.append(exc)
                failed.set()
            else:
                race.cancel_scope.cancel()

        for address in addresses:
            failed = anyio.Event()
            race.start_soon(run, address, failed)
            with anyio.move_on_after(STAGGER_SECONDS):
                await failed.wait()


async def _addresses(host: str, port: int) -> list[Address]:
    """The host's addresses, its families taking turns, in the order the system prefers."""
    loop = asyncio.get_running_loop()
    try:
        if _is_address(host):
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        else:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:
        raise OSError(f"{host!r} cannot be the name of a host") from exc

    families: dict[int, list[Address]] = {}
    for family, _, _, _, address in found:
        families.setdefault(family, []).append((family, address))

    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


def _is_address(host: str) -> bool:
    """Whether nobody has to be asked what address that is."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False

    return True


async def _connect(family: int, address: tuple[str | int | bytes, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:  # also when the wait is cancelled: nobody else knows the socket
        sock.close()
        raise

    return sock
