"""Requests to a server that wants to know who we are, and may change its mind about that.

What is presented comes from `Credentials`, which get something better where the server refuses
it: a 401, or a 403 that asks for more scope, says that the request did not run, so it is sent
again (MCP, authorization; RFC 6750, section 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import httpx2

from bridge.upstream.bounded import finish
from bridge.upstream.channel import ChannelError
from bridge.upstream.client import Client, Response, Sending, Template
from bridge.upstream.clock import standing_still

REFUSAL_BYTES = 64 * 1024
REFUSAL_SECONDS = 1.0
VERSION_HEADER = "MCP-Protocol-Version"


class LoginNeeded(ChannelError):
    """A person must log in before the server runs anything; it ran nothing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a server refused a request: its `WWW-Authenticate`, and the revision that we spoke."""

    status: int
    challenge: str = ""
    version: str = ""

    @property
    def wants_scope(self) -> bool:
        """Whether it knows us, and we may too little."""
        return self.status == 403 and self.field("error") == "insufficient_scope"

    @property
    def scope(self) -> str:
        """The scopes that would do, separated by spaces; empty if it does not say."""
        return self.field("scope")

    def field(self, name: str) -> str:
        """One parameter of the challenge; empty if there is none (RFC 9110, section 11.2)."""
        found = re.search(rf'(?<![\w-]){name}\s*=\s*(?:"([^"]*)"|([^\s,"]+))', self.challenge)
        return "" if found is None else found[1] or found[2] or ""

    @property
    def is_about_us(self) -> bool:
        """Whether other credentials may help."""
        return self.status == 401 or self.wants_scope


class Credentials(Protocol):
    """Who we are to one server."""

    def header(self) -> str | None:
        """The value of `Authorization`, if one is known that has not expired."""
        ...

    async def current(self) -> str | None:
        """As `header`, after looking where it was kept, and renewing what has expired.

        Raises:
            ChannelError: They cannot be read or kept.
        """
        ...

    async def renewed(self, refusal: Refusal, used: str | None, *, again: bool) -> str:
        """Another value than `used`, which was refused; `again` if its like was, just before.

        Raises:
            ChannelError: There is none; says what to do. The refused request did not run.
        """
        ...

    def secrets(self) -> Iterable[str]:
        """What must not be shown."""
        ...


class AuthorizedClient:
    """A client whose requests carry credentials; see `Client`."""

    def __init__(self, client: Client, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials

    def template(self, verb: str, url: httpx2.URL, headers: Mapping[str, str]) -> Template:
        """See `Client.template`."""
        plain = self._client.template(verb, url, headers)
        return AuthorizedTemplate(plain, self._credentials, headers.get(VERSION_HEADER, ""))


class AuthorizedTemplate:
    """See `Template`. While new credentials are waited for, the request's time stands still."""

    def __init__(self, plain: Template, credentials: Credentials, version: str) -> None:
        self._plain = plain
        self._credentials = credentials
        self._version = version

    async def send(
        self, extra: Mapping[str, str], content: bytes | None, sending: Sending
    ) -> Response:
        """See `Template.send`."""
        used = self._credentials.header()
        if used is None:
            with standing_still(*sending.blocks):
                used = await self._credentials.current()

        had_scope = False
        for again in (False, True):
            response = await self._plain.send(_with(extra, used), content, sending)
            challenge = response.header("www-authenticate")
            refusal = Refusal(response.status, challenge, self._version)
            if not refusal.is_about_us or (had_scope and refusal.wants_scope):
                return response

            try:
                await finish(response, REFUSAL_BYTES, REFUSAL_SECONDS)
            finally:
                await response.aclose()

            had_scope = refusal.wants_scope
            sending.sent = False  # it was refused: nothing ran
            with standing_still(*sending.blocks):
                used = await self._credentials.renewed(refusal, used, again=again)

        return await self._plain.send(_with(extra, used), content, sending)


def _with(extra: Mapping[str, str], authorization: str | None) -> Mapping[str, str]:
    return extra if authorization is None else {**extra, "Authorization": authorization}
