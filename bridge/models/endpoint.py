"""One HTTP address of a provider: requests sent, repeated where that is safe, answers bounded.

An endpoint belongs to no task and to no event loop: each loop that uses it gets a client of its
own. No text and no log names a key: neither headers nor a URL's query are shown.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

import anyio
import httpx
from anyio.lowlevel import RunVar

from bridge.errors import ConfigError, ModelError
from bridge.models.answers import excerpt
from bridge.models.chat_answer import said
from bridge.models.event_source import BadAnswer, Bounded, read_beginning
from bridge.models.retrying import pause_before
from bridge.telemetry import log

CONNECT_SECONDS = 10.0
ERROR_BYTES = 64 * 1024
SHORTEST_SECRET = 8  # characters of a header's value that errors must not repeat

_CLIENTS: Final[RunVar[WeakKeyDictionary[Endpoint, httpx.AsyncClient]]] = RunVar("model clients")


class Endpoint:
    """Where a model's requests go: `path` below `base_url`.

    `timeout` is for how many seconds the provider may be silent; `retries` is how often a request
    is repeated that the provider put off, or that it never answered.

    Raises:
        ConfigError: `base_url` or a header cannot be used.
    """

    def __init__(
        self, base_url: str, path: str, headers: Mapping[str, str], timeout: float, retries: int
    ) -> None:
        base = _checked_url(base_url)
        self._url = base.copy_with(path=f"{base.path.rstrip('/')}/{path}")
        self._headers = {
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "mcp-agent-bridge",
            **_checked_headers(headers),
        }
        self._secrets = [value for value in headers.values() if len(value) >= SHORTEST_SECRET]
        self._secrets += [value.partition(" ")[2] for value in self._secrets if " " in value]
        self._timeout = timeout
        self._retries = retries
        self.place = _place(self._url)

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[httpx.Response]:
        """Send one request; the answer's body is not read yet, and closed at the end.

        Raises:
            ModelError: The provider gave no answer, or none of status 200.
        """
        response = await self._answered(body)
        try:
            response.stream = Bounded(response.stream)
            yield response
        except httpx.HTTPError as exc:
            raise self._lost(exc) from exc
        except BadAnswer as exc:
            # Not chained: it may quote what must not be shown.
            raise ModelError(f"{self.place}: {self._shown(str(exc))}") from None
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later request makes new ones."""
        client = _CLIENTS.get(WeakKeyDictionary()).pop(self, None)
        if client is not None:
            await client.aclose()

    async def _answered(self, body: bytes) -> httpx.Response:
        attempt = 0
        headers: Mapping[str, str]
        while True:
            try:
                response = await self._client().send(self._request(body), stream=True)
            except (httpx.NetworkError, httpx.RemoteProtocolError) as exc:
                failure, headers = self._lost(exc), {}
                failure.__cause__ = exc
            except (httpx.HTTPError, httpx.InvalidURL) as exc:
                raise self._lost(exc) from exc
            else:
                if response.status_code == httpx.codes.OK:
                    return response

                failure, headers = await self._refused(response), response.headers

            pause = pause_before(attempt, failure.status, headers)
            if pause is None or attempt >= self._retries:
                raise failure

            log.info("%s; asking again in %.1f s", failure, pause)
            await anyio.sleep(pause)
            attempt += 1

    def _client(self) -> httpx.AsyncClient:
        """This event loop's client; its connections are of no use to another one."""
        try:
            clients = _CLIENTS.get()
        except LookupError:
            clients = WeakKeyDictionary()
            _CLIENTS.set(clients)

        if self not in clients:
            clients[self] = self._opened()

        return clients[self]

    def _opened(self) -> httpx.AsyncClient:
        timeout = httpx.Timeout(self._timeout, connect=CONNECT_SECONDS)
        try:
            return httpx.AsyncClient(verify=_tls(), timeout=timeout)
        except OSError as exc:
            raise ModelError(f"cannot load TLS certificates: {_reason(exc)}") from exc
        except (ImportError, ValueError, httpx.InvalidURL):
            # Not chained: the text may hold the proxy's password.
            raise ModelError(
                "the environment's proxy cannot be used; check HTTP_PROXY and the like"
            ) from None

    def _request(self, body: bytes) -> httpx.Request:
        client = self._client()
        request = client.build_request("POST", self._url, headers=self._headers, content=body)
        request.url = _QuietURL(request.url)
        return request

    async def _refused(self, response: httpx.Response) -> ModelError:
        try:
            body = await read_beginning(response, ERROR_BYTES)
        finally:
            await response.aclose()

        status = response.status_code
        reason = self._shown(said(body)) or response.reason_phrase
        return ModelError(f"{self.place} answered with status {status}: {reason}", status=status)

    def _lost(self, exc: Exception) -> ModelError:
        if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout):
            return ModelError(f"cannot connect to {self.place}: {_reason(exc)}")

        if isinstance(exc, httpx.TimeoutException):
            return ModelError(f"{self.place} was silent for {self._timeout:g} s")

        return ModelError(f"the connection to {self.place} was lost: {_reason(exc)}")

    def _shown(self, text: str) -> str:
        """How a provider's text begins, without what must not be shown."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")

        return excerpt(text)


class _QuietURL(httpx.URL):
    """A URL that shows nothing secret: httpx logs each request's URL, at level INFO."""

    def __str__(self) -> str:
        return _place(self)


def _place(url: httpx.URL) -> str:
    """A URL as errors and logs name it: scheme, host, port and path."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    return f"{url.scheme}://{url.netloc.decode('ascii')}{path}"


def _checked_url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()

    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigError("the base URL of a model is not an http:// or https:// URL")

    if url.userinfo:
        raise ConfigError("the base URL of a model holds a user name; give api_key or headers")

    return url


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable() or value != " ".join(value.split()):
            raise ConfigError(
                f'HTTP cannot carry the value of the header "{name}": it holds spaces at an end or '
                "in a row, line breaks, control or non-ASCII characters"
            )

    return dict(headers)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """What is trusted, as the environment says; slow to load."""
    return httpx.create_ssl_context()


def _reason(exc: BaseException) -> str:
    """What is at the bottom of an error, which the libraries on the way up describe less well."""
    while isinstance(cause := exc.__cause__ or exc.__context__, Exception):
        exc = cause.exceptions[0] if isinstance(cause, ExceptionGroup) else cause

    if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) and (exc.errno or 0) > 0:
        return os.strerror(exc.errno or 0)

    return str(exc) or type(exc).__name__
