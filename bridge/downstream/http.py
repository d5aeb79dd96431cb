"""Streamable HTTP: one endpoint, both eras, over the SDK's sessions and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.downstream.guard import Bounds
from bridge.downstream.handlers import Handlers
from bridge.downstream.server import Front
from bridge.downstream.web import Address, not_here, open_door, serve_app
from bridge.errors import ConfigError

METHODS = ("GET", "POST", "DELETE")


async def serve_http(
    handlers: Handlers,
    host: str = "127.0.0.1",
    port: int = 8808,
    path: str = "/mcp",
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    on_ready: Callable[[str], None] = lambda endpoint: None,
    *,
    confirm_wait: float = 300.0,
    bounds: Bounds | None = None,
) -> None:
    """Serve over Streamable HTTP until cancelled; see `Address` for the parameters.

    `confirm_wait` is how long a legacy client's person may think before a call is refused.

    Raises:
        ConfigError: The address cannot be used, or other machines could call without a token.
    """
    if not path.startswith("/"):
        raise ConfigError(f'the path "{path}" must begin with "/"')

    bounds = bounds or Bounds()
    front = Front(handlers, confirm_wait=confirm_wait, most_calls=bounds.calls)
    manager = StreamableHTTPSessionManager(
        front.server,
        max_request_body_size=bounds.body_bytes,
        # Our guard has compared Host and Origin already, exactly; the SDK compares prefixes.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    door = await open_door(Address(host, port, path, token, allowed_hosts, allowed_origins))
    with door.socket:
        await serve_app(front, _endpoint(path, manager), door, on_ready, bounds, manager.run())


def _endpoint(path: str, manager: StreamableHTTPSessionManager) -> ASGIApp:
    elsewhere = not_here(path)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != path:
            await elsewhere(scope, receive, send)
        elif scope["method"] in METHODS:
            await manager.handle_request(scope, receive, send)
        else:
            allow = {"Allow": ", ".join(METHODS)}
            await PlainTextResponse("method not allowed\n", 405, allow)(scope, receive, send)

    return app
