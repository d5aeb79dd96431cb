"""What may be said of a login at an upstream (MCP, authorization)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationInfo, field_validator

from bridge.config.closed import Closed
from bridge.config.fields import Text, bad, fits, number_as_text, wrong
from bridge.config.network import Port, Url


def _is_secret(value: Any) -> SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else number_as_text(value)
    if not isinstance(text, str) or not re.fullmatch("[ -~]+", text):
        raise bad('this is no secret. Write plain text, best as "${CLIENT_SECRET}".')

    return SecretStr(text)


def _is_metadata_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or parts.path in {"", "/"}:
        raise bad("a client's own description is at an https URL with a path. Write that one.")

    return text


def _is_file(value: Any) -> Any:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise wrong("is no file. Write a path, such as login.json.")

    return Path(value)


def login_in_words(value: Any) -> Any:
    """`true` is a login of which nothing is settled, `false` is none."""
    if value in (True, "true"):
        return {}

    if value in (False, "false"):
        return None

    if isinstance(value, str | int | float | list | tuple):
        raise wrong("is no login. Write true, or a mapping of what is settled, or leave it out.")

    return value


ClientId = Annotated[
    Text,
    BeforeValidator(number_as_text),
    fits(re.compile(r"[ -~]+"), wrong, "is no client id. Write it as the server gave it."),
]
ClientSecret = Annotated[SecretStr, BeforeValidator(_is_secret)]
MetadataUrl = Annotated[Url, AfterValidator(_is_metadata_url)]
Scope = Annotated[
    Text,
    fits(  # RFC 6749, section 3.3
        re.compile(r"[!#-\[\]-~]+"),
        wrong,
        "is no scope. Write one word for each, without quotation marks and backslashes.",
    ),
]
StoreFile = Annotated[Path, BeforeValidator(_is_file)]


class OAuthSettings(Closed):
    """How bridge logs in to an upstream; everything may be left out.

    `client_id` and `client_secret` are bridge's, where it was registered by hand, `issuer` is
    the authorization server that they are for. `client_metadata_url` is a description of bridge
    that servers can read instead. `scopes` are asked for instead of those that the server names.
    `redirect_port` is where the browser comes back to; 0 takes any free one. `token_store` is the
    file that the login is kept in; None is one in the user's state directory.
    """

    client_id: ClientId | None = None
    client_secret: ClientSecret | None = None
    client_metadata_url: MetadataUrl | None = None
    issuer: Url | None = None
    scopes: tuple[Scope, ...] = ()
    redirect_port: Port = 0
    token_store: StoreFile | None = None

    @field_validator("client_secret", mode="after")
    @classmethod
    def _has_an_id(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if secret is not None and info.data.get("client_id", True) is None:
            raise bad("this is for a client_id, and there is none. Add one, or remove this.")

        return secret
