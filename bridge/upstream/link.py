"""A channel whose era is known: what every request must carry there, and how the era is found.

The modern era (2026-07-28) has no handshake; each request carries its own envelope. The legacy
era (2024-11-05 … 2025-11-25) begins with `initialize`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.telemetry import log
from bridge.upstream.capabilities import SEVERITY, for_legacy, wants
from bridge.upstream.channel import (
    NO_OPTIONS,
    Channel,
    ChannelError,
    HttpStatusError,
    Options,
    Params,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.envelope import legacy_params, modern_params
from bridge.upstream.protocol import (
    CLIENT_INFO,
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    SERVER_INFO_KEY,
    SET_LEVEL,
    UNSUPPORTED_VERSION,
    Era,
    Transport,
)
from bridge.upstream.routing import routing_headers

SETTING = Options(timeout=10.0)


class WrongAnswer(ChannelError):
    """What answered is not an MCP server we can speak with."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


@dataclass(slots=True)
class Link:
    """One negotiated conversation with a server."""

    channel: Channel
    transport: Transport
    era: Era
    protocol_version: str
    capabilities: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    """The least severe log message that a legacy server was told to send; None: not told."""

    @property
    def is_open(self) -> bool:
        """Whether requests can still be answered."""
        return self.channel.is_open

    @property
    def announces_tools(self) -> bool:
        """Whether the server says that it tells when its tools change."""
        return self.announces("tools")

    def announces(self, capability: str) -> bool:
        """Whether the server says that it tells when what it has of this changes."""
        declared = self.capabilities.get(capability)
        return isinstance(declared, dict) and bool(declared.get("listChanged"))

    def request(
        self, method: str, params: Params, options: Options = NO_OPTIONS
    ) -> Coroutine[Any, Any, Result]:
        """Send one request as this era wants it; see `Channel.request`."""
        caller = options.caller
        if self.era == "modern":
            params, options = modern_request(self.transport, method, params, options)
        elif caller is not None:
            params = legacy_params(params, caller)
            if caller.log_level is not None:
                return self._widened(caller.log_level, method, params, options)

        return self.channel.request(method, params, options)

    async def _widened(self, level: str, method: str, params: Params, options: Options) -> Result:
        await self._widen(level)
        return await self.channel.request(method, params, options)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        await self.channel.notify(method, params)

    async def _widen(self, level: str) -> None:
        """Have a legacy server send log messages from `level` on, if it does not do so already.

        It has one level for everybody, so the most talkative one is set; each client gets what it
        wants of that. What comes of it does not matter to the call.
        """
        has_logging = isinstance(self.capabilities.get("logging"), dict)
        if not has_logging or level not in SEVERITY or wants(self.log_level, level):
            return

        self.log_level = level
        try:
            await self.channel.request(SET_LEVEL, {"level": level}, SETTING)
        except (RpcError, ChannelError) as exc:
            log.info("the log level %s was not set: %s", level, exc)


def modern_request(
    transport: Transport, method: str, params: Params, options: Options
) -> tuple[Params, Options]:
    """Add the envelope (MCP 2026-07-28, basic) and, over HTTP, the routing headers."""
    params = modern_params(method, params, options.caller)
    if transport != "http":
        return params, options

    headers = {**routing_headers(method, params), **options.headers}
    return params, Options(options.timeout, options.on_progress, headers, options.caller)


async def negotiate(
    channel: Channel,
    transport: Transport,
    remembered: Era | None,
    probe_seconds: float,
    client: Caller | None = None,
) -> Link:
    """Find the server's era, by asking it, and open the conversation in that era.

    A server whose era is remembered is taken at that; one that refuses is asked again. A legacy
    server is told what `client`, whose session this is alone, can be asked.

    Raises:
        ChannelError: The server did not answer, or not as an MCP server.
        RpcError: The server refused both eras.
    """
    if remembered != "legacy":
        link = await _discover(channel, transport, probe_seconds)
        if link is not None:
            return link

    try:
        return await _initialize(channel, transport, client)
    except RpcError as exc:
        # A slow server may have answered the probe after we stopped waiting, and be modern now.
        if exc.code != UNSUPPORTED_VERSION:
            raise

        link = await _discover(channel, transport, probe_seconds)
        if link is None:
            raise

        return link


async def _discover(channel: Channel, transport: Transport, seconds: float) -> Link | None:
    """Ask a modern server what it is; None if nothing says that this is one."""
    channel.protocol_version = MODERN_VERSION
    params, options = modern_request(transport, "server/discover", {}, Options(timeout=seconds))
    try:
        result = await _asked(channel, params, options)
    except (RpcError, RequestTimeout):
        return None
    except HttpStatusError as exc:
        if exc.status in {401, 403} or exc.status >= 500:
            raise

        return None

    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or MODERN_VERSION not in versions:
        return None

    meta = result.get("_meta")
    server = meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None
    return Link(
        channel,
        transport,
        "modern",
        MODERN_VERSION,
        _mapping(result.get("capabilities")),
        _mapping(server),
    )


async def _asked(channel: Channel, params: Params, options: Options) -> Result:
    """The answer to `server/discover`; a server that refuses the revision, and says in the same
    breath that it has it, is asked once more (MCP 2026-07-28, versioning).
    """
    try:
        return await channel.request("server/discover", params, options)
    except RpcError as exc:
        data = exc.error.get("data")
        supported = data.get("supported") if isinstance(data, dict) else None
        has_it = isinstance(supported, list) and MODERN_VERSION in supported
        if exc.code != UNSUPPORTED_VERSION or not has_it:
            raise

    return await channel.request("server/discover", params, options)


async def _initialize(channel: Channel, transport: Transport, client: Caller | None) -> Link:
    channel.protocol_version = None
    params = {
        "protocolVersion": HANDSHAKE_VERSIONS[-1],
        "capabilities": for_legacy(client),
        "clientInfo": CLIENT_INFO,
    }
    result = await channel.request("initialize", params)
    version = result.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        raise WrongAnswer(
            f"the server wants protocol version {version!r}, which bridge does not speak"
        )

    channel.protocol_version = str(version)
    await channel.notify("notifications/initialized", {})
    return Link(
        channel,
        transport,
        "legacy",
        str(version),
        _mapping(result.get("capabilities")),
        _mapping(result.get("serverInfo")),
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
