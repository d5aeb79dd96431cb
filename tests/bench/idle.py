"""What a client that waits costs: memory of bridge's process, `python -m tests.bench.idle`.

A modern client is a connection that has asked once and stays open. A legacy one has a session
besides; and as most clients of that era do, it may keep a GET stream open for what it is told.
"""

# ruff: noqa: TID251 — the clients are those of `load`, on bare streams

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import procfs
from tests.bench.compare import flags, options_of
from tests.bench.contenders import ECHO, Options, bridge
from tests.bench.load import Connection
from tests.bench.running import Server, end_in_order, running
from tests.bench.wire import envelope, modern_headers

MODERN_CLIENTS, LEGACY_CLIENTS = 10_000, 2_000
AT_ONCE = 32
FIRST = 50  # clients that come before, so that what is made once is not counted
FILES_BESIDES = 500
SETTLING = 2.0
KINDS = ("modern client", "legacy session", "legacy session, GET stream")


def measured(options: Options, share: float = 1.0) -> dict[str, dict[str, Any]]:
    """For each kind: how many `clients` came of those `wanted`, and `kib` for each of them.

    `open` is how many of their connections are still there in the end, `refused` why the next
    client could not come, where one could not. `share` of the full numbers is made; less where
    the process may not open so many files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the server inherits it
    most = (soft if hard == resource.RLIM_INFINITY else hard) - FILES_BESIDES
    wanted = dict(zip(KINDS, (MODERN_CLIENTS, LEGACY_CLIENTS, LEGACY_CLIENTS), strict=True))
    found = {}
    for kind, count in wanted.items():
        count = int(min(count * share, most // (2 if "GET" in kind else 1)))
        with running({kind: bridge(options, {"echo": {"command": ECHO}})}) as servers:
            found[kind] = asyncio.run(_measured(servers[kind], kind, count))

    return found


async def _measured(server: Server, kind: str, count: int) -> dict[str, Any]:
    come = {KINDS[0]: _modern, KINDS[1]: _legacy, KINDS[2]: _listening}[kind]
    first = await _clients(server.port, FIRST, come)
    before = procfs.resident(server.pid)
    clients = await _clients(server.port, count, come)
    await asyncio.sleep(SETTLING)
    grown = procfs.resident(server.pid) - before
    connections = [one for client in clients.come for one in client]
    still = sum(not one.ended() for one in connections)
    for one in connections + [one for client in first.come for one in client]:
        one.close()

    come_in = len(clients.come)
    kib = round(grown / max(1, come_in) / 1024, 1)
    return {
        "wanted": count,
        "clients": come_in,
        "connections": len(connections),
        "open": still,
        "kib": kib,
        "refused": clients.refused,
    }


@dataclass(slots=True)
class _Clients:
    """The connections of each client that came, and why one could not."""

    come: list[list[Connection]] = field(default_factory=list)
    refused: str = ""


async def _clients(
    port: int, count: int, come: Callable[[int], Awaitable[list[Connection]]]
) -> _Clients:
    """So many clients, a few coming at one time, until one is refused."""
    budget, made = iter(range(count)), _Clients()

    async def some() -> None:
        for _ in budget:
            if made.refused:
                return

            try:
                made.come.append(await come(port))
            except (OSError, EOFError, RuntimeError) as exc:
                made.refused = str(exc) or repr(exc)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return made


async def _modern(port: int) -> list[Connection]:
    client = Connection(port)
    await client.open()
    client.headers = modern_headers("tools/list")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, _, body = await client.post(message | {"params": {"_meta": envelope("idle")}})
    if status != 200:
        raise RuntimeError(f"tools/list was answered with {status}: {body[:300]!r}")

    return [client]


async def _legacy(port: int) -> list[Connection]:
    client = Connection(port)
    await client.open()
    await client.initialize()
    return [client]


async def _listening(port: int) -> list[Connection]:
    [client] = await _legacy(port)
    stream = Connection(port)
    await stream.open()
    stream.headers = client.headers
    status = await stream.listen()
    if status != 200:
        raise RuntimeError(f"the GET stream was answered with {status}")

    return [client, stream]


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A line for each kind."""
    yield "memory for each client that waits"
    for kind, one in found.items():
        counts = f"{one['clients']} of {one['wanted']} came, "
        counts += f"{one['open']} of {one['connections']} connections are still open"
        yield f"  {kind:<28}{one['kib']:7.1f} KiB   {counts}"
        if one["refused"]:
            yield f"    the next was refused: {one['refused']}"


def main() -> None:
    """Measure and print."""
    end_in_order()
    parser = flags((__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the full numbers of clients")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        found = measured(options_of(options, Path(work)), options.share)

    sys.stdout.writelines(f"{line}\n" for line in table(found))


if __name__ == "__main__":
    main()
