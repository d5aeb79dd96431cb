"""From settings to a login at an upstream."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from bridge.config.oauth import OAuthSettings
from bridge.gateway.resolve import resolve
from bridge.gateway.state import state_directory
from bridge.upstream.credentials import Credentials

Login: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Takes an upstream's name and the URL where a person logs in to it, and shows it to one."""


class Account(Credentials, Protocol):
    """Credentials that come of a person's login."""

    async def log_in(self) -> None:
        """Have a person log in, whether the server asked for that or not.

        Raises:
            ChannelError: Nothing came of it.
        """
        ...

    def begin_anew(self) -> None:
        """Let the next request need a person, whatever was kept; that stays until one comes."""
        ...


def to_account(name: str, url: str, settings: OAuthSettings, login: Login | None) -> Account:
    """What logs in to an upstream; without `login` no person is asked.

    The SDK's part of it takes long to load, and is loaded only where it is wanted.
    """
    where = f"upstreams.{name}.oauth"
    make = resolve("bridge.upstream.oauth:OAuth", where)
    registration = resolve("bridge.upstream.oauth_registration:Registration", where)
    secret = settings.client_secret
    account: Account = make(
        name,
        url,
        token_store(url, settings),
        registration(
            settings.client_id or "",
            "" if secret is None else secret.get_secret_value(),
            settings.client_metadata_url or "",
            settings.issuer or "",
            settings.scopes,
            settings.redirect_port,
        ),
        login,
    )
    return account


def token_store(url: str, settings: OAuthSettings, environ: Mapping[str, str] = os.environ) -> Path:
    """The file that a login is kept in: one for each URL, issuer and client."""
    if settings.token_store is not None:
        return settings.token_store

    told = "\n".join((url, settings.issuer or "", settings.client_id or ""))
    name = hashlib.sha256(told.encode()).hexdigest()[:32]
    return state_directory(environ) / "logins" / f"{name}.json"
