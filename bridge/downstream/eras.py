"""What an answer carries in one protocol era and must not carry in the other.

Modern is 2026-07-28, legacy everything before it. These functions build new dicts on top of
what they are given and change nothing inside it.
"""

from __future__ import annotations

from typing import Any

from bridge.core.content import Result

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
MODERN_FIELDS = frozenset({"resultType", "ttlMs", "cacheScope"})


def for_client(answer: Result, *, modern: bool, stamp: dict[str, Any]) -> Result:
    """The same answer in the client's era; `stamp` is who we are, name and version."""
    return _modern(answer, stamp) if modern else _legacy(answer)


def for_client_list(answer: Result, *, modern: bool, stamp: dict[str, Any]) -> Result:
    """The same for a listing, which a modern client is also told how long it may keep: not."""
    if modern:
        answer = {**answer, "ttlMs": 0, "cacheScope": "private"}

    return for_client(answer, modern=modern, stamp=stamp)


def _modern(answer: Result, stamp: dict[str, Any]) -> Result:
    meta = answer.get("_meta")
    marked = {**answer, "_meta": {**(meta if isinstance(meta, dict) else {}), SERVER_INFO: stamp}}
    if marked.get("resultType") is None:
        marked["resultType"] = "complete"

    return marked


def _legacy(answer: Result) -> Result:
    kept = {key: value for key, value in answer.items() if key not in MODERN_FIELDS}
    meta = kept.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO in meta:
        rest = {key: value for key, value in meta.items() if key != SERVER_INFO}
        if rest:
            kept["_meta"] = rest
        else:
            del kept["_meta"]

    return kept
