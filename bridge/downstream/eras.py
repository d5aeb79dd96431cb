"""What an answer carries in one protocol era and must not carry in the other.

Modern is 2026-07-28, legacy everything before it. These functions build new dicts on top of
what they are given and change nothing inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.core.content import Result
from bridge.core.rpc import INVALID_PARAMS
from bridge.upstream.capabilities import without_tasks
from bridge.upstream.protocol import COMPLETE, HANDSHAKE_VERSIONS, SERVER_INFO_KEY

RESOURCE_NOT_FOUND = -32002
URL_ELICITATION_REQUIRED = -32042


def for_client(answer: Result, *, modern: bool, stamp: dict[str, Any]) -> Result:
    """The same answer in the client's era; `stamp` is who we are, name and version."""
    return _modern(answer, stamp) if modern else _legacy(answer)


def for_client_list(answer: Result, *, modern: bool, stamp: dict[str, Any]) -> Result:
    """The same for a listing, which a modern client is also told how long it may keep: not."""
    if modern:
        answer = {**answer, "ttlMs": 0, "cacheScope": "private"}

    return for_client(answer, modern=modern, stamp=stamp)


def capabilities_for(capabilities: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    """What of these ServerCapabilities there is in the client's era.

    Log messages need no method in the modern era. Each era has tasks of its own kind: the legacy
    one as a capability, the modern one as an extension.
    """
    found = dict(capabilities)
    if modern:
        found.pop("logging", None)
        found.pop("tasks", None)
        return found

    return without_tasks(found)


def negotiated(requested: str) -> str:
    """The handshake version that is spoken with a client that asked for one (MCP, lifecycle)."""
    return requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def error_for(error: dict[str, Any], *, modern: bool) -> dict[str, Any]:
    """A JSON-RPC error in the client's era: the modern one has no code for a missing resource."""
    if modern and error.get("code") in (RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED):
        return {**error, "code": INVALID_PARAMS}

    return error


def _modern(answer: Result, stamp: dict[str, Any]) -> Result:
    meta = answer.get("_meta")
    marked = {
        **answer,
        "_meta": {**(meta if isinstance(meta, dict) else {}), SERVER_INFO_KEY: stamp},
    }
    if marked.get("resultType") is None:
        marked["resultType"] = COMPLETE

    return marked


def _legacy(answer: Result) -> Result:
    kept = answer.copy()
    kept.pop("resultType", None)
    kept.pop("ttlMs", None)
    kept.pop("cacheScope", None)
    meta = kept.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO_KEY in meta:
        rest = {key: value for key, value in meta.items() if key != SERVER_INFO_KEY}
        if rest:
            kept["_meta"] = rest
        else:
            del kept["_meta"]

    return kept
