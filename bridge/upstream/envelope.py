"""What a request carries beside its params, in each era, for the client behind it."""

from __future__ import annotations

from bridge.core.caller import Caller
from bridge.upstream.capabilities import for_modern, has_tasks
from bridge.upstream.channel import Params
from bridge.upstream.protocol import (
    CLIENT_CAPABILITIES_KEY,
    ENVELOPE,
    LOG_LEVEL_KEY,
    MULTI_ROUND,
)


def modern_params(method: str, params: Params, caller: Caller | None) -> Params:
    """The params with the envelope (MCP 2026-07-28, basic), and what the client brought along."""
    meta = params.get("_meta")
    if caller is None or _says_nothing(caller):
        return {**params, "_meta": {**meta, **ENVELOPE} if meta else ENVELOPE}

    made = {**caller.meta, **(meta or {}), **ENVELOPE}
    if declared := for_modern(caller):
        made[CLIENT_CAPABILITIES_KEY] = declared

    if caller.log_level is not None:
        made[LOG_LEVEL_KEY] = caller.log_level

    if method in MULTI_ROUND and caller.brought:
        return {**caller.brought, **params, "_meta": made}

    return {**params, "_meta": made}


def legacy_params(params: Params, caller: Caller) -> Params:
    """The params with what the client's own `_meta` holds for the server."""
    if not caller.meta:
        return params

    return {**params, "_meta": {**caller.meta, **params.get("_meta", {})}}


def takes_tasks(caller: Caller) -> bool:
    """Whether the client can follow a task that a server answers with."""
    return caller.modern and has_tasks(caller.capabilities)


def _says_nothing(caller: Caller) -> bool:
    """Whether a client brings nothing that its server must be told, as most do."""
    told = caller.meta or caller.capabilities or caller.brought
    return not told and caller.log_level is None
