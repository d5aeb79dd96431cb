"""The server over its standard streams."""

from __future__ import annotations

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.servers.everything.http import Era


async def serve_stdio(server: Server[Any], era: Era | None) -> None:
    """Serve until the client hangs up; with an era, as a server that knows no other."""
    options = server.create_initialization_options(NotificationOptions(True, True, True))
    if era == "modern":
        server.middleware.insert(0, _refuse_the_handshake)

    async with stdio_server() as (inbox, outbox):
        if era == "legacy":
            await serve_loop(server, inbox, outbox, lifespan_state={}, init_options=options)
        else:
            await server.run(inbox, outbox, options)


async def _refuse_the_handshake(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    if ctx.method != "initialize":
        return await call_next(ctx)

    asked = (ctx.params or {}).get("protocolVersion", "unknown")
    raise MCPError(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version {asked}",
        {"supported": [*MODERN_PROTOCOL_VERSIONS], "requested": asked},
    )
