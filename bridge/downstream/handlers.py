"""`tools/list` and `tools/call` as plain functions: raw dicts in and out, no transport, no SDK."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

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
from bridge.downstream.large import LargeResults
from bridge.downstream.listing import Listing, list_catalog
from bridge.downstream.offering import Handler, Offer, Offering, Settle, Subscribable
from bridge.downstream.passing import Passing
from bridge.downstream.results import failure, to_answer
from bridge.errors import ToolError
from bridge.upstream.protocol import INPUT_REQUIRED, MODERN_VERSION
from bridge.version import VERSION

PROCESS, NUMBERS = f"{secrets.token_hex(8)}-", itertools.count(1)
"""What the ids of calls are made of: a UUID for each would cost more than the rest of it."""

MOST_QUESTIONS = 3
"""How often one call may be asked again because what it would do has changed meanwhile."""


async def settled() -> None:
    """What is offered is all there is: nothing to wait for."""


Leave: TypeAlias = Callable[[Asker], Awaitable[None]]


async def nothing_kept(asker: Asker) -> None:
    """Nothing is kept for single clients."""


Told: TypeAlias = Callable[[Asker, str, dict[str, Any]], Coroutine[Any, Any, None]]
"""Takes a client's own notification, method and params; never raises."""


async def nobody_told(asker: Asker, method: str, params: dict[str, Any]) -> None:
    """No server hears of what clients say."""


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
        more: Sequence[Offering] = (),
        resources: Subscribable | None = None,
        leave: Leave = nothing_kept,
        told: Told = nobody_told,
        passing: Passing | None = None,
        large: LargeResults | None = None,
    ) -> None:
        """`settle` waits while more tools may still come, as they do when bridge has just begun.

        `more` is what is served beside the tools, `resources` the one of them whose changes can
        be followed; `leave` hears of each legacy client whose conversation is over, `told` of
        what one says that servers may want to hear. `passing` has a last look at answers;
        `large` shortens those that are too large.
        """
        self._catalog = catalog
        self._settle = settle
        self._hooks = hooks
        self.confirmations = Confirmations() if confirmations is None else confirmations
        self._listing: Listing | None = None
        self.more = more
        self.resources = resources
        self.leave = leave
        self.told = told
        self._passing = passing
        self._large = large
        self._listed_passing = 0
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

    @property
    def methods(self) -> Mapping[str, Handler]:
        """Everything that is answered in both eras, by method."""
        found: dict[str, Handler] = {"tools/list": self.list_tools, "tools/call": self.call_tool}
        for offering in self.more:
            found.update(offering.methods)

        return found

    def capabilities(self) -> dict[str, Any]:
        """What is served and truly reaches something, as a legacy client is told."""
        found: dict[str, Any] = {"tools": {"listChanged": True}}
        for offering in self.more:
            found.update(offering.capabilities())

        return found

    async def initialized(self, version: str) -> Result:
        """Answer `initialize`, in this version of the handshake."""
        await self._settle()
        result = {
            "protocolVersion": version,
            "capabilities": eras.capabilities_for(self.capabilities(), modern=False),
            "serverInfo": self.stamp,
        }
        return (
            result if self.instructions is None else {**result, "instructions": self.instructions}
        )

    async def discovered(self) -> Result:
        """Answer `server/discover`."""
        await self._settle()
        result: Result = {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": eras.capabilities_for(self.capabilities(), modern=True),
        }
        if self.instructions is not None:
            result["instructions"] = self.instructions

        return eras.for_client_list(result, modern=True, stamp=self.stamp)

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the server behind a request may ask this client something while it works."""
        if method != "tools/call":
            return any(one.may_ask(asker, method, params) for one in self.more)

        may_ask = getattr(self._catalog.tools.get(params.get("name", "")), "may_ask", None)
        return may_ask is not None and bool(may_ask(asker))

    async def list_tools(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
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

    def mirrored_schema(self, name: object) -> Mapping[str, Any] | None:
        """The input schema of a listed tool whose arguments ride in headers, too; else None."""
        return self._current_listing().mirrored.get(name)

    async def call_tool(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `tools/call`.

        Raises:
            InvalidParams: No tool of that name is offered, or the params are not a call.
            JsonRpcError: The server behind the tool answered with a protocol error.
        """
        call, tools = to_call(params), self._catalog.tools
        if call.name not in tools:
            await self._settle()
            tools = self._catalog.tools

        if not is_function_tool(tools.get(call.name)):
            raise InvalidParams(f'unknown tool "{call.name}": tools/list shows what is offered')

        try:
            brought = await self.confirmations.brought(asker, call, params)
            asker.brought = brought.for_server
            answer = await self._answer(asker, call, tools, brought.granted, on_progress)
        except ToolError as error:  # the person's no, or nobody to ask
            answer = failure(str(error))

        if self._passing is not None:
            answer = self._passing.answer(asker, tools.get(call.name), answer)

        if self._large is not None and not self._large.is_small(answer):
            answer = await self._large.call(asker, tools.get(call.name), answer)

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
            (outcome,) = await self._run(asker, call, tools, granted, on_progress)
            if asker.notes is not None:
                asker.notes.ran(call, outcome, granted)

            if call.id not in outcome.actions.requested_tool_confirmations:
                answer = to_answer(outcome)
                if granted is None or answer.get("resultType") != INPUT_REQUIRED:
                    return answer

                return self.confirmations.carried(asker, call, answer, granted.hash)

            if asker.modern:
                return self.confirmations.input_required(asker, call, outcome)

            if asked < MOST_QUESTIONS:
                granted = await self.confirmations.ask(asker, call, outcome)
                tools = self._catalog.tools  # what was approved may have changed while we waited
                if call.name not in tools:
                    return failure(f'"{call.name}" is offered no more; nothing ran')

        return failure(f'"{call.name}" changed each time it was approved; nothing ran')

    def _run(
        self,
        asker: Asker,
        call: FunctionCall,
        tools: Mapping[str, Tool],
        granted: ToolConfirmation | None,
        on_progress: ProgressSink | None,
    ) -> Awaitable[list[Outcome]]:
        if asker.task is not None and self._passing is not None:
            tools = self._passing.as_tasks(asker, call.name, tools)

        session = Session(asker.session or call.id, asker.principal, self.name)
        return execute(
            [call],
            tools,
            Context(InvocationContext(session)),
            hooks=self._hooks,
            confirmations={} if granted is None else {call.id: granted},
            on_progress=on_progress,
            caller=asker,
        )

    def _current_listing(self) -> Listing:
        listing, version = self._listing, self._catalog.version
        passing = 0 if self._passing is None else self._passing.version
        if listing is None or (listing.version, self._listed_passing) != (version, passing):
            build = list_catalog if self._passing is None else self._passing.listing
            listing = self._listing = build(version, self._catalog.tools)
            self._listed_passing = passing

        return listing


def to_call(params: Mapping[str, Any]) -> FunctionCall:
    """The call that the params of `tools/call` are.

    Raises:
        InvalidParams: They are none.
    """
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise InvalidParams('tools/call needs a "name", a string')

    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidParams(f'the "arguments" of "{name}" must be an object')

    return FunctionCall(f"{PROCESS}{next(NUMBERS)}", name, {} if arguments is None else arguments)
