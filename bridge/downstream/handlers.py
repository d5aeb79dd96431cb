"""`tools/list` and `tools/call` as plain functions: raw dicts in and out, no transport, no SDK."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from bridge.calls.call import Outcome, execute
from bridge.calls.hooks import NO_HOOKS, Hooks
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall, Result
from bridge.core.context import Context, InvocationContext, ProgressSink
from bridge.core.session import Session
from bridge.core.tool import Tool, is_function_tool
from bridge.downstream import eras
from bridge.downstream.asker import Asker
from bridge.downstream.confirm import Confirmations
from bridge.downstream.jsonrpc import InvalidParams
from bridge.downstream.listing import Listing, list_catalog
from bridge.downstream.results import failure, to_answer
from bridge.errors import ToolError
from bridge.version import VERSION

MOST_QUESTIONS = 3
"""How often one call may be asked again because what it would do has changed meanwhile."""


Settle: TypeAlias = Callable[[], Awaitable[None]]


async def settled() -> None:
    """What is offered is all there is: nothing to wait for."""


class Offer(Protocol):
    """What is offered: a snapshot that is swapped whole, its number, and who hears of a swap."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...
    @property
    def version(self) -> int: ...
    @property
    def on_change(self) -> list[Callable[[], None]]: ...


class Handlers:
    """What one offer answers to its MCP clients, whatever transport and era they speak."""

    def __init__(
        self,
        catalog: Offer,
        *,
        hooks: Hooks = NO_HOOKS,
        name: str = "bridge",
        version: str = VERSION,
        instructions: str | None = None,
        confirmations: Confirmations | None = None,
        settle: Settle = settled,
    ) -> None:
        """`settle` waits while more tools may still come, as they do when bridge has just begun."""
        self._catalog = catalog
        self._settle = settle
        self._hooks = hooks
        self._confirmations = Confirmations() if confirmations is None else confirmations
        self._listing: Listing | None = None
        self.name = name
        self.version = version
        self.instructions = instructions

    @property
    def stamp(self) -> dict[str, Any]:
        """Who we are, as every modern answer says."""
        return {"name": self.name, "version": self.version}

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called, each without arguments, when the list of tools has changed."""
        return self._catalog.on_change

    async def list_tools(self, asker: Asker, params: Mapping[str, Any]) -> Result:
        """Answer `tools/list`: one page, the same for every connection.

        Raises:
            InvalidParams: A cursor, which we never gave.
        """
        cursor = params.get("cursor")
        if cursor is not None:
            raise InvalidParams(f'unknown cursor "{cursor}": all tools are on the first page')

        await self._settle()
        listing = self._current_listing()
        body = listing.modern if asker.modern else listing.legacy
        return eras.for_client_list(body, modern=asker.modern, stamp=self.stamp)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a listed tool, without listing anew; None if there is none."""
        schema = self._current_listing().input_schemas.get(name)
        return schema if isinstance(schema, dict) else None

    async def call_tool(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `tools/call`.

        Raises:
            InvalidParams: No tool of that name is offered, or the params are not a call.
            JsonRpcError: The server behind the tool answered with a protocol error.
        """
        call, tools = _call(params), self._catalog.tools
        if call.name not in tools:
            await self._settle()
            tools = self._catalog.tools

        if not is_function_tool(tools.get(call.name)):
            raise InvalidParams(f'unknown tool "{call.name}": tools/list shows what is offered')

        try:
            granted = self._confirmations.brought(asker, call, params)
            answer = await self._answer(asker, call, tools, granted, on_progress)
        except ToolError as error:  # the person's no, or nobody to ask
            answer = failure(str(error))

        return eras.for_client(answer, modern=asker.modern, stamp=self.stamp)

    async def _answer(
        self,
        asker: Asker,
        call: FunctionCall,
        tools: Mapping[str, Tool],
        granted: ToolConfirmation | None,
        on_progress: ProgressSink | None,
    ) -> Result:
        """Run the call, with a yes where there is one, until nothing more has to be asked."""
        for asked in range(MOST_QUESTIONS + 1):
            outcome = await self._run(asker, call, tools, granted, on_progress)
            if call.id not in outcome.actions.requested_tool_confirmations:
                return to_answer(outcome)

            if asker.modern:
                return self._confirmations.input_required(asker, call, outcome)

            if asked < MOST_QUESTIONS:
                granted = await self._confirmations.ask(asker, call, outcome)
                tools = self._catalog.tools  # what was approved may have changed while we waited
                if call.name not in tools:
                    return failure(f'"{call.name}" is offered no more; nothing ran')

        return failure(f'"{call.name}" changed each time it was approved; nothing ran')

    async def _run(
        self,
        asker: Asker,
        call: FunctionCall,
        tools: Mapping[str, Tool],
        granted: ToolConfirmation | None,
        on_progress: ProgressSink | None,
    ) -> Outcome:
        session = Session(asker.session or uuid.uuid4().hex, asker.principal, self.name)
        outcomes = await execute(
            [call],
            tools,
            Context(InvocationContext(session)),
            hooks=self._hooks,
            confirmations={} if granted is None else {call.id: granted},
            on_progress=on_progress,
        )
        return outcomes[0]

    def _current_listing(self) -> Listing:
        listing, version = self._listing, self._catalog.version
        if listing is None or listing.version != version:
            listing = self._listing = list_catalog(version, self._catalog.tools)

        return listing


def _call(params: Mapping[str, Any]) -> FunctionCall:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise InvalidParams('tools/call needs a "name", a string')

    if not isinstance(arguments, dict | None):
        raise InvalidParams(f'the "arguments" of "{name}" must be an object')

    return FunctionCall(uuid.uuid4().hex, name, {} if arguments is None else arguments)
