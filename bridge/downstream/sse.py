"""HTTP+SSE of 2024-11-05, for clients that speak nothing newer: GET /sse, POST /messages/.

The protocol deprecates it, so it is served only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.downstream.guard import Bounds
from bridge.downstream.handlers import Handlers
from bridge.downstream.server import Front
from bridge.downstream.web import Address, not_here, open_door, serve_app

STREAM = "/sse"
MESSAGES = "/messages/"


async def serve_sse(
    handlers: Handlers,
    host: str = "127.0.0.1",
    port: int = 8808,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    on_ready: Callable[[str], None] = lambda endpoint: None,
    *,
    confirm_wait: float = 300.0,
    bounds: Bounds | None = None,
) -> None:
    """Serve over HTTP+SSE until cancelled; see `Address` for the parameters.

    `confirm_wait` is how long a legacy client's person may think before a call is refused.

    Raises:
        ConfigError: The address cannot be used, or other machines could call without a token.
    """
    bounds = bounds or Bounds()
    front = Front(handlers, confirm_wait=confirm_wait, most_calls=bounds.calls)
    door = await open_door(Address(host, port, STREAM, token, allowed_hosts, allowed_origins))
    with door.socket:
        await serve_app(front, _endpoints(front, bounds), door, on_ready, bounds, nullcontext())


def _endpoints(front: Front, bounds: Bounds) -> ASGIApp:
    elsewhere, server = not_here(STREAM), front.server
    transport = SseServerTransport(
        MESSAGES,
        # Our guard has compared Host and Origin already, exactly; the SDK compares prefixes.
        TransportSecuritySettings(enable_dns_rebinding_protection=False),
        bounds.body_bytes,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == MESSAGES:
            await transport.handle_post_message(scope, receive, send)
        elif scope["path"] == STREAM and scope["method"] == "GET":
            async with transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        else:
            await elsewhere(scope, receive, send)

    return app
