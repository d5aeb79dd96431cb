"""What counts as a tool: small contracts, recognised by shape, and the one way into a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol, runtime_checkable

from bridge.core.content import Args, Result
from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.errors import DuplicateTool


@runtime_checkable
class Tool(Protocol):
    """Identity only: a tool need not be something that runs here."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def is_long_running(self) -> bool: ...


@runtime_checkable
class FunctionTool(Tool, Protocol):
    """A tool that runs here. A declaration of None is legal: callable, invisible, name taken."""

    def declaration(self) -> Declaration | None: ...
    def run(self, ctx: ToolContext, args: Args) -> Awaitable[Result | None]: ...


@runtime_checkable
class StreamingFunctionTool(Tool, Protocol):
    """A tool whose answer arrives in pieces of text."""

    def declaration(self) -> Declaration | None: ...
    def run_stream(self, ctx: ToolContext, args: Args) -> AsyncIterator[str]: ...


@runtime_checkable
class RequestProcessor(Protocol):
    """Something that edits the request before the model sees it."""

    def process_request(self, ctx: ToolContext, request: LLMRequest) -> Awaitable[None]: ...


@runtime_checkable
class Toolset(Protocol):
    """A named, perhaps changing, collection of tools."""

    @property
    def name(self) -> str: ...
    def tools(self, ctx: ReadonlyContext) -> Awaitable[Sequence[Tool]]: ...


def is_function_tool(tool: Any) -> bool:
    """Whether calls can run through `tool.run`; cheaper than a check against the Protocol."""
    return hasattr(tool, "run") and hasattr(tool, "declaration")


def pack_tool(request: LLMRequest, tool: FunctionTool | StreamingFunctionTool) -> None:
    """Enter a tool twice: where we look it up, and where the model reads of it.

    A tool whose declaration is None is entered once: its name is taken, the model does not
    read of it.

    Raises:
        DuplicateTool: The name is taken; the request is unchanged.
    """
    if request.tools is None:
        request.tools = {}

    if tool.name in request.tools:
        raise DuplicateTool(
            f'two tools are named "{tool.name}"; rename one, or give its toolset a prefix'
        )

    request.tools[tool.name] = tool
    if request.config is None:
        request.config = GenerateConfig()

    declaration = tool.declaration()
    if declaration is not None:
        _declarations(request.config).append(declaration)


def _declarations(config: GenerateConfig) -> list[Declaration]:
    """The one list of function declarations, made where there is none yet."""
    for entry in config.tools:
        if entry is not None and entry.function_declarations is not None:
            return entry.function_declarations

    declarations: list[Declaration] = []
    config.tools.append(ModelTool(declarations))
    return declarations
