"""MCP servers become one toolset: filtered, renamed, guarded by people's approval.

What is named here is loaded when it is first used, so `import bridge` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bridge.version import VERSION

_ROOMS = {
    "Agent": "bridge.agents.llm_agent",
    "AgentTool": "bridge.agents.agent_tool",
    "CallbackContext": "bridge.core.context",
    "Connection": "bridge.upstream.connection",
    "Content": "bridge.core.content",
    "Context": "bridge.core.context",
    "Declaration": "bridge.core.declaration",
    "Event": "bridge.core.event",
    "Example": "bridge.tools.examples",
    "ExampleTool": "bridge.tools.examples",
    "FileArtifactService": "bridge.stores.files",
    "FunctionCall": "bridge.core.content",
    "Hook": "bridge.calls.hooks",
    "Hooks": "bridge.calls.hooks",
    "InMemoryApprovalStore": "bridge.stores.memory",
    "InMemoryArtifactService": "bridge.stores.memory",
    "InMemorySessionService": "bridge.stores.memory",
    "LLMRequest": "bridge.core.request",
    "LlmAgent": "bridge.agents.llm_agent",
    "LoopAgent": "bridge.agents.loop_agent",
    "MCPToolset": "bridge.upstream.toolset",
    "Model": "bridge.core.model",
    "NativeTool": "bridge.tools.native",
    "OpenAICompatible": "bridge.models.openai_compatible",
    "Outcome": "bridge.calls.call",
    "Part": "bridge.core.content",
    "Plugin": "bridge.agents.plugin",
    "PydanticAIModel": "bridge.models.pydantic_ai",
    "ReadonlyContext": "bridge.core.context",
    "RunConfig": "bridge.agents.run_config",
    "Runner": "bridge.agents.runner",
    "ScriptedModel": "bridge.models.scripted",
    "SqlApprovalStore": "bridge.stores.sql_approvals",
    "SqlSessionService": "bridge.stores.sql",
    "SqliteMemoryService": "bridge.stores.fulltext",
    "ToolConfirmation": "bridge.core.confirmation",
    "ToolContext": "bridge.core.context",
    "decision": "bridge.agents.questions",
    "execute": "bridge.calls.call",
    "exit_loop": "bridge.tools.loops",
    "function_tool": "bridge.tools.function",
    "google_search": "bridge.tools.native",
    "load_artifacts": "bridge.tools.artifacts",
    "load_memory": "bridge.tools.memory",
    "local_context": "bridge.core.context",
    "open_database": "bridge.stores.database",
    "open_toolset": "bridge.gateway.embedded",
    "pack_tool": "bridge.core.tool",
    "preload_memory": "bridge.tools.memory",
    "questions_in": "bridge.agents.questions",
    "streaming_tool": "bridge.tools.streaming",
}

__version__ = VERSION
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'bridge' has no attribute {name!r}")

    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
