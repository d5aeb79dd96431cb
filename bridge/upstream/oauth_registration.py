"""Who we are to an authorization server: what was settled beforehand, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull

from bridge.upstream.credentials import Refusal
from bridge.upstream.oauth_store import Record


@dataclass(frozen=True, slots=True, repr=False)
class Registration:
    """What is settled with the authorization server beforehand; all of it may be left out.

    `client_id` and `client_secret` are ours there, and `issuer` says where that is;
    `client_metadata_url` is where our own description is found. `scopes` are asked for instead of
    those that the server names. `redirect_port` is where browsers come back to; 0 is any.
    """

    client_id: str = ""
    client_secret: str = ""
    client_metadata_url: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    redirect_port: int = 0

    def settle(self, record: Record) -> Record:
        """What was kept, with the client that was settled; tokens of another one are dropped."""
        if not self.client_id:
            return record

        known = record.client
        if known is None or known.client_id != self.client_id:
            known, record = None, replace(record, tokens=None)

        settled = {
            "client_id": self.client_id,
            "client_secret": self.client_secret or None,
            "issuer": self.issuer or (known.issuer if known else None),
            "token_endpoint_auth_method": known.token_endpoint_auth_method if known else None,
        }
        return replace(record, client=OAuthClientInformationFull.model_validate(settled))

    def scoped(self, refusal: Refusal, wanted: str) -> Refusal:
        """The refusal, so that it asks for the scopes that are to be had."""
        ours = " ".join(self.scopes)
        asked = union_scopes(ours, refusal.scope) if refusal.wants_scope else ours or refusal.scope
        parts = {
            "error": refusal.field("error"),
            "resource_metadata": refusal.field("resource_metadata"),
            "scope": union_scopes(asked, wanted),
        }
        challenge = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)
        return replace(refusal, challenge=f"Bearer {challenge}".rstrip())


def bound(record: Record) -> Record:
    """A client that was settled beforehand belongs to where it was used first (RFC 8414)."""
    if record.client is not None and record.client.issuer is None and record.server is not None:
        record.client.issuer = str(record.server.issuer)

    return record


def callbacks(record: Record) -> list[str]:
    """The addresses that the authorization server knows of us."""
    known = record.client.redirect_uris if record.client is not None else None
    return [str(url) for url in known or ()]
