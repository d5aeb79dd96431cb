"""A running gateway behind one front."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bridge.config.settings import Settings
from bridge.downstream.http import serve_http
from bridge.downstream.sse import serve_sse
from bridge.downstream.stdio import serve_stdio
from bridge.gateway.assembly import assemble
from bridge.gateway.keeping import keeping
from bridge.gateway.live import running
from bridge.gateway.observing import observing
from bridge.gateway.offerings import to_handlers
from bridge.gateway.sealing import sealing

TRANSPORTS = ("http", "stdio", "sse")


async def serve_settings(
    settings: Settings,
    transport: str = "http",
    host: str | None = None,
    port: int | None = None,
    on_ready: Callable[[str], None] = lambda endpoint: None,
) -> None:
    """Start every upstream and serve them over one transport, until cancelled.

    `host` and `port` win over the settings; `on_ready` takes the endpoint's URL once it listens.

    Raises:
        ConfigError: The address cannot be used, or not without a token; or what is to be told
            of calls cannot, or what is shared with other bridges.
        StoreError: The store of what is shared cannot be reached.
    """
    assembly = assemble(settings)
    async with (
        observing(assembly, transport) as seen,
        keeping(settings.results) as large,
        sealing(settings.serve.state) as seals,
        running(assembly) as gateway,
    ):
        settle = partial(gateway.gathered, settings.serve.startup_wait)
        handlers = to_handlers(assembly, settle, seen.observers, large, seals)
        if transport == "stdio":
            await serve_stdio(handlers)
            return

        http = settings.serve.http
        over_http = partial(serve_http, path=http.path, pages=seen.pages)
        serve = over_http if transport == "http" else serve_sse
        await serve(
            handlers,
            host or http.host,
            http.port if port is None else port,
            token=None if http.token is None else http.token.get_secret_value(),
            allowed_hosts=http.allowed_hosts,
            allowed_origins=http.allowed_origins,
            on_ready=on_ready,
        )
