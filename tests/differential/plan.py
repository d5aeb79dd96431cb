"""Which servers stand behind one bridge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.differential.compare import Pair, compared, direct
from tests.differential.rewrites import Member
from tests.differential.servers import Server
from tests.differential.wire import Transport

TRANSPORTS: tuple[Transport, ...] = ("stdio", "http", "sse")


async def alone(server: Server, transports: Sequence[Transport], place: Path) -> list[Pair]:
    """One server behind bridge, without a prefix, over each transport."""
    member = Member(server.name, "")
    here = place / _label(server)
    told = {member: await direct(server, here / "direct")}
    pairs: list[Pair] = []
    for transport in transports:
        pairs += await compared({member: server}, told, here / transport, transport)

    return pairs


async def together(
    servers: Sequence[Server], transports: Sequence[Transport], place: Path
) -> list[Pair]:
    """All servers that speak over their standard streams behind one bridge, prefixed."""
    members = {
        Member(_label(one), f"{_label(one)}__"): one for one in servers if one.transport == "stdio"
    }
    here = place / "together"
    told = {
        member: await direct(server, here / "direct" / member.name)
        for member, server in members.items()
    }
    pairs: list[Pair] = []
    for transport in transports:
        pairs += await compared(members, told, here / transport, transport)

    return pairs


def _label(server: Server) -> str:
    return "-".join(
        [server.name, server.era, *([] if server.transport == "stdio" else [server.transport])]
    )
