"""Where an MCP server is found: a command to start, or a URL to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from bridge.errors import ConfigError
from bridge.upstream.command import Command
from bridge.upstream.credentials import Credentials
from bridge.upstream.secrets import masked, secrets_in_arguments, secrets_in_header, secrets_in_url

HttpTransport: TypeAlias = Literal["auto", "http", "sse"]


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """An MCP server's URL, and what we present to it; it shows neither secrets nor headers.

    `transport` is "http" (Streamable HTTP), "sse" (HTTP+SSE) or "auto": the first, or the
    second if the server is that old. `credentials`, where a header that stays the same will not
    do, authorize each request.
    """

    url: str
    transport: HttpTransport = "auto"
    headers: Mapping[str, str] = field(default_factory=dict)
    credentials: Credentials | None = None

    def without_secrets(self, text: str) -> str:
        """`text` without the values of headers, and without the URL's user, password and query."""
        secrets = list(secrets_in_url(self.url))
        for value in self.headers.values():
            secrets += secrets_in_header(value)

        if self.credentials is not None:
            secrets += self.credentials.secrets()

        return masked(text, secrets)

    def __str__(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"<Endpoint {self} {self.transport}>"


@dataclass(frozen=True, slots=True, repr=False)
class Hosted:
    """A server that another process of ours keeps the conversations with, for several of us.

    It is asked for by `name` at the Unix socket `place`. Where it turns out to need no such
    host, `itself` is called directly.
    """

    name: str
    place: str
    itself: Command | Endpoint

    def without_secrets(self, text: str) -> str:
        """`text` without what the server's own command or URL keeps secret."""
        return self.itself.without_secrets(text)

    def __str__(self) -> str:
        """The server's own command or URL."""
        return str(self.itself)

    def __repr__(self) -> str:
        return f"<Hosted {self.itself!r}>"


Target: TypeAlias = Command | Endpoint | Hosted


def to_target(
    target: str | Sequence[str] | Target,
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Target:
    """What Python callers write, as a target: a URL, or an argument list.

    Raises:
        ConfigError: A string that is not an http(s) URL (a command is a list), an empty list, or
            headers or variables that this target has no use for.
    """
    if isinstance(target, Command | Endpoint | Hosted):
        _refuse(headers or env, f"headers and env belong into the {type(target).__name__} itself")
        return target

    if isinstance(target, str):
        if urlsplit(target).scheme not in {"http", "https"}:
            words = target.split()
            said = f'"{target}" is not an http(s) URL; give a command as a list: {words}'
            raise ConfigError(masked(said, secrets_in_arguments(words)))

        _refuse(env, "env is for a command, and this is a URL")
        return Endpoint(target, headers=headers or {})

    if not target:
        raise ConfigError("a command needs at least the program to run")

    _refuse(headers, "headers are for a URL, and this is a command; give it credentials in env")
    return Command(tuple(target), env or {})


def _refuse(given: Mapping[str, str] | None, why: str) -> None:
    """Raises ConfigError if something was given: it must not be dropped in silence."""
    if given:
        raise ConfigError(why)
