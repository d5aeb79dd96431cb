"""`bridge serve`: the configured toolset, for MCP clients."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import anyio

from bridge.cli.output import note
from bridge.config.load import load
from bridge.config.settings import Settings
from bridge.errors import ConfigError
from bridge.gateway.serving import TRANSPORTS, serve_settings

DEFAULT = Path("bridge.yaml")


def serve(
    config: list[Path] | None, demo: bool, transport: str, host: str | None, port: int | None
) -> None:
    """Serve until interrupted; says on stderr where, and how a client is pointed there.

    Raises:
        ConfigError: The configuration, a flag, or the address cannot be used.
    """
    if transport not in TRANSPORTS:
        raise ConfigError(f'--transport: "{transport}" is not one of {", ".join(TRANSPORTS)}')

    settings = load(_paths(config, demo))

    def ready(endpoint: str) -> None:
        note(_welcome(settings, endpoint, transport))

    anyio.run(serve_settings, settings, transport, host, port, ready)


def _paths(config: list[Path] | None, demo: bool) -> list[Path]:
    if demo:
        return [demo_config(), *(config or ())]

    if config:
        return config

    if DEFAULT.exists():
        return [DEFAULT]

    raise ConfigError(
        f"no configuration: there is no {DEFAULT} here; name a file, or try: bridge serve --demo"
    )


def demo_config() -> Path:
    """The demo's configuration: packaged, or in the source tree."""
    package = Path(str(resources.files("bridge")))
    packaged = package / "demo" / "demo.yaml"
    return packaged if packaged.exists() else package.parent / "configs" / "demo.yaml"


def _welcome(settings: Settings, endpoint: str, transport: str) -> str:
    name = settings.serve.name
    kind = "sse" if transport == "sse" else "http"
    entry: dict[str, object] = {"type": kind, "url": endpoint}
    if settings.serve.http.token is not None:
        entry["headers"] = {"Authorization": "Bearer <the configured token>"}

    snippet = json.dumps({"mcpServers": {name: entry}}, indent=2)
    return f"{name} serves {endpoint}\nPoint a client at it:\n{snippet}\nStop it with Ctrl-C."
