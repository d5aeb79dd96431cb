"""Which names a server goes by: Host and Origin of a request, parsed and compared exactly.

A web page that a person visits may let its own name point here (DNS rebinding) or simply send
requests here. It cannot choose the Host and Origin that the browser sends with them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

NAME = r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)"
AUTHORITY = re.compile(NAME + r"(?::(?P<port>[0-9]{1,5}))?")
ORIGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://" + AUTHORITY.pattern)
DEFAULT_PORTS = {"http": 80, "https": 443}
WILDCARDS = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Host:
    """A name or address in its plain form, and a port; None where none was written."""

    name: str
    port: int | None


@dataclass(frozen=True, slots=True)
class Names:
    """What a server accepts, beside the loopback names that it always goes by."""

    hosts: frozenset[Host]
    origins: frozenset[tuple[str, Host]]

    def accepts_host(self, value: str) -> bool:
        """Whether a Host header names us. A name given without port stands for any port."""
        host = parse_host(value)
        if host is None:
            return False

        return is_loopback(host.name) or host in self.hosts or Host(host.name, None) in self.hosts

    def accepts_origin(self, value: str) -> bool:
        """Whether pages of this Origin may call us: those of this machine, and those named."""
        origin = parse_origin(value)
        if origin is None:
            return False

        scheme, host = origin
        return (scheme in DEFAULT_PORTS and is_loopback(host.name)) or origin in self.origins


def names_of(bound_host: str, hosts: Iterable[str], origins: Iterable[str]) -> Names:
    """The names of a server that listens on `bound_host` and was given further ones.

    Raises:
        ValueError: A name is neither `host` nor `host:port`, or an origin is not
            `scheme://host[:port]`; the text names it.
    """
    listed = list(hosts) if bound_host in WILDCARDS else [_bracketed(bound_host), *hosts]
    return Names(
        frozenset(
            _read(parse_host, value, "a host is written name or name:port") for value in listed
        ),
        frozenset(
            _read(parse_origin, value, "an origin is written scheme://name[:port]")
            for value in origins
        ),
    )


@lru_cache(1024)
def parse_host(value: str) -> Host | None:
    """`name[:port]` and nothing else: no userinfo, no path, no spaces."""
    match = AUTHORITY.fullmatch(value)
    return _host(match) if match is not None else None


@lru_cache(1024)
def parse_origin(value: str) -> tuple[str, Host] | None:
    """`scheme://name[:port]` and nothing else; the scheme's own port is filled in."""
    match = ORIGIN.fullmatch(value)
    host = _host(match) if match is not None else None
    if match is None or host is None:
        return None

    scheme = match["scheme"].lower()
    return scheme, host if host.port is not None else Host(host.name, DEFAULT_PORTS.get(scheme))


@lru_cache(1024)
def is_loopback(name: str) -> bool:
    """Whether a plain name or address can only mean this machine."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host(match: re.Match[str]) -> Host | None:
    port = int(match["port"]) if match["port"] else None
    if port is not None and port > 65535:
        return None

    name = match["name"].lower()
    if name.startswith("["):
        try:
            name = str(ipaddress.IPv6Address(name[1:-1]))
        except ValueError:
            return None

    return Host(name, port)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _read(parse: Callable[[str], T | None], value: str, form: str) -> T:
    parsed = parse(value)
    if parsed is None:
        raise ValueError(f'"{value}" is not usable: {form}')

    return parsed
