"""The names that MCP fixes and bridge needs, on both sides, so that calling a server loads no SDK.

A test holds each of them to the SDK's own.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from bridge.version import VERSION

Era: TypeAlias = Literal["modern", "legacy"]
Transport: TypeAlias = Literal["stdio", "http", "sse"]

MODERN_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
UNSUPPORTED_VERSION = -32022

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
RESERVED = "io.modelcontextprotocol/"
"""How the keys in a `_meta` begin that are the modern envelope's, or another hop's."""

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

COMPLETE, INPUT_REQUIRED, TASK = "complete", "input_required", "task"
"""The values of `resultType`."""

MULTI_ROUND = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods that may be answered with `input_required`."""

PROGRESS_TOKEN = "progressToken"

CLIENT_INFO = {"name": "bridge", "version": VERSION}
ENVELOPE: dict[str, Any] = {
    PROTOCOL_VERSION_KEY: MODERN_VERSION,
    CLIENT_INFO_KEY: CLIENT_INFO,
    CLIENT_CAPABILITIES_KEY: {},
}
"""What every modern request carries in its `_meta` (MCP 2026-07-28, basic)."""

SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
SET_LEVEL = "logging/setLevel"
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
TASK_STATUS = "notifications/tasks/status"
INITIALIZED = "notifications/initialized"
PROGRESS = "notifications/progress"
EVERYBODYS = frozenset(
    {
        TOOLS_CHANGED,
        PROMPTS_CHANGED,
        RESOURCES_CHANGED,
        RESOURCE_UPDATED,
        ACKNOWLEDGED,
        CANCELLED,
        TASK_STATUS,
    }
)
"""The notifications that belong to no one request."""

RELATED_TASK = "io.modelcontextprotocol/related-task"
"""The key in a `_meta` that names the task of a message (MCP 2025-11-25, tasks)."""

TASKS_SINCE = "2025-11-25"

LOG_MESSAGE = "notifications/message"
ELICITATION_DONE = "notifications/elicitation/complete"

ELICIT, SAMPLE, LIST_ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
