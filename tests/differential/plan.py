"""Which servers stand behind one bridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from tests.differential.addressing import Member
from tests.differential.compare import Pair, Told, compared, direct
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
    members: Mapping[Member, Server], transports: Sequence[Transport], place: Path
) -> list[Pair]:
    pairs: list[Pair] = []
    told: dict[bool, Mapping[Member, Sequence[Told]]] = {}
    for transport in transports:
        anew = transport == "stdio"
        if anew not in told:
            told[anew] = await _directly(members, place / f"direct-{anew}", anew=anew)

        pairs += await compared(members, told[anew], place / transport, transport)

    return pairs


async def _directly(
    members: Mapping[Member, Server], place: Path, *, anew: bool
) -> Mapping[Member, Sequence[Told]]:
    """What each server says by itself; they are asked side by side."""
    told: dict[Member, Sequence[Told]] = {}

    async def ask(member: Member) -> None:
        told[member] = await direct(members[member], place / member.name, anew=anew)

    async with anyio.create_task_group() as group:
        for member in members:
            group.start_soon(ask, member)

    return {member: told[member] for member in members}
