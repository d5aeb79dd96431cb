"""One login at one upstream, for its own sake."""

from __future__ import annotations

from bridge.config.settings import UpstreamSettings
from bridge.core.context import local_context
from bridge.errors import ToolsetError, UpstreamUnavailable
from bridge.gateway.logins import Login, to_account
from bridge.upstream.channel import ChannelError
from bridge.upstream.target import Endpoint
from bridge.upstream.toolset import MCPToolset


async def log_in_to(name: str, settings: UpstreamSettings, login: Login) -> None:
    """Have a person log in to an upstream that has a login, also where one is kept already.

    The upstream is asked for its tools, since how it refuses says what it wants; one that wants
    a login only for calls is logged in to nevertheless.

    Raises:
        BridgeError: Nothing came of it; what was kept before stays.
    """
    assert settings.url is not None
    assert settings.oauth is not None
    account = to_account(name, settings.url, settings.oauth, login)
    account.begin_anew()
    target = Endpoint(settings.url, settings.transport, settings.headers, account)
    async with MCPToolset(target, name=name, connect_timeout=settings.connect_timeout) as upstream:
        try:
            await upstream.tools(local_context())
        except ToolsetError:
            if account.header() is None:
                raise

    if account.header() is None:
        try:
            await account.log_in()
        except ChannelError as exc:
            raise UpstreamUnavailable(f'upstream "{name}": {exc}') from exc
