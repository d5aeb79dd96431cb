"""Where an MCP server is found: a command to start, or a URL to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from bridge.errors import ConfigError
from bridge.upstream.command import Command, masked

HttpTransport: TypeAlias = Literal["auto", "http", "sse"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An MCP server's URL, and what we present to it.

    `transport` is "http" (Streamable HTTP), "sse" (HTTP+SSE) or "auto": the first, or the
    second if the server is that old.
    """

    url: str
    transport: HttpTransport = "auto"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def without_secrets(self, text: str) -> str:
        """`text` with every header value and every value of the URL's query taken out."""
        secrets = [*self.headers.values(), *(value for _, value in parse_qsl(self._query))]
        secrets += [value.partition(" ")[2] for value in self.headers.values()]
        return masked(text, [*secrets, self._query])

    @property
    def _query(self) -> str:
        return urlsplit(self.url).query

    def __str__(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


Target: TypeAlias = Command | Endpoint


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
    if isinstance(target, Command | Endpoint):
        _refuse(headers or env, f"headers and env belong into the {type(target).__name__} itself")
        return target

    if isinstance(target, str):
        if urlsplit(target).scheme not in {"http", "https"}:
            raise ConfigError(
                f'"{target}" is not an http(s) URL; give a command as a list: {target.split()}'
            )

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
