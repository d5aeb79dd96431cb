"""The server: what it lists, and where each request goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from tests.servers.everything import prompts, questions, tools
from tests.servers.everything.asking import Call, is_modern, settle
from tests.servers.everything.offer import PROMPTS, TOOLS
from tests.servers.everything.resources import RESOURCES, TEMPLATES, read
from tests.servers.everything.world import World

Ctx: TypeAlias = ServerRequestContext[Any, Any]

OFFERING = (tools, questions, prompts)
"""Importing these has entered what they offer."""

NAME = "everything"
RESOURCE_NOT_FOUND = -32002  # in the legacy era
WORDS = ("paris", "park", "party", "test", "testing")
HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(1000, "public"),
    "prompts/list": CacheHint(2000, "public"),
    "resources/list": CacheHint(3000, "public"),
    "resources/templates/list": CacheHint(4000, "public"),
    "resources/read": CacheHint(500, "private"),
    "server/discover": CacheHint(5000, "public"),
}


def everything() -> Server[Any]:
    """A server of its own world, for either era and any transport."""
    world = World()
    server: Server[Any] = Server(
        NAME,
        version="1.0.0",
        instructions="A server that does everything the conformance suite asks for.",
        cache_hints=HINTS,
        get_tool_input_schema=_schema,
        on_subscriptions_listen=ListenHandler(world.bus),
        on_completion=_complete,
    )
    boundary = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
    server.middleware.append(boundary)
    _add_tools(server, world)
    _add_prompts(server, world)
    _add_resources(server, world)
    _add_legacy(server, world)
    return server


def _schema(name: str) -> Mapping[str, Any] | None:
    return TOOLS[name][0].input_schema if name in TOOLS else None


def _add_tools(server: Server[Any], world: World) -> None:
    async def list_tools(ctx: Ctx, params: PaginatedRequestParams) -> ListToolsResult:
        hidden = () if world.has_extra_tool else ("test_extra_tool",)
        return ListToolsResult(
            tools=[tool for tool, _ in TOOLS.values() if tool.name not in hidden]
        )

    async def call_tool(
        ctx: Ctx, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f'there is no tool "{params.name}"')

        return await settle(Call.of(world, ctx, params), TOOLS[params.name][1])

    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)


def _add_prompts(server: Server[Any], world: World) -> None:
    async def list_prompts(ctx: Ctx, params: PaginatedRequestParams) -> ListPromptsResult:
        hidden = () if world.has_extra_prompt else ("test_extra_prompt",)
        return ListPromptsResult(
            prompts=[prompt for prompt, _ in PROMPTS.values() if prompt.name not in hidden]
        )

    async def get_prompt(
        ctx: Ctx, params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        if params.name not in PROMPTS:
            raise MCPError(INVALID_PARAMS, f'there is no prompt "{params.name}"')

        return await settle(Call.of(world, ctx, params), PROMPTS[params.name][1])

    server.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)


def _add_resources(server: Server[Any], world: World) -> None:
    async def list_resources(ctx: Ctx, params: PaginatedRequestParams) -> ListResourcesResult:
        return ListResourcesResult(resources=RESOURCES)

    async def list_templates(
        ctx: Ctx, params: PaginatedRequestParams
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(ctx: Ctx, params: ReadResourceRequestParams) -> ReadResourceResult:
        found = read(world, str(params.uri))
        if found is None:
            code = INVALID_PARAMS if is_modern(ctx) else RESOURCE_NOT_FOUND
            raise MCPError(code, "Resource not found", {"uri": str(params.uri)})

        return found

    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read_resource)


def _add_legacy(server: Server[Any], world: World) -> None:
    """What only a legacy client can send."""

    async def initialized(ctx: Ctx, params: NotificationParams) -> None:
        world.remember(ctx)

    async def set_level(ctx: Ctx, params: SetLevelRequestParams) -> EmptyResult:
        world.set_level(ctx, params.level)
        return EmptyResult()

    async def subscribe(ctx: Ctx, params: SubscribeRequestParams) -> EmptyResult:
        world.watch(ctx, str(params.uri), True)
        return EmptyResult()

    async def unsubscribe(ctx: Ctx, params: UnsubscribeRequestParams) -> EmptyResult:
        world.watch(ctx, str(params.uri), False)
        return EmptyResult()

    server.add_notification_handler("notifications/initialized", NotificationParams, initialized)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)


async def _complete(ctx: Ctx, params: CompleteRequestParams) -> CompleteResult:
    values = [word for word in WORDS if word.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))
