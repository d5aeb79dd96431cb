"""HTTP as upstream channels use it: one client a channel, and single requests through it."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread
import httpx2

from bridge.upstream.channel import ChannelError, Limits
from bridge.upstream.client import (
    KEEPALIVE_SECONDS,
    SPARE_CONNECTIONS,
    Client,
    Response,
    Sending,
    check_headers,
)
from bridge.upstream.credentials import AuthorizedClient, Credentials
from bridge.upstream.direct import DirectClient
from bridge.upstream.pool import Origin, Pool
from bridge.upstream.proxied import ProxiedClient
from bridge.upstream.wording import reason

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
STANDARD = {"Accept": "*/*", "User-Agent": "mcp-agent-bridge"}
PORTS = {"http": 80, "https": 443}


@asynccontextmanager
async def open_client(
    url: str,
    headers: Mapping[str, str],
    limits: Limits,
    connect_timeout: float,
    credentials: Credentials | None = None,
) -> AsyncIterator[Client]:
    """A client for `url` that keeps no cookies, follows no redirects, asks for no compression.

    TLS and proxies are as the environment says (SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY …).
    `credentials` are presented with each request, where there are some.

    Raises:
        ChannelError: `url` is no HTTP URL, or one of `headers` is not for the user to set.
    """
    async with _opened(url, headers, limits, connect_timeout) as client:
        yield client if credentials is None else AuthorizedClient(client, credentials)


@asynccontextmanager
async def _opened(
    url: str, headers: Mapping[str, str], limits: Limits, connect_timeout: float
) -> AsyncIterator[Client]:
    parsed = _check(url, headers)
    standing = _standing(headers)
    try:
        trusted = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        tls = await anyio.to_thread.run_sync(_tls, *trusted)
    except OSError as exc:
        raise ChannelError(f"cannot load TLS certificates: {reason(exc)}", sent=False) from exc

    most = limits.in_flight + SPARE_CONNECTIONS
    proxied = _proxied(standing, tls, most, connect_timeout)
    if proxied is not None and not _goes_straight(parsed):
        async with proxied:
            yield ProxiedClient(proxied)

        return

    port = parsed.port or PORTS[parsed.scheme]
    host = parsed.raw_host.decode("ascii")
    origin = Origin(host, port, tls if parsed.scheme == "https" else None)
    pool = Pool(origin, most, connect_timeout)
    try:
        yield DirectClient(pool, standing)
    finally:
        await pool.aclose()


def _check(url: str, headers: Mapping[str, str]) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL()

    if parsed.scheme not in PORTS or not parsed.host:
        raise ChannelError("the URL is not an http:// or https:// URL", sent=False)

    for name in headers:
        if name.lower() in OURS:
            raise ChannelError(f'the header "{name}" is set by bridge; remove it', sent=False)

    check_headers(headers)
    return parsed


def _standing(headers: Mapping[str, str]) -> dict[str, str]:
    """What rides on every request: the user's headers, ours where there are none, but no coding."""
    theirs = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
    named = {name.lower() for name in theirs}
    ours = {name: value for name, value in STANDARD.items() if name.lower() not in named}
    return {**ours, **theirs, "Accept-Encoding": "identity"}


@lru_cache(maxsize=4)
def _tls(_file: str | None, _directory: str | None) -> ssl.SSLContext:
    """What is trusted, as the environment says; slow to load, so kept while that says the same."""
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _proxied(
    headers: Mapping[str, str], tls: ssl.SSLContext, most: int, connect_timeout: float
) -> httpx2.AsyncClient | None:
    """A client that uses the proxies that the environment names; None if it names none.

    Raises:
        ChannelError: One of them is none that can be used, whether it would be or not.
    """
    if getproxies().keys().isdisjoint({"http", "https", "all"}):
        return None

    try:
        return httpx2.AsyncClient(
            headers=dict(headers),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            verify=tls,
            timeout=httpx2.Timeout(None, connect=connect_timeout, pool=connect_timeout),
            limits=httpx2.Limits(
                max_connections=most,
                max_keepalive_connections=most,
                keepalive_expiry=KEEPALIVE_SECONDS,
            ),
        )
    except ImportError as exc:
        raise ChannelError(f"cannot use the environment's proxy: {exc}", sent=False) from exc
    except (ValueError, httpx2.InvalidURL):
        # Not chained: the text may hold the proxy's password.
        wrong = "the environment's proxy is no URL that can be used; check HTTP_PROXY and the like"
        raise ChannelError(wrong, sent=False) from None


def _goes_straight(url: httpx2.URL) -> bool:
    """Whether the environment exempts this URL from its proxies, or names none for its scheme."""
    if getproxies().keys().isdisjoint({url.scheme, "all"}):
        return True

    return bool(proxy_bypass(url.netloc.decode("ascii")))


@asynccontextmanager
async def exchange(
    client: Client,
    method: str,
    url: httpx2.URL,
    headers: Mapping[str, str],
    *,
    content: bytes | None = None,
    sending: Sending,
) -> AsyncIterator[Response]:
    """Send one HTTP request; the response's body is not read yet, and let go of at the end.

    Raises:
        ChannelError: There is no response; `sent` is exact.
    """
    response = await client.template(method, url, headers).send({}, content, sending)
    try:
        yield response
    finally:
        await response.aclose()
