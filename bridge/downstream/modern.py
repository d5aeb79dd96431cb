"""Which modern requests are let in: envelope and headers, compared (MCP 2026-07-28)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types.jsonrpc import HEADER_MISMATCH

from bridge.downstream.client import NOTHING, Client, Message
from bridge.downstream.front import error_response
from bridge.downstream.handlers import Handlers
from bridge.upstream.protocol import LOG_LEVEL_KEY

STATUS: Mapping[int, int] = ERROR_CODE_HTTP_STATUS
"""The HTTP status of an error code; 200 for one that is not here."""


def envelope(message: Message, headers: Mapping[str, str] | None = None) -> Client | Message:
    """The client that one modern request shows, or the error that it is answered with.

    Without `headers` only the envelope is looked at, as on stdio.
    """
    verdict = classify_inbound_request(message, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        return _error(message, verdict)

    capabilities, info = verdict.client_capabilities, verdict.client_info
    level = message["params"]["_meta"].get(LOG_LEVEL_KEY)
    return Client(
        modern=True,
        version=verdict.protocol_version,
        capabilities=capabilities if isinstance(capabilities, dict) else NOTHING,
        info=info if isinstance(info, dict) else NOTHING,
        log_level=level if isinstance(level, str) else None,
    )


def admitted(
    handlers: Handlers, message: Message, headers: Mapping[str, str], twice: Sequence[str]
) -> Client | Message:
    """As `envelope`, with everything that the headers of an HTTP request must agree on."""
    for name in twice:
        if name.startswith("mcp-"):
            text = f"the header {name} came twice"
            return error_response(message["id"], HEADER_MISMATCH, text)

    client = envelope(message, headers)
    if isinstance(client, Client) and message["method"] == "tools/call":
        params = message["params"]
        schema, arguments = handlers.mirrored_schema(params.get("name")), params.get("arguments")
        if schema is not None and isinstance(arguments, dict | None):
            rejection = validate_mcp_param_headers(schema, arguments or {}, headers)
            if rejection is not None:
                return _error(message, rejection)

    return client


def unsupported(version: str) -> Message | None:
    """The error for a notification in a version that is not spoken here; None if it is."""
    rejection = unsupported_protocol_version_rejection(version)
    return None if rejection is None else _error({"id": None}, rejection)


def _error(message: Message, rejection: InboundLadderRejection) -> Message:
    return error_response(message["id"], rejection.code, rejection.message, rejection.data)
