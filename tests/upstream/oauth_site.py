"""A small real site: an MCP server that wants a login, and the authorization server for it."""

from __future__ import annotations

import base64
import hashlib
import secrets
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio.to_thread

from tests.upstream.scripted_http import Peer, Request, Scripted, scripted

Json = dict[str, Any]
MODERN = "2026-07-28"
TOOLS = [
    {"name": "look", "inputSchema": {"type": "object"}},
    {"name": "change", "inputSchema": {"type": "object"}},
]


@dataclass
class Site:
    """What the site knows, and what a test may change of it.

    `needed` are the scopes that tools want; `wants_login_for` the methods that want a login, None
    is all. `logins` holds the parameters of each question that a browser brought, `exchanges`
    those of each token request. `metadata` replaces parts of what is told of the authorization
    server; None takes one out. `answers` replaces parts of what browsers bring back. Where it
    does not `grants`, its grants hold no access token.
    """

    needed: Mapping[str, str] = field(default_factory=lambda: {"change": "write"})
    wants_login_for: tuple[str, ...] | None = None
    lifetime: int | None = 3600
    takes_refreshing: bool = True
    grants: bool = True
    metadata: Json = field(default_factory=dict)
    resource: Json = field(default_factory=dict)
    answers: dict[str, str | None] = field(default_factory=dict)
    clients: dict[str, str | None] = field(default_factory=dict)
    logins: list[dict[str, str]] = field(default_factory=list)
    exchanges: list[dict[str, str]] = field(default_factory=list)
    presented: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    registrations: list[Json] = field(default_factory=list)
    origin: str = ""
    server: Scripted | None = None
    _tokens: dict[str, str] = field(default_factory=dict)
    _renewals: dict[str, str] = field(default_factory=dict)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _events: Peer | None = None

    @property
    def url(self) -> str:
        """The MCP server's."""
        return f"{self.origin}/mcp"

    def end_tokens(self) -> None:
        """Let no access token be good any more."""
        self._tokens.clear()

    async def answer(self, request: Request, peer: Peer) -> None:
        """Answer one request, whatever it is for."""
        parts = urlsplit(request.target)
        match request.verb, parts.path:
            case "GET", "/.well-known/oauth-protected-resource/mcp":
                told = {"resource": self.url, "authorization_servers": [self.origin]}
                await peer.respond_json({**told, **self.resource})
            case "GET", "/.well-known/oauth-authorization-server":
                await peer.respond_json(self._described())
            case "POST", "/register":
                await self._register(request, peer)
            case "GET", "/authorize":
                await self._authorize(_single(parts.query), peer)
            case "POST", "/token":
                await self._exchange(request, peer)
            case ("POST", "/mcp" | "/messages") | ("GET", "/sse"):
                await self._serve(request, peer)
            case _:
                await peer.respond(404)

    def _described(self) -> Json:
        told = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }
        return {name: value for name, value in told.items() if value is not None}

    async def _register(self, request: Request, peer: Peer) -> None:
        client = f"client-{len(self.clients)}"
        self.registrations.append(request.message)
        self.clients[client] = None
        await peer.respond_json({**request.message, "client_id": client}, 201)

    async def _authorize(self, asked: dict[str, str], peer: Peer) -> None:
        self.logins.append(asked)
        code = self._secret("code")
        self._codes[code] = asked
        given = {"code": code, "state": asked["state"], "iss": self.origin, **self.answers}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        await peer.respond(302, headers={"Location": f"{asked['redirect_uri']}?{query}"})

    async def _exchange(self, request: Request, peer: Peer) -> None:
        form = _single(request.body.decode())
        self.exchanges.append(form)
        scope = self._renewed(form) if "refresh_token" in form else self._granted(form)
        if scope is None or not self._is_known(form["client_id"], request):
            await peer.respond_json({"error": "invalid_grant"}, 400)
            return

        access, renewal = self._secret("access"), self._secret("renewal")
        self._tokens[access], self._renewals[renewal] = scope, scope
        told = {"access_token": access, "token_type": "bearer", "scope": scope}
        if self.lifetime is not None:
            told["expires_in"] = str(self.lifetime)

        if not self.grants:
            del told["access_token"]

        await peer.respond_json({**told, "refresh_token": renewal})

    def _is_known(self, client: str, request: Request) -> bool:
        known = self.clients.get(client, "")
        if known is None:
            return True

        pair = base64.b64encode(f"{client}:{known}".encode()).decode()
        return bool(known) and request.headers.get("authorization") == f"Basic {pair}"

    def _granted(self, form: dict[str, str]) -> str | None:
        asked = self._codes.pop(form["code"], None)
        if asked is None:
            return None

        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        same = ("redirect_uri", "client_id", "resource")
        is_his = asked["code_challenge"] == challenge and all(form[n] == asked[n] for n in same)
        return asked.get("scope", "read") if is_his else None

    def _renewed(self, form: dict[str, str]) -> str | None:
        """A refresh token is good for one use."""
        scope = self._renewals.pop(form["refresh_token"], None)
        return scope if self.takes_refreshing else None

    async def _serve(self, request: Request, peer: Peer) -> None:
        presented = request.headers.get("authorization", "")
        self.presented.append(presented)
        granted = self._tokens.get(presented.removeprefix("Bearer "))
        metadata = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
        message = request.message
        wanting = self.wants_login_for
        if granted is None and (wanting is None or message.get("method") in wanting):
            challenge = f'Bearer resource_metadata="{metadata}", scope="read"'
            await peer.respond(401, headers={"WWW-Authenticate": challenge})
            return

        granted = granted or ""
        tool = message.get("params", {}).get("name", "")
        if (scope := self.needed.get(tool)) and scope not in granted.split():
            challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
            await peer.respond(403, headers={"WWW-Authenticate": challenge})
        elif request.verb == "GET":
            self._events = peer
            await peer.open_events()
            await peer.chunk("event: endpoint\ndata: /messages\n\n")
            await peer.gone()
        elif "id" not in message:
            await peer.respond(202)
        elif request.target == "/messages" and self._events is not None:
            await peer.respond(202)
            await self._events.event(_answer(message))
        else:
            await peer.respond_json(_answer(message))

    def _secret(self, kind: str) -> str:
        made = f"{kind}-{secrets.token_hex(16)}"
        self.secrets.append(made)
        return made


def _answer(message: Json) -> Json:
    results: Json = {
        "server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}},
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
        "tools/list": {"tools": TOOLS},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    result = results.get(message["method"])
    if result is None:
        error = {"code": -32601, "message": "There is no such method."}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}

    return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result}}


def _single(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@asynccontextmanager
async def site(**known: Any) -> AsyncIterator[Site]:
    """The site, listening on a free port."""
    made = Site(**known)
    async with scripted(made.answer) as server:
        made.server = server
        made.origin = f"http://127.0.0.1:{server.port}"
        yield made


async def browse(url: str) -> int:
    """Be a browser, which follows where it is sent; returns the last status."""
    return await anyio.to_thread.run_sync(_get, url)


def _get(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code
