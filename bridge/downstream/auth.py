"""Who is asking over HTTP: whoever has the one token, or anyone where none is configured."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.downstream.asker import LOCAL
from bridge.downstream.names import is_loopback
from bridge.errors import ConfigError, Unauthorized


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """Compares what clients send with a token, in the same time whatever they send."""

    token: str | None = field(repr=False)
    digest: bytes = field(repr=False, default=b"")

    def principal(self, authorization: Sequence[str]) -> str:
        """The principal behind the values of a request's Authorization headers.

        It is named by the token's hash, so that no log or record holds the token.

        Raises:
            Unauthorized: There is a token, and these headers are not exactly it.
        """
        if self.token is None:
            return LOCAL

        if not authorization:
            raise Unauthorized("this server wants a token: send Authorization: Bearer <token>")

        scheme, _, sent = authorization[0].partition(" ")
        is_same = hmac.compare_digest(_digest(sent.strip(" ")), self.digest)
        if len(authorization) > 1 or scheme.lower() != "bearer" or not is_same:
            raise Unauthorized("the token is not the one this server was given")

        return f"token:{self.digest.hex()[:12]}"


def token_check(host: str, token: str | None) -> TokenCheck:
    """The check for a server that listens on `host`.

    Raises:
        ConfigError: The token is empty, or other machines could call without one.
    """
    if token is not None and not token.strip():
        raise ConfigError("the token is empty: give one, or none to serve this machine alone")

    if token is None and not is_loopback(host):
        raise ConfigError(
            f'"{host or "every address"}" can be reached from other machines, and no token is '
            "configured: set serve.http.token, or listen on 127.0.0.1"
        )

    return TokenCheck(token, b"" if token is None else _digest(token))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
