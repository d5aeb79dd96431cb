"""How the era of a server is found, where it refuses the revision that it is asked in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bridge.core.content import Result
from bridge.core.rpc import RpcError
from bridge.upstream.channel import NO_OPTIONS, Options, Params
from bridge.upstream.link import negotiate

MODERN = "2026-07-28"
FOUND = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
GREETED = {"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}}}


def unsupported(data: object) -> RpcError:
    return RpcError({"code": -32022, "message": "not this one", "data": data})


@dataclass
class Refusing:
    """A channel to a server that answers `server/discover` as it is told, one time each."""

    discovered: Iterator[Result | RpcError]
    protocol_version: str | None = None
    asked: list[str] = field(default_factory=list)
    is_open: bool = True
    closed_because: str = ""

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        self.asked.append(method)
        answer = GREETED if method == "initialize" else next(self.discovered)
        if isinstance(answer, RpcError):
            raise answer

        return answer

    async def notify(self, method: str, params: Params) -> None:
        self.asked.append(method)

    async def wait_closed(self) -> None:
        raise NotImplementedError


async def negotiated(*answers: Result | RpcError) -> tuple[str, list[str]]:
    channel = Refusing(iter(answers))
    link = await negotiate(channel, "http", None, 5.0)
    return link.era, channel.asked


async def test_a_server_that_refuses_a_revision_and_says_that_it_has_it_is_asked_once_more() -> (
    None
):
    refusal = unsupported({"supported": ["2025-11-25", MODERN], "requested": MODERN})

    assert await negotiated(refusal, FOUND) == ("modern", ["server/discover"] * 2)


async def test_one_that_refuses_it_again_is_greeted_as_a_legacy_server() -> None:
    refusal = unsupported({"supported": [MODERN]})

    assert await negotiated(refusal, refusal) == (
        "legacy",
        ["server/discover", "server/discover", "initialize", "notifications/initialized"],
    )


@pytest.mark.parametrize(
    "data", [None, [], {}, {"supported": MODERN}, {"supported": ["2025-11-25"]}]
)
async def test_one_that_does_not_say_so_is_not_asked_again(data: Any) -> None:
    assert await negotiated(unsupported(data)) == (
        "legacy",
        ["server/discover", "initialize", "notifications/initialized"],
    )
