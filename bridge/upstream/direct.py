"""The client that goes straight to its server, without a proxy, over connections of our own."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping

import httpx2

from bridge.telemetry import log
from bridge.upstream.client import Sending, check_headers
from bridge.upstream.exchanges import Exchange
from bridge.upstream.h1 import Head
from bridge.upstream.pool import Pool
from bridge.upstream.wording import place

KNOWN_HEADS = 256
SHORT_HEAD_BYTES = 4096


class DirectClient:
    """Sends requests to one origin; `headers` ride on each."""

    def __init__(self, pool: Pool, headers: Mapping[str, str]) -> None:
        self._pool = pool
        self._headers = headers

    def template(self, verb: str, url: httpx2.URL, headers: Mapping[str, str]) -> DirectTemplate:
        """See `Client.template`."""
        check_headers(headers)
        merged = {"host": ("Host", url.netloc.decode("ascii"))}
        for name, value in (*self._headers.items(), *headers.items(), *_credentials(url)):
            merged[name.lower()] = (name, value)

        return DirectTemplate(self._pool, verb, url, merged)


class DirectTemplate:
    """The first lines of a series of requests, encoded once; see `Template`."""

    def __init__(
        self, pool: Pool, verb: str, url: httpx2.URL, headers: Mapping[str, tuple[str, str]]
    ) -> None:
        self._pool = pool
        self._verb = verb
        self._url = url
        self._place = place(url)
        self._headers = headers
        self._first = b"%s %s HTTP/1.1\r\n" % (verb.encode("ascii"), url.raw_path)
        self._standing = self._first + _encoded(dict(headers.values()))
        self._heads: dict[tuple[tuple[str, str], ...], bytes] = {}

    @property
    def kept(self) -> int:
        """How many heads of requests are kept for the next of their like."""
        return len(self._heads)

    async def send(
        self, extra: Mapping[str, str], content: bytes | None, sending: Sending
    ) -> DirectResponse:
        """See `Template.send`."""
        head = self._head(extra)
        body = b"" if content is None else content
        end = b"\r\n" if content is None else b"Content-Length: %d\r\n\r\n" % len(body)
        connection = self._pool.take() or await self._pool.connect(self._place)
        sending.sent = True
        exchange = connection.send(head + end, body, self._place)
        try:
            response = DirectResponse(self._url, exchange, await exchange.head())
        except BaseException:  # also when the wait is cancelled: nobody else knows the exchange
            exchange.close()
            raise

        if log.isEnabledFor(logging.INFO):
            log.info("HTTP Request: %s %s: %d", self._verb, self._place, response.status)

        return response

    def _head(self, extra: Mapping[str, str]) -> bytes:
        """The head of one request but for its end; `extra` replaces what is called the same.

        Calls of one tool have the same head, so short ones are kept.

        Raises:
            ChannelError: HTTP cannot carry one of the headers.
        """
        if not extra:
            return self._standing

        key = tuple(extra.items())
        if (known := self._heads.get(key)) is not None:
            return known

        check_headers(extra)
        made = self._made(extra)
        if len(made) <= SHORT_HEAD_BYTES:
            if len(self._heads) == KNOWN_HEADS:
                self._heads.clear()

            self._heads[key] = made

        return made

    def _made(self, extra: Mapping[str, str]) -> bytes:
        names = {name.lower() for name in extra}
        if names.isdisjoint(self._headers):
            return self._standing + _encoded(extra)

        kept = [pair for name, pair in self._headers.items() if name not in names]
        return self._first + _encoded({**dict(kept), **extra})


class DirectResponse:
    """See `Response`."""

    __slots__ = ("_exchange", "_headers", "is_success", "piece", "status", "url")

    def __init__(self, url: httpx2.URL, exchange: Exchange, head: Head) -> None:
        self.url = url
        self.status = head.status
        self.is_success = 200 <= head.status < 300
        self.piece = exchange.piece
        self._exchange = exchange
        self._headers = head.headers

    @property
    def is_whole(self) -> bool:
        """See `Response.is_whole`."""
        return self._exchange.is_whole

    def header(self, name: str) -> str:
        """See `Response.header`."""
        return self._headers.get(name, "")

    async def aclose(self) -> None:
        """See `Response.aclose`."""
        self._exchange.close()


def _encoded(headers: Mapping[str, str]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode("ascii")


def _credentials(url: httpx2.URL) -> list[tuple[str, str]]:
    """What a user name in the URL stands for (RFC 7617)."""
    if not url.username and not url.password:
        return []

    pair = f"{url.username}:{url.password}".encode()
    return [("Authorization", f"Basic {base64.b64encode(pair).decode('ascii')}")]
