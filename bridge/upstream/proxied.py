"""The client for servers behind a proxy that the environment names: httpx2 does the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx2

from bridge.upstream.channel import ChannelError
from bridge.upstream.client import Sending, check_headers
from bridge.upstream.wording import ConnectionLost, place, reason

NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.LocalProtocolError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class ProxiedClient:
    """Sends requests as `client` does; see `Client`."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    def template(self, verb: str, url: httpx2.URL, headers: Mapping[str, str]) -> ProxiedTemplate:
        """See `Client.template`."""
        check_headers(headers)
        return ProxiedTemplate(self._client, verb, url, headers)


class ProxiedTemplate:
    """See `Template`."""

    def __init__(
        self, client: httpx2.AsyncClient, verb: str, url: httpx2.URL, headers: Mapping[str, str]
    ) -> None:
        self._client = client
        self._verb = verb
        self._url = url
        self._headers = headers

    async def send(
        self, extra: Mapping[str, str], content: bytes | None, sending: Sending
    ) -> ProxiedResponse:
        """See `Template.send`."""
        check_headers(extra)

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            # Asking a proxy to connect is less than sending.
            if event.endswith(".send_request_headers.started"):
                sending.sent = sending.sent or info["request"].method != b"CONNECT"

        request = self._client.build_request(
            self._verb,
            self._url,
            headers={**self._headers, **extra},
            content=content,
            extensions={"trace": trace},
        )
        request.url = _QuietURL(request.url)
        try:
            with _translated(self._url):
                return ProxiedResponse(await self._client.send(request, stream=True))
        except ChannelError as exc:
            exc.sent = exc.sent and sending.sent
            raise


class ProxiedResponse:
    """See `Response`."""

    def __init__(self, response: httpx2.Response) -> None:
        self.url = response.request.url
        self.status = response.status_code
        self.is_success = response.is_success
        self.is_whole = False
        self._response = response
        self._pieces = response.aiter_raw()

    def header(self, name: str) -> str:
        """See `Response.header`."""
        return str(self._response.headers.get(name, ""))

    async def piece(self) -> bytes:
        """See `Response.piece`."""
        with _translated(self.url):
            return await anext(self._pieces, b"")

    async def aclose(self) -> None:
        """See `Response.aclose`."""
        with suppress(httpx2.HTTPError, OSError):
            await self._pieces.aclose()
            await self._response.aclose()


class _QuietURL(httpx2.URL):
    """A URL that shows nothing secret: httpx2 logs each request's URL, at level INFO."""

    def __str__(self) -> str:
        return place(self)


@contextmanager
def _translated(url: httpx2.URL) -> Iterator[None]:
    """Turn what the library raises into ChannelError."""
    try:
        yield
    except httpx2.LocalProtocolError:
        # Its text, and that of whatever it is chained to, may quote a header's value.
        raise ChannelError("HTTP cannot carry the request; check its headers", sent=False) from None
    except NEVER_SENT as exc:
        raise ChannelError(f"cannot connect to {place(url)}: {reason(exc)}", sent=False) from exc
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as exc:
        raise ConnectionLost(
            f"the connection to {place(url)} was lost: {reason(exc)}", sent=True
        ) from exc
