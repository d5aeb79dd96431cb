from bridge.calls.call import Outcome as Outcome
from bridge.calls.call import execute as execute
from bridge.calls.hooks import Hook as Hook
from bridge.calls.hooks import Hooks as Hooks
from bridge.core.confirmation import ToolConfirmation as ToolConfirmation
from bridge.core.content import FunctionCall as FunctionCall
from bridge.core.context import Context as Context
from bridge.core.context import ReadonlyContext as ReadonlyContext
from bridge.core.context import ToolContext as ToolContext
from bridge.core.context import local_context as local_context
from bridge.core.declaration import Declaration as Declaration
from bridge.core.request import LLMRequest as LLMRequest
from bridge.core.tool import pack_tool as pack_tool
from bridge.gateway.embedded import open_toolset as open_toolset
from bridge.tools.function import function_tool as function_tool
from bridge.upstream.toolset import MCPToolset as MCPToolset

__version__: str
__all__ = [
    "Context",
    "Declaration",
    "FunctionCall",
    "Hook",
    "Hooks",
    "LLMRequest",
    "MCPToolset",
    "Outcome",
    "ReadonlyContext",
    "ToolConfirmation",
    "ToolContext",
    "execute",
    "function_tool",
    "local_context",
    "open_toolset",
    "pack_tool",
]
