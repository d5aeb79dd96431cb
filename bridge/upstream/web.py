"""HTTP as upstream channels use it: one client a channel, and errors that tell no secret.

A URL is named by scheme, host, port and path: user names and query strings may be secret. Header
values never appear in a text.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio.to_thread
import httpx
import httpx2

from bridge.upstream.channel import ChannelError, Limits
from bridge.upstream.lines import printable

SHOWN = 200  # characters of a foreign text in an error of ours
SPARE_CONNECTIONS = 32  # beside those of requests: for cancellations, replies, streams
KEEPALIVE_SECONDS = 4.0  # common servers drop an idle connection after 5: let go before they do
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
OURS = {
    "connection",
    "content-encoding",
    "content-length",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
}
NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.LocalProtocolError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class ConnectionLost(ChannelError):
    """The connection ended before the answer did."""


class Sending:
    """Whether a request has begun to leave: until then the server provably saw nothing of it."""

    def __init__(self) -> None:
        self.sent = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take httpx2's word for it (its `trace` extension); asking a proxy to connect is less."""
        if event.endswith(".send_request_headers.started"):
            self.sent = self.sent or info["request"].method != b"CONNECT"


class _QuietURL(httpx2.URL):
    """A URL that shows nothing secret: httpx2 logs each request's URL, at level INFO."""

    def __str__(self) -> str:
        return place(self)


def place(url: httpx2.URL | str) -> str:
    """A URL as errors and logs name it: scheme, host, port and path."""
    url = httpx2.URL(url)
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    return f"{url.scheme}://{url.netloc.decode('ascii')}{path}"


def excerpt(text: bytes | str) -> str:
    """How a foreign text begins, in one line, control characters escaped."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    return printable(data[: 4 * SHOWN])[:SHOWN]


@asynccontextmanager
async def open_client(
    url: str, headers: Mapping[str, str], limits: Limits, connect_timeout: float
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client for `url` that keeps no cookies, follows no redirects, asks for no compression.

    TLS and proxies are as the environment says (SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY …).

    Raises:
        ChannelError: `url` is no HTTP URL, or one of `headers` is not for the user to set.
    """
    _check(url, headers)
    configured = httpx2.Headers({"User-Agent": "mcp-agent-bridge"})
    configured.update(headers)
    try:
        trusted = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        client = httpx2.AsyncClient(
            headers=configured,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            verify=await anyio.to_thread.run_sync(_tls, *trusted),
            timeout=httpx2.Timeout(None, connect=connect_timeout, pool=connect_timeout),
            limits=httpx2.Limits(
                max_connections=limits.in_flight + SPARE_CONNECTIONS,
                max_keepalive_connections=SPARE_CONNECTIONS,
                keepalive_expiry=KEEPALIVE_SECONDS,
            ),
        )
    except OSError as exc:
        raise ChannelError(f"cannot load TLS certificates: {_reason(exc)}", sent=False) from exc
    except ImportError as exc:
        raise ChannelError(f"cannot use the environment's proxy: {exc}", sent=False) from exc
    except (ValueError, httpx2.InvalidURL):
        # Not chained: the text may hold the proxy's password.
        wrong = "the environment's proxy is no URL that can be used; check HTTP_PROXY and the like"
        raise ChannelError(wrong, sent=False) from None

    async with client:
        yield client


def _check(url: str, headers: Mapping[str, str]) -> None:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL()

    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ChannelError("the URL is not an http:// or https:// URL", sent=False)

    for name in headers:
        if name.lower() in OURS:
            raise ChannelError(f'the header "{name}" is set by bridge; remove it', sent=False)

    _check_headers(headers)


@lru_cache(maxsize=4)
def _tls(_file: str | None, _directory: str | None) -> ssl.SSLContext:
    """What is trusted, as the environment says; slow to load, so kept while that says the same."""
    return httpx2.create_ssl_context()


@asynccontextmanager
async def exchange(
    client: httpx2.AsyncClient,
    method: str,
    url: httpx2.URL,
    headers: Mapping[str, str],
    *,
    content: bytes | None = None,
    sending: Sending,
) -> AsyncIterator[httpx2.Response]:
    """Send one HTTP request; the response's body is not read yet, and closed at the end.

    Raises:
        ChannelError: There is no response; `sent` is exact.
    """
    _check_headers(headers)
    request = client.build_request(
        method,
        url,
        headers={**headers, "Accept-Encoding": "identity"},
        content=content,
        extensions={"trace": sending.trace},
    )
    request.url = _QuietURL(request.url)
    try:
        with translated(request.url, sent=True):
            response = await client.send(request, stream=True)
    except ChannelError as exc:
        exc.sent = exc.sent and sending.sent
        raise

    try:
        yield response
    finally:
        with suppress(httpx2.HTTPError, OSError):
            await response.aclose()


@contextmanager
def translated(url: httpx2.URL, *, sent: bool) -> Iterator[None]:
    """Turn what the HTTP libraries raise into ChannelError."""
    try:
        yield
    except httpx2.LocalProtocolError:
        # Its text, and that of whatever it is chained to, may quote a header's value.
        raise ChannelError("HTTP cannot carry the request; check its headers", sent=False) from None
    except NEVER_SENT as exc:
        raise ChannelError(f"cannot connect to {place(url)}: {_reason(exc)}", sent=False) from exc
    except (httpx2.HTTPError, httpx2.StreamError, httpx.HTTPError, OSError) as exc:
        raise ConnectionLost(
            f"the connection to {place(url)} was lost: {_reason(exc)}", sent=sent
        ) from exc


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if HEADER_NAME.fullmatch(name) is None:
            raise ChannelError(f'"{excerpt(name)}" cannot be the name of a header', sent=False)

        plain = value.replace("\t", " ")
        if not plain.isascii() or not plain.isprintable() or plain != plain.strip():
            raise ChannelError(
                f'HTTP cannot carry the value of the header "{name}": it holds spaces at an end, '
                "line breaks, control or non-ASCII characters",
                sent=False,
            )


def _reason(exc: BaseException) -> str:
    """What is at the bottom of an error, which the libraries on the way up describe less well."""
    while isinstance(cause := exc.__cause__ or exc.__context__, Exception):
        exc = cause.exceptions[0] if isinstance(cause, ExceptionGroup) else cause

    if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) and (exc.errno or 0) > 0:
        return os.strerror(exc.errno or 0)

    return excerpt(str(exc)) or type(exc).__name__
