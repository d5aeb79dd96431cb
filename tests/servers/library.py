"""A server with prompts and resources that come, change and fail: `library.py [options]`.

--era modern|legacy pins it to an era; --http PORT serves Streamable HTTP instead of stdio;
--broken METHOD has a method fail, --lacks METHOD has it unknown; --pages N lists N prompts, one a
page; --no-tools has no tools;
--name NAME is what its texts say. Its tools: `grow` lists one prompt and one resource more,
`touch` changes a resource, `followed` tells what is subscribed, `link` answers with links, `roots`
counts how often the client said that its roots changed, `die` ends the server.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter
from typing import Any, TypeAlias

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import event_to_notification
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
    UnsubscribeRequestParams,
)

from tests.servers.everything.http import serve_http
from tests.servers.everything.stdio import serve_stdio

Ctx: TypeAlias = ServerRequestContext[Any, Any]

SHARED = "shared://text"
TEMPLATE = "shared://made/{word}"
TOOLS = ("grow", "touch", "followed", "link", "roots", "die")


class Library:
    """What the server has, and who wants to hear of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name: str = options.name
        self.broken: str = options.broken
        self.lacks: str = options.lacks
        self.pages: int = options.pages
        self.bus = InMemorySubscriptionBus()
        self.listening = ListenHandler(self.bus)
        self.sessions: list[ServerSession] = []
        self.followed: Counter[str] = Counter()
        self.more = 0
        self.roots_changed = 0

    def check(self, method: str) -> None:
        """Fail where the server is to fail."""
        if method == self.lacks:
            raise MCPError(-32601, f"there is no {method}")

        if method == self.broken:
            raise MCPError(-32603, f"{method} is broken")

    async def announce(self, event: ServerEvent) -> None:
        """Tell everybody who wants to hear."""
        await self.bus.publish(event)
        if isinstance(event, ResourceUpdated) and self.followed[event.uri] < 1:
            return

        for session in self.sessions:
            await session.send_notification(event_to_notification(event, {}))


def library(options: argparse.Namespace) -> Server[Any]:
    """The server."""
    lib = Library(options)

    async def listen(ctx: Ctx, params: Any) -> Any:
        wanted = params.notifications.resource_subscriptions or []
        lib.followed.update(wanted)
        try:
            return await lib.listening(ctx, params)
        finally:
            lib.followed.subtract(wanted)

    server: Server[Any] = Server(
        lib.name,
        on_completion=_complete,
        on_subscriptions_listen=listen,
    )
    _add_lists(server, lib)
    _add_answers(server, lib)
    _add_legacy(server, lib)
    if not options.no_tools:
        _add_tools(server, lib)

    return server


def _add_lists(server: Server[Any], lib: Library) -> None:
    async def prompts(ctx: Ctx, params: PaginatedRequestParams) -> ListPromptsResult:
        lib.check("prompts/list")
        at = int(params.cursor or 0)
        names = [f"prompt_{n}" for n in range(lib.pages + lib.more)]
        argument = PromptArgument(name="word")
        listed = [Prompt(name=name, arguments=[argument]) for name in names[at : at + 1]]
        return ListPromptsResult(
            prompts=listed, next_cursor=str(at + 1) if at + 1 < len(names) else None
        )

    async def resources(ctx: Ctx, params: PaginatedRequestParams) -> ListResourcesResult:
        lib.check("resources/list")
        own = [f"{lib.name}://{n}" for n in range(1 + lib.more)]
        return ListResourcesResult(
            resources=[Resource(uri=uri, name=uri) for uri in [SHARED, *own]]
        )

    async def templates(ctx: Ctx, params: PaginatedRequestParams) -> ListResourceTemplatesResult:
        lib.check("resources/templates/list")
        listed = [ResourceTemplate(uri_template=TEMPLATE, name="made")]
        return ListResourceTemplatesResult(resource_templates=listed)

    server.add_request_handler("prompts/list", PaginatedRequestParams, prompts)
    server.add_request_handler("resources/list", PaginatedRequestParams, resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, templates)


def _add_answers(server: Server[Any], lib: Library) -> None:
    async def get(ctx: Ctx, params: GetPromptRequestParams) -> GetPromptResult:
        word = (params.arguments or {}).get("word", "")
        said = TextContent(text=f"{params.name} of {lib.name}: {word}")
        contents = TextResourceContents(uri=SHARED, text="embedded")
        embedded = EmbeddedResource(resource=contents)
        return GetPromptResult(
            messages=[PromptMessage(role="user", content=one) for one in (said, embedded)]
        )

    async def read(ctx: Ctx, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        if not uri.startswith(("shared://", f"{lib.name}://")):
            modern = ctx.protocol_version >= "2026"
            raise MCPError(-32602 if modern else -32002, "Resource not found", {"uri": uri})

        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, text=f"{uri} of {lib.name}")]
        )

    server.add_request_handler("prompts/get", GetPromptRequestParams, get)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)


def _add_legacy(server: Server[Any], lib: Library) -> None:
    async def initialized(ctx: Ctx, params: NotificationParams) -> None:
        lib.sessions.append(ctx.session)

    async def roots(ctx: Ctx, params: NotificationParams) -> None:
        lib.roots_changed += 1

    async def subscribe(ctx: Ctx, params: SubscribeRequestParams) -> EmptyResult:
        lib.followed[str(params.uri)] += 1
        return EmptyResult()

    async def unsubscribe(ctx: Ctx, params: UnsubscribeRequestParams) -> EmptyResult:
        lib.followed[str(params.uri)] -= 1
        return EmptyResult()

    server.add_notification_handler("notifications/initialized", NotificationParams, initialized)
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, roots)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)


def _add_tools(server: Server[Any], lib: Library) -> None:
    async def tools(ctx: Ctx, params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(
            tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
        )

    async def call(ctx: Ctx, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "grow":
            lib.more += 1
            await lib.announce(PromptsListChanged())
            await lib.announce(ResourcesListChanged())
        elif params.name == "touch":
            await lib.announce(ResourceUpdated(uri=SHARED))
        elif params.name == "die":
            os._exit(1)
        elif params.name == "link":
            contents = TextResourceContents(uri=SHARED, text="embedded")
            return CallToolResult(
                content=[
                    ResourceLink(uri=SHARED, name="shared"),
                    ResourceLink(uri=f"{lib.name}://0", name="own"),
                    EmbeddedResource(resource=contents),
                ]
            )

        elif params.name == "roots":
            return CallToolResult(content=[], structured_content={"changed": lib.roots_changed})

        followed = {uri: count for uri, count in lib.followed.items() if count > 0}
        return CallToolResult(content=[TextContent(text="done")], structured_content=followed)

    server.add_request_handler("tools/list", PaginatedRequestParams, tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call)


async def _complete(ctx: Ctx, params: CompleteRequestParams) -> CompleteResult:
    about = getattr(params.ref, "name", None) or params.ref.uri  # type: ignore[union-attr]
    return CompleteResult(completion=Completion(values=[f"{about} {params.argument.value}"]))


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=("modern", "legacy"))
    parser.add_argument("--http", type=int)
    parser.add_argument("--broken", default="")
    parser.add_argument("--lacks", default="")
    parser.add_argument("--pages", type=int, default=2)
    parser.add_argument("--no-tools", action="store_true")
    parser.add_argument("--name", default="library")
    options = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    if options.http is None:
        anyio.run(serve_stdio, library(options), options.era)
    else:
        serve_http(library(options), options.http, "h11", options.era)


if __name__ == "__main__":
    main()
