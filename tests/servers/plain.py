"""A well-behaved MCP server made with the SDK, over any transport: `plain.py [http|sse PORT]`."""

from __future__ import annotations

import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("plain", log_level="CRITICAL")
calls: list[str] = []


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    calls.append(text)
    return text


@server.tool()
def heard() -> list[str]:
    """Return every text that was echoed, and every wait that began or was cancelled."""
    return calls


@server.tool()
def pid() -> int:
    """Return the server's process id."""
    return os.getpid()


@server.tool()
async def wait(name: str = "wait") -> str:
    """Wait for ever."""
    calls.append(f"{name} began")
    try:
        await anyio.sleep_forever()
    finally:
        calls.append(f"{name} ended")


@server.tool()
async def count(to: int, ctx: Context) -> int:
    """Count, reporting each step as progress."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"step {number}")

    return to


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    elif sys.argv[1] == "http":
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
