"""What the benchmark's clients and floors say on the wire in each era."""

from __future__ import annotations

from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
KEY = "io.modelcontextprotocol/"


def envelope(name: str) -> dict[str, Any]:
    """The `_meta` that every modern request of the client `name` carries."""
    return {
        KEY + "protocolVersion": MODERN,
        KEY + "clientInfo": {"name": name, "version": "1"},
        KEY + "clientCapabilities": {},
    }


def handshake(name: str) -> dict[str, Any]:
    """The params of a legacy client's `initialize`."""
    info = {"name": name, "version": "1"}
    return {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}


def modern_headers(method: str, tool: str = "") -> bytes:
    """The header lines of a modern request: its version and what it is routed by."""
    name = f"Mcp-Name: {tool}\r\n" if tool else ""
    return f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n{name}".encode()
