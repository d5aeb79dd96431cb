"""What the requests of one session have in common, and when that changes."""

from __future__ import annotations

from bridge.upstream.channel import Limits
from bridge.upstream.client import Sending
from bridge.upstream.http_wire import HttpWire
from bridge.upstream.web import open_client
from tests.upstream.scripted_http import Peer, Request, scripted

NOTICE = {"jsonrpc": "2.0", "method": "notifications/x"}


async def test_each_request_names_the_session_and_the_revision_of_its_time() -> None:
    async def handler(request: Request, peer: Peer) -> None:
        await peer.respond(202)

    async with (
        scripted(handler) as server,
        open_client(server.url, {}, Limits(), 10.0) as client,
    ):
        wire = HttpWire(server.url, client, Limits())
        await wire.tell(NOTICE, Sending())
        wire.session_id = "one"
        await wire.tell(NOTICE, Sending())
        wire.protocol_version = "2025-11-25"
        await wire.tell(NOTICE, Sending())
        wire.session_id = "two"
        await wire.tell(NOTICE, Sending())
        await wire.end_session()

    names = ("mcp-session-id", "mcp-protocol-version")
    named = [tuple(r.headers.get(name) for name in names) for r in server.requests]
    assert named == [
        (None, None),
        ("one", None),
        ("one", "2025-11-25"),
        ("two", "2025-11-25"),
        ("two", "2025-11-25"),
    ]
    assert [r.verb for r in server.requests] == ["POST"] * 4 + ["DELETE"]
