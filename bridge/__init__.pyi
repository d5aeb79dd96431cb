from bridge.agents.agent_tool import AgentTool as AgentTool
from bridge.agents.llm_agent import Agent as Agent
from bridge.agents.llm_agent import LlmAgent as LlmAgent
from bridge.agents.loop_agent import LoopAgent as LoopAgent
from bridge.agents.plugin import Plugin as Plugin
from bridge.agents.questions import decision as decision
from bridge.agents.questions import questions_in as questions_in
from bridge.agents.run_config import RunConfig as RunConfig
from bridge.agents.runner import Runner as Runner
from bridge.calls.call import Outcome as Outcome
from bridge.calls.call import execute as execute
from bridge.calls.hooks import Hook as Hook
from bridge.calls.hooks import Hooks as Hooks
from bridge.core.confirmation import ToolConfirmation as ToolConfirmation
from bridge.core.content import Content as Content
from bridge.core.content import FunctionCall as FunctionCall
from bridge.core.content import Part as Part
from bridge.core.context import CallbackContext as CallbackContext
from bridge.core.context import Context as Context
from bridge.core.context import ReadonlyContext as ReadonlyContext
from bridge.core.context import ToolContext as ToolContext
from bridge.core.context import local_context as local_context
from bridge.core.declaration import Declaration as Declaration
from bridge.core.event import Event as Event
from bridge.core.model import Model as Model
from bridge.core.request import LLMRequest as LLMRequest
from bridge.core.tool import pack_tool as pack_tool
from bridge.gateway.embedded import open_toolset as open_toolset
from bridge.models.openai_compatible import OpenAICompatible as OpenAICompatible
from bridge.models.pydantic_ai import PydanticAIModel as PydanticAIModel
from bridge.models.scripted import ScriptedModel as ScriptedModel
from bridge.stores.database import open_database as open_database
from bridge.stores.files import FileArtifactService as FileArtifactService
from bridge.stores.fulltext import SqliteMemoryService as SqliteMemoryService
from bridge.stores.memory import InMemoryApprovalStore as InMemoryApprovalStore
from bridge.stores.memory import InMemoryArtifactService as InMemoryArtifactService
from bridge.stores.memory import InMemorySessionService as InMemorySessionService
from bridge.stores.sql import SqlSessionService as SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore as SqlApprovalStore
from bridge.tools.artifacts import load_artifacts as load_artifacts
from bridge.tools.examples import Example as Example
from bridge.tools.examples import ExampleTool as ExampleTool
from bridge.tools.function import function_tool as function_tool
from bridge.tools.loops import exit_loop as exit_loop
from bridge.tools.memory import load_memory as load_memory
from bridge.tools.memory import preload_memory as preload_memory
from bridge.tools.native import NativeTool as NativeTool
from bridge.tools.native import google_search as google_search
from bridge.tools.streaming import streaming_tool as streaming_tool
from bridge.upstream.connection import Connection as Connection
from bridge.upstream.toolset import MCPToolset as MCPToolset

__version__: str
__all__ = [
    "Agent",
    "AgentTool",
    "CallbackContext",
    "Connection",
    "Content",
    "Context",
    "Declaration",
    "Event",
    "Example",
    "ExampleTool",
    "FileArtifactService",
    "FunctionCall",
    "Hook",
    "Hooks",
    "InMemoryApprovalStore",
    "InMemoryArtifactService",
    "InMemorySessionService",
    "LLMRequest",
    "LlmAgent",
    "LoopAgent",
    "MCPToolset",
    "Model",
    "NativeTool",
    "OpenAICompatible",
    "Outcome",
    "Part",
    "Plugin",
    "PydanticAIModel",
    "ReadonlyContext",
    "RunConfig",
    "Runner",
    "ScriptedModel",
    "SqlApprovalStore",
    "SqlSessionService",
    "SqliteMemoryService",
    "ToolConfirmation",
    "ToolContext",
    "decision",
    "execute",
    "exit_loop",
    "function_tool",
    "google_search",
    "load_artifacts",
    "load_memory",
    "local_context",
    "open_database",
    "open_toolset",
    "pack_tool",
    "preload_memory",
    "questions_in",
    "streaming_tool",
]
