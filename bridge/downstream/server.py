"""Our handlers on the SDK's server, which keeps the two eras' handshakes, discovery and streams.

The SDK models and sieves what its handlers return. Ours answer one step before that, in its
middleware, so that what an MCP server said goes out as it came. Whatever the SDK does after that
step is then ours to do: the initialize gate, params, era fields, the server's stamp.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    PaginatedRequestParams,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bridge.core.content import Result
from bridge.downstream import eras
from bridge.downstream.asker import LOCAL, PRINCIPAL, Asker
from bridge.downstream.changes import Changes
from bridge.downstream.handlers import Handlers
from bridge.downstream.jsonrpc import INTERNAL_ERROR, InvalidParams, JsonRpcError
from bridge.downstream.progress import PacedProgress
from bridge.downstream.results import failure
from bridge.downstream.unicode import encodable
from bridge.errors import ConfirmationRequired
from bridge.telemetry import log

SESSION_HEADER = "mcp-session-id"
SESSION_PARAMETER = "session_id"

RequestContext = ServerRequestContext[Any, Any]


class Front:
    """One running server: the SDK's part in `server`, ours in its middleware.

    `confirm_wait` is how long a legacy client's person may think, in seconds; `most_calls` is
    how many calls run at once before further ones are refused.
    """

    def __init__(
        self,
        handlers: Handlers,
        *,
        confirm_wait: float = 300.0,
        most_calls: int = 1024,
    ) -> None:
        self._handlers = handlers
        self._confirm_wait = confirm_wait
        self._most_calls = most_calls
        self._running: set[anyio.CancelScope] = set()
        self._asking: set[anyio.CancelScope] = set()
        self._idle = anyio.Event()
        self._followed: set[int] = set()
        self._changes = Changes()
        self._listeners = ListenHandler(self._changes.bus)
        self.server = _sdk_server(handlers, self._listeners)
        self.server.middleware[:] = [self._middleware]

    async def relay_changes(self) -> None:
        """Tell clients when the list of tools changes, until cancelled. Run this in one task."""
        await self._changes.relay(self._handlers.on_change)

    def wind_down(self) -> None:
        """End what only waits: listening, with its result, and questions to people, with none."""
        self._listeners.close()
        for scope in self._asking:
            scope.cancel()

    async def end_calls(self) -> None:
        """Cancel every call that is running, and return when their clients have been told."""
        for scope in self._running:
            scope.cancel()

        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Return when no call is running."""
        while self._running:
            if self._idle.is_set():
                self._idle = anyio.Event()

            await self._idle.wait()

    async def _middleware(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            result = await call_next(ctx)
            if ctx.method == "notifications/initialized" and not _is_modern(ctx):
                await self._follow_changes(ctx)

            return result

        if ctx.method == "tools/list":
            return await self._answer(ctx, self._handlers.list_tools)

        if ctx.method == "tools/call":
            return await self._answer(ctx, partial(self._call_tool, ctx))

        return await call_next(ctx)

    async def _answer(
        self,
        ctx: RequestContext,
        handler: Callable[[Asker, Mapping[str, Any]], Awaitable[Result]],
    ) -> Result:
        """One of our handlers' answers, or its error as the SDK wants it raised."""
        if not _is_modern(ctx) and ctx.session.client_params is None:
            raise MCPError(*_error(InvalidParams(f"{ctx.method} came before initialize")))

        try:
            answer = await handler(self._asker(ctx), ctx.params or {})
        except JsonRpcError as exc:
            raise MCPError(*_error(exc)) from None
        except Exception:  # ours, but the SDK would send the client the exception's own text
            log.exception("%s failed", ctx.method)
            raise MCPError(INTERNAL_ERROR, "internal error; the server's log says more") from None

        sendable: Result = encodable(answer)
        return sendable

    async def _call_tool(
        self, ctx: RequestContext, asker: Asker, params: Mapping[str, Any]
    ) -> Result:
        if len(self._running) >= self._most_calls:
            return self._failed(asker, "too many calls are running here; nothing ran, try later")

        has_token = progress_token_from_params(params) is not None
        on_progress = PacedProgress(ctx.session.report_progress) if has_token else None
        scope = anyio.CancelScope()
        self._running.add(scope)
        try:
            with scope:
                return await self._handlers.call_tool(asker, params, on_progress)
        finally:
            self._running.discard(scope)
            if not self._running:
                self._idle.set()

        return self._failed(asker, "this server is closing; whether the call ran is not known")

    def _failed(self, asker: Asker, text: str) -> Result:
        return eras.for_client(failure(text), modern=asker.modern, stamp=self._handlers.stamp)

    def _asker(self, ctx: RequestContext) -> Asker:
        """Who asks, and how a person there can be asked: what was declared, nothing more."""
        principal, session = _whose(ctx)
        capabilities = ctx.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        # Neither mode named means form, as before there were two (elicitation, capabilities).
        has_form = elicitation is not None and (
            elicitation.form is not None or elicitation.url is None
        )
        if _is_modern(ctx):
            return Asker(principal, session, True, has_form)

        can_ask = has_form and ctx.session.can_send_request
        return Asker(principal, session, False, False, partial(self._ask, ctx) if can_ask else None)

    async def _ask(self, ctx: RequestContext, form: dict[str, Any]) -> Result:
        """Ask on the stream of the very request that waits; see `AskPerson`."""
        params = ElicitRequestFormParams(
            message=form["message"], requested_schema=form["requestedSchema"]
        )
        scope = anyio.CancelScope()
        self._asking.add(scope)
        try:
            with scope:
                answer = await ctx.session.send_request(
                    ElicitRequest(params=params),
                    ElicitResult,
                    request_read_timeout_seconds=self._confirm_wait,
                    metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
                )
                return {"action": answer.action, "content": answer.content}
        except MCPError as exc:
            raise ConfirmationRequired(f"no approval came, nothing ran: {exc.message}") from exc
        except ValueError as exc:  # what the SDK's models raise
            raise ConfirmationRequired("the client's approval is malformed; nothing ran") from exc
        finally:
            self._asking.discard(scope)

        raise ConfirmationRequired("this server is closing; nothing ran")

    async def _follow_changes(self, ctx: RequestContext) -> None:
        """Tell one legacy session of changes. The SDK cancels this when the session ends."""
        session = id(ctx.session.client_params)
        if ctx.session.client_params is None or session in self._followed:
            return

        self._followed.add(session)
        try:
            await self._changes.follow(ctx.session.send_tool_list_changed)
        finally:
            self._followed.discard(session)


class _Server(Server[Any]):
    """The SDK's server, which would not tell legacy HTTP clients that lists change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def _sdk_server(handlers: Handlers, listeners: ListenHandler) -> Server[Any]:
    server = _Server(
        handlers.name,
        version=handlers.version,
        instructions=handlers.instructions,
        get_tool_input_schema=handlers.input_schema,
        on_subscriptions_listen=listeners,
    )
    # The SDK advertises what it has handlers for; ours answer before these are reached.
    server.add_request_handler("tools/list", PaginatedRequestParams, _unreachable)
    server.add_request_handler("tools/call", RequestParams, _unreachable)
    return server


async def _unreachable(ctx: RequestContext, _: Any) -> HandlerResult:
    raise MCPError(INTERNAL_ERROR, f"{ctx.method} has no handler")


def _is_modern(ctx: RequestContext) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _whose(ctx: RequestContext) -> tuple[str, str]:
    """The principal, and the session as its transport names it; stdio is one local session."""
    request = ctx.request
    if request is None:
        return LOCAL, ""

    session = request.query_params.get(SESSION_PARAMETER)
    if session is None and not _is_modern(ctx):
        session = request.headers.get(SESSION_HEADER)

    return request.scope.get(PRINCIPAL, LOCAL), session or ""


def _error(error: JsonRpcError) -> tuple[int, str, Any]:
    return error.code, encodable(error.message), encodable(error.data)
