"""MCP servers become one toolset: filtered, renamed, guarded by people's approval.

What is named here is loaded when it is first used, so `import bridge` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bridge.version import VERSION

_ROOMS = {
    "Context": "bridge.core.context",
    "Declaration": "bridge.core.declaration",
    "FunctionCall": "bridge.core.content",
    "Hook": "bridge.calls.hooks",
    "Hooks": "bridge.calls.hooks",
    "LLMRequest": "bridge.core.request",
    "MCPToolset": "bridge.upstream.toolset",
    "Outcome": "bridge.calls.call",
    "ReadonlyContext": "bridge.core.context",
    "ToolConfirmation": "bridge.core.confirmation",
    "ToolContext": "bridge.core.context",
    "execute": "bridge.calls.call",
    "function_tool": "bridge.tools.function",
    "local_context": "bridge.core.context",
    "open_toolset": "bridge.gateway.embedded",
    "pack_tool": "bridge.core.tool",
}

__version__ = VERSION
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'bridge' has no attribute {name!r}")

    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
