"""What a client declared that it can do: what that allows a server, and how each era says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.core.caller import ASKABLE, Caller
from bridge.core.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, rpc_error
from bridge.upstream.protocol import ELICIT, LIST_ROOTS, SAMPLE, TASKS_EXTENSION

NEEDED = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
"""The capability that each of a server's requests needs."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The severities of log messages, the least severe first (RFC 5424, section 6.2.1)."""

SEVERITY = {level: number for number, level in enumerate(LEVELS)}
MODERN_NAMES = ASKABLE | {"experimental", "extensions"}


def can_be_asked(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client that declared this can be asked anything at all."""
    return not ASKABLE.isdisjoint(capabilities)


def refusal(capabilities: Mapping[str, Any], method: str, params: Any) -> RpcError | None:
    """Why a client that declared this is not to be asked that; None if it is.

    A method without its capability does not exist for the server; a form, a URL or tools that
    the client did not declare are wrong params (MCP 2025-11-25, elicitation and sampling).
    """
    declared = capabilities.get(NEEDED.get(method, ""))
    if not isinstance(declared, dict):
        return rpc_error(METHOD_NOT_FOUND, f"the client behind bridge does not take {method}")

    lacks = _lacks(method, declared, params)
    return rpc_error(INVALID_PARAMS, f"the client did not declare {lacks}") if lacks else None


def wants(level: str | None, message_level: object) -> bool:
    """Whether someone who wants messages from `level` on wants one of this level."""
    if level is None or not isinstance(message_level, str):
        return False

    return SEVERITY.get(message_level, -1) >= SEVERITY.get(level, 0)


def for_modern(caller: Caller) -> Mapping[str, Any]:
    """A client's capabilities, for the envelope of a modern request made for it.

    What a modern client declared goes as it is. Of a legacy one goes what is a capability in
    the modern era too; tasks, which it has no way to follow, do not.
    """
    declared = caller.capabilities
    if caller.modern or not declared:
        return declared

    mapped = {name: value for name, value in declared.items() if name in MODERN_NAMES}
    if isinstance(roots := mapped.get("roots"), dict) and "listChanged" in roots:
        mapped["roots"] = {name: v for name, v in roots.items() if name != "listChanged"}

    return without_tasks(mapped)


def for_legacy(caller: Caller | None) -> dict[str, Any]:
    """What is declared to a legacy server, in `initialize`, for a session of this client's own."""
    if caller is None:
        return {}

    names = ASKABLE | {"extensions"}
    declared = {name: value for name, value in caller.capabilities.items() if name in names}
    return without_tasks(declared)


def has_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client or a server that declared this speaks of tasks (extension tasks)."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def runs_calls_as_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a legacy server that declared this takes `tools/call` with a `task`."""
    found: Any = capabilities
    for part in ("tasks", "requests", "tools", "call"):
        found = found.get(part)
        if not isinstance(found, dict):
            return False

    return True


def without_tasks(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The same capabilities without those tasks, which only modern sides follow."""
    if not has_tasks(capabilities):
        return capabilities

    extensions = capabilities["extensions"]
    kept = {name: value for name, value in extensions.items() if name != TASKS_EXTENSION}
    rest = {name: value for name, value in capabilities.items() if name != "extensions"}
    return {**rest, "extensions": kept} if kept else rest


def _lacks(method: str, declared: Mapping[str, Any], params: Any) -> str:
    """The part of a capability that these params need and the client did not declare."""
    asked = params if isinstance(params, dict) else {}
    if method == ELICIT:
        mode = str(asked.get("mode", "form"))[:40]
        # One that declared no mode at all takes forms: so did all clients before there were modes.
        return (
            ""
            if mode in declared or (mode == "form" and "url" not in declared)
            else f"{mode} elicitation"
        )

    if method == SAMPLE and ("tools" in asked or "toolChoice" in asked) and "tools" not in declared:
        return "sampling with tools"

    return ""
