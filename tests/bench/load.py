"""Load on one MCP endpoint over raw keep-alive HTTP; every answer is compared with what was asked.

    python -m tests.bench.load --port 8808 --era modern --calls 2000 --clients 32 --pid PID

It prints one JSON object: calls per second, p50 and p99 in ms, how many answers were wrong (and
the first of them), and of the process PID the CPU time in µs per call and its peak memory in MiB.
It uses asyncio's streams and the standard library only: what it costs is not what is measured,
but it runs on the same machine.
"""

# ruff: noqa: TID251 — what loads a server must cost as little as it can

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from dataclasses import dataclass
from typing import Any

from tests.bench import procfs
from tests.bench.wire import LEGACY, envelope, handshake, modern_headers

ENVELOPE = envelope("load")
MIB = 1024 * 1024
MOST_WARMING = 64


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked again and again, and how its answer is recognised."""

    method: str
    tool: str = ""
    kib: int = 0
    listed: int = 0

    def params(self, number: int) -> dict[str, Any]:
        """The params of the call of that number."""
        if self.method == "tools/list":
            return {}

        given = {"kib": self.kib} if self.kib else {"text": f"hello {number}"}
        return {"name": self.tool, "arguments": given}

    def is_right(self, number: int, answer: dict[str, Any]) -> bool:
        """Whether this answers the call of that number, wholly."""
        result = answer.get("result", {})
        if answer.get("id") != number or result.get("isError"):
            return False

        if self.method == "tools/list":
            return len(result.get("tools", ())) == self.listed

        wanted = "x" * 1024 * self.kib if self.kib else f"hello {number}"
        return [part.get("text") for part in result.get("content", ())] == [wanted]


class Connection:
    """One client's connection, which stays open."""

    def __init__(self, port: int, path: str = "/mcp", token: str = "") -> None:
        self._port, self._path = port, path
        self._always = f"Authorization: Bearer {token}\r\n".encode() if token else b""
        self.headers = b""

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=1 << 26
        )

    def close(self) -> None:
        self._writer.close()

    def ended(self) -> bool:
        """Whether the server has closed it."""
        return self._reader.at_eof()

    async def post(self, message: dict[str, Any]) -> tuple[int, dict[bytes, bytes], bytes]:
        """Send one message; its status, the headers and the whole body of what comes back.

        Where the server hung up on the silent client meanwhile, it connects again.
        """
        if self.ended():
            self.close()
            await self.open()

        body = json.dumps(message).encode()
        kinds = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        self._writer.write(self._head("POST") + kinds + length + body)
        status, headers = await self._answered()
        return status, headers, await self._body(headers)

    async def listen(self) -> int:
        """Open the legacy era's GET stream and leave it open; returns the status."""
        self._writer.write(self._head("GET") + b"Accept: text/event-stream\r\n\r\n")
        return (await self._answered())[0]

    async def initialize(self) -> None:
        """Begin a legacy session, to which everything after belongs."""
        self.headers = b""
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("load")}
        status, headers, body = await self.post(message)
        if status != 200:
            raise RuntimeError(f"initialize was answered with {status}: {body[:300]!r}")

        session = headers.get(b"mcp-session-id")
        name = b"Mcp-Session-Id: %s\r\n" % session if session else b""
        self.headers = f"MCP-Protocol-Version: {LEGACY}\r\n".encode() + name
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _head(self, verb: str) -> bytes:
        line = f"{verb} {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
        return line.encode() + self._always + self.headers

    async def _answered(self) -> tuple[int, dict[bytes, bytes]]:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = (line.partition(b":") for line in lines)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def _body(self, headers: dict[bytes, bytes]) -> bytes:
        if b"chunked" not in headers.get(b"transfer-encoding", b""):
            return await self._reader.readexactly(int(headers.get(b"content-length", 0)))

        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])

        await self._reader.readexactly(2)
        return b"".join(parts)


def message_of(body: bytes) -> dict[str, Any]:
    """The JSON-RPC answer in a body: JSON, or the last event of a stream of events."""
    if not body.startswith(b"{"):
        lines = [line for line in body.splitlines() if line.startswith(b"data:")]
        body = lines[-1][len(b"data:") :] if lines else b"{}"

    found = json.loads(body)
    return found if isinstance(found, dict) else {}


class Load:
    """So many clients, each asking its next as soon as it has its answer."""

    def __init__(self, job: Job, era: str, connections: list[Connection]) -> None:
        self._job, self._is_modern = job, era == "modern"
        self._connections = connections
        self._numbers = itertools.count(1)
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    async def open(self) -> None:
        """Connect every client, and let those of the legacy era begin their sessions."""
        for connection in self._connections:
            await connection.open()
            connection.headers = modern_headers(self._job.method, self._job.tool)

        if not self._is_modern:  # together: servers soon hang up on who is silent
            await asyncio.gather(*(one.initialize() for one in self._connections))

    async def run(self, calls: int) -> float:
        """Make so many calls; returns the seconds they took together."""
        budget = iter(range(calls))
        started = time.perf_counter()
        await asyncio.gather(*(self._worker(one, budget) for one in self._connections))
        return time.perf_counter() - started

    async def _worker(self, connection: Connection, budget: Any) -> None:
        for _ in budget:
            await self._one(connection)

    async def _one(self, connection: Connection) -> None:
        number = next(self._numbers)
        params = self._job.params(number)
        if self._is_modern:
            params["_meta"] = ENVELOPE

        message = {"jsonrpc": "2.0", "id": number, "method": self._job.method, "params": params}
        started = time.perf_counter()
        status, _, body = await connection.post(message)
        self.seconds.append(time.perf_counter() - started)
        if status != 200 or not self._job.is_right(number, message_of(body)):
            self.wrong.append(f"call {number} was answered with {status}: {body[:300]!r}")


async def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Warm up, then measure; see the module for what comes back."""
    job = Job("tools/call", options.tool, options.kib)
    if options.listed:
        job = Job("tools/list", listed=options.listed)

    place = (options.port, options.path, options.token)
    clients = [Connection(*place) for _ in range(options.clients)]
    load = Load(job, options.era, clients)
    await load.open()
    await load.run(min(MOST_WARMING, options.calls // 4) + options.clients)
    load.seconds.clear()
    before = procfs.cpu_seconds(options.pid)
    took = await load.run(options.calls)
    cpu = procfs.cpu_seconds(options.pid) - before
    for client in clients:
        client.close()

    ordered = sorted(load.seconds)
    return {
        "calls_per_s": round(options.calls / took, 1),
        "p50_ms": round(ordered[len(ordered) // 2] * 1e3, 3),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1e3, 3),
        "cpu_us_per_call": round(cpu / options.calls * 1e6, 1),
        "peak_mib": round(procfs.peak(options.pid) / MIB, 1),
        "wrong": len(load.wrong),
        "first_wrong": load.wrong[0] if load.wrong else None,
    }


def main() -> None:
    """Print what was measured as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pid", type=int, required=True, help="whose CPU time is counted")
    parser.add_argument("--era", choices=["modern", "legacy"], default="modern")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--path", default="/mcp")
    parser.add_argument("--token", default="")
    parser.add_argument("--tool", default="echo")
    parser.add_argument("--kib", type=int, default=0, help="what the tool blob is asked for")
    parser.add_argument("--listed", type=int, default=0, help="list instead, so many tools")
    print(json.dumps(asyncio.run(measured(parser.parse_args()))))  # noqa: T201


if __name__ == "__main__":
    main()
