"""What errors and logs say of HTTP: where, and why, but never a secret.

A URL is named by scheme, host, port and path: user names and query strings may be secret. Header
values never appear in a text.
"""

from __future__ import annotations

import os
import ssl

import httpx2

from bridge.upstream.channel import ChannelError
from bridge.upstream.lines import printable

SHOWN = 200  # characters of a foreign text in an error of ours


class ConnectionLost(ChannelError):
    """The connection ended before the answer did."""


def place(url: httpx2.URL | str) -> str:
    """A URL as errors and logs name it: scheme, host, port and path."""
    url = httpx2.URL(url)
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    return f"{url.scheme}://{url.netloc.decode('ascii')}{path}"


def excerpt(text: bytes | str) -> str:
    """How a foreign text begins, in one line, control characters escaped."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    return printable(data[: 4 * SHOWN])[:SHOWN]


def reason(exc: BaseException) -> str:
    """What is at the bottom of an error, which the libraries on the way up describe less well."""
    while isinstance(cause := exc.__cause__ or exc.__context__, Exception):
        exc = cause.exceptions[0] if isinstance(cause, ExceptionGroup) else cause

    if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) and (exc.errno or 0) > 0:
        return os.strerror(exc.errno or 0)

    return excerpt(str(exc)) or type(exc).__name__
