"""What the channels need of an HTTP client: requests made from templates, bodies in pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import httpx2

from bridge.upstream.channel import ChannelError
from bridge.upstream.clock import Timed
from bridge.upstream.wording import excerpt

KEEPALIVE_SECONDS = 4.0  # common servers drop an idle connection after 5: let go before they do
SPARE_CONNECTIONS = 32  # beside those of requests: for cancellations, replies, streams
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")


class Sending:
    """Whether a request has begun to leave: until then the server provably saw nothing of it.

    `blocks` are those whose time stands still while a person is waited for on the way.
    """

    __slots__ = ("blocks", "sent")

    def __init__(self, *blocks: Timed) -> None:
        self.blocks = blocks
        self.sent = False


class Response(Protocol):
    """An HTTP response whose head has come, and whose body comes in pieces."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        ...

    @property
    def url(self) -> httpx2.URL:
        """Whose answer it is."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all of the body is here, so that no `piece` has to wait; False if unknown."""
        ...

    def header(self, name: str) -> str:
        """A header by its name in lower case; empty if there is none."""
        ...

    async def piece(self) -> bytes:
        """What came next of the body, as it was sent; empty at its end.

        Raises:
            ConnectionLost: The connection ended before the body did.
        """
        ...

    async def aclose(self) -> None:
        """Let go of it. A body that was not read to its end takes the connection with it."""
        ...


class Template(Protocol):
    """What a series of requests has in common: verb, URL, and the headers that stay the same."""

    async def send(
        self, extra: Mapping[str, str], content: bytes | None, sending: Sending
    ) -> Response:
        """Send one such request and wait for the head of its response, which the caller closes.

        Raises:
            ChannelError: There is no response; `sent` is exact.
        """
        ...


class Client(Protocol):
    """Sends requests to one server, over connections that it keeps."""

    def template(self, verb: str, url: httpx2.URL, headers: Mapping[str, str]) -> Template:
        """What requests to `url` have in common; `headers` add to those of every request.

        Raises:
            ChannelError: HTTP cannot carry one of the headers.
        """
        ...


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse what HTTP cannot carry.

    Raises:
        ChannelError: A header has no proper name or value; the text names it.
    """
    for name, value in headers.items():
        if HEADER_NAME.fullmatch(name) is None:
            raise ChannelError(f'"{excerpt(name)}" cannot be the name of a header', sent=False)

        if HEADER_VALUE.fullmatch(value) is None:
            raise ChannelError(
                f'HTTP cannot carry the value of the header "{name}": it holds spaces at an end, '
                "line breaks, control or non-ASCII characters",
                sent=False,
            )
