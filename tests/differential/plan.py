"""Which servers stand behind one bridge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from tests.differential.compare import Pair, Told, compared, direct
from tests.differential.rewrites import Member
from tests.differential.servers import Server
from tests.differential.wire import Transport

TRANSPORTS: tuple[Transport, ...] = ("stdio", "http", "sse")


async def alone(server: Server, transports: Sequence[Transport], place: Path) -> list[Pair]:
    """One server behind bridge, without a prefix, over each transport."""
    return await _compared({Member(server.name, ""): server}, transports, place / server.label)


async def together(
    servers: Sequence[Server], transports: Sequence[Transport], place: Path
) -> list[Pair]:
    """All servers that speak over their standard streams behind one bridge, prefixed."""
    members = {
        Member(one.label, f"{one.label}__"): one for one in servers if one.transport == "stdio"
    }
    return await _compared(members, transports, place / "together")


async def _compared(
    members: dict[Member, Server], transports: Sequence[Transport], place: Path
) -> list[Pair]:
    told: dict[Member, Sequence[Told]] = {}

    async def ask(member: Member) -> None:
        told[member] = await direct(members[member], place / "direct" / member.name)

    async with anyio.create_task_group() as group:
        for member in members:
            group.start_soon(ask, member)

    pairs: list[Pair] = []
    for transport in transports:
        pairs += await compared(members, told, place / transport, transport)

    return pairs
