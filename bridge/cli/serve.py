"""`bridge serve`: the configured toolset, for MCP clients."""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from pathlib import Path

from bridge.cli.config_files import chosen
from bridge.cli.loop import run_async, until_told
from bridge.cli.output import note, show_log
from bridge.config.load import load
from bridge.config.network import is_host
from bridge.config.settings import Settings
from bridge.errors import BridgeError, ConfigError
from bridge.gateway.serving import TRANSPORTS, serve_settings
from bridge.gateway.workers import serve_workers

INTERRUPTED = 128 + signal.SIGINT


def run(
    config: list[Path] | None,
    demo: bool,
    transport: str,
    host: str | None,
    port: int | None,
    workers: int | None = None,
) -> int:
    """Serve until told to end; says where, and how a client is pointed there.

    Returns the exit code: 0, also after SIGTERM; 130 after SIGINT.

    Raises:
        ConfigError: The configuration, a flag, or the address cannot be used.
    """
    if transport not in TRANSPORTS:
        raise ConfigError(f'--transport: "{transport}" is not one of {", ".join(TRANSPORTS)}')

    if host is not None and not is_host(host):
        raise ConfigError(
            f'--host: "{host}" is no host. Write a name or an address without brackets and '
            "port, such as 127.0.0.1"
        )

    if transport == "stdio" and sys.stdin is None:
        raise ConfigError("standard input is closed, and the client speaks there: connect it")

    _check_workers(workers, transport)
    show_log()
    settings = load(chosen(config, demo, "bridge serve"))
    count = workers or settings.serve.http.workers

    def ready(endpoint: str) -> None:
        note(_welcome(settings, endpoint, transport))

    serve = partial(serve_settings, settings, transport, host, port, ready)
    if transport == "http" and count > 1:
        serve = partial(serve_workers, settings, count, host, port, ready)

    try:
        told = run_async(until_told, serve, signal.SIGTERM, signal.SIGINT)
    except (OSError, ExceptionGroup) as exc:
        broken = _broken_stream(exc)
        if transport != "stdio" or broken is None:
            raise

        raise BridgeError(
            f"the client cannot be reached over stdio: {broken.strerror or broken}"
        ) from exc

    return INTERRUPTED if told == signal.SIGINT else 0


def _check_workers(workers: int | None, transport: str) -> None:
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers: {workers} processes cannot serve: write 1 or more")

    if workers not in (None, 1) and transport != "http":
        raise ConfigError(
            f"--workers: over {transport} one process serves all: leave it out, or serve over http"
        )


def _broken_stream(exc: Exception) -> OSError | None:
    """The first of the errors that a stream gives, where nothing else went wrong."""
    if isinstance(exc, ExceptionGroup):
        found = [_broken_stream(one) for one in exc.exceptions]
        return found[0] if all(found) else None

    return exc if isinstance(exc, OSError) else None


def _welcome(settings: Settings, endpoint: str, transport: str) -> str:
    name = settings.serve.name
    kind = "sse" if transport == "sse" else "http"
    entry: dict[str, object] = {"type": kind, "url": endpoint}
    if settings.serve.http.token is not None:
        entry["headers"] = {"Authorization": "Bearer <the configured token>"}

    snippet = json.dumps({"mcpServers": {name: entry}}, indent=2)
    return f"{name} serves {endpoint}\nPoint a client at it:\n{snippet}\nStop it with Ctrl-C."
