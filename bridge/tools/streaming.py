"""Turn a Python generator into a tool whose answer arrives in pieces of text (§2.13, §9)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, Unpack, overload

import anyio.to_thread

from bridge.core.content import Args
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.dialects.dialect import Dialect
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import ConfigError, ToolError
from bridge.telemetry import log
from bridge.tools.function import LocalTool, ToolOptions, function_tool
from bridge.tools.gate import Rule, check

Handler: TypeAlias = Callable[..., Any]

CLOSING_TIME: Final = 5.0
"""Seconds that a generator in a thread may take to clean up before it is left behind."""

_DONE: Final = object()


@dataclass(frozen=True, slots=True)
class StreamingTool:
    """A generator with a schema and a gate in front of it; `inner` knows both."""

    inner: LocalTool
    handler: Handler

    @property
    def name(self) -> str:
        """The name it is offered under."""
        return self.inner.name

    @property
    def description(self) -> str:
        """What a model is told."""
        return self.inner.description

    @property
    def is_long_running(self) -> bool:
        """Whether the call may be answered much later; streaming is another matter."""
        return self.inner.is_long_running

    def declaration(self, dialect: Dialect | None = None) -> Declaration:
        """What a model reads; there is no schema of the answer, which is text."""
        return self.inner.declaration(dialect)

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool in the request, as `pack_tool` does."""
        pack_tool(request, self)

    async def open_stream(self, ctx: ToolContext, args: Args) -> AsyncGenerator[str, None]:
        """Convert the arguments and pass the gate; the pieces are made as they are asked for.

        Raises:
            InvalidArguments: The arguments do not fit; no question was asked.
            ConfirmationRequired: A person has to say yes first.
            ConfirmationRejected: A person said no.
        """
        inner = self.inner
        value = inner.arguments.convert(args)
        if inner.rule is not None:
            converted = inner.arguments.shown(value) if inner.rule.has_provider else None
            await check(ctx, inner.rule, inner.subject, args, converted)

        return self._pieces(ctx, value)

    async def run_stream(self, ctx: ToolContext, args: Args) -> AsyncGenerator[str, None]:
        """The pieces, behind the gate; what `open_stream` raises, the first of them raises.

        Raises:
            ToolError: The generator failed, with its own message.
        """
        async with aclosing(await self.open_stream(ctx, args)) as pieces:
            async for piece in pieces:
                yield piece

    def with_rule(self, rule: Rule) -> StreamingTool:
        """The same tool behind `rule`, and behind the one it has, as one question."""
        return replace(self, inner=self.inner.with_rule(rule))

    def relabelled(self, name: str, description: str | None = None) -> StreamingTool:
        """The same tool, offered under another name and, unless None, another description."""
        return replace(self, inner=self.inner.relabelled(name, description))

    async def _pieces(self, ctx: ToolContext, value: Any) -> AsyncGenerator[str, None]:
        context = (ctx,) if self.inner.takes_context else ()
        fields = self.inner.arguments.fields
        # The one place where a user's generator is driven: whatever it raises is this call's.
        try:
            if fields is None:
                made = self.handler(*context, value)
            else:
                named = {name: getattr(value, attribute) for name, attribute in fields}
                made = self.handler(*context, **named)

            async with aclosing(_as_stream(made)) as pieces:
                async for piece in pieces:
                    yield piece
        except ToolError:
            raise
        except Exception as exc:
            log.info('the stream of tool "%s" failed', self.name, exc_info=True)
            raise ToolError(str(exc) or type(exc).__name__) from exc


@overload
def streaming_tool(handler: Handler, **options: Unpack[ToolOptions]) -> StreamingTool: ...
@overload
def streaming_tool(
    handler: None = None, **options: Unpack[ToolOptions]
) -> Callable[[Handler], StreamingTool]: ...
def streaming_tool(
    handler: Handler | None = None, **options: Unpack[ToolOptions]
) -> StreamingTool | Callable[[Handler], StreamingTool]:
    """Make a streaming tool of a generator function; also a decorator, with options or without.

    Parameters, schema and confirmation are as for `function_tool`. The function yields text. One
    that is not async is driven in a worker thread, and left behind there if it blocks when the
    call is called off.

    Raises:
        ConfigError: The function does not yield, or cannot be a tool's; or an `output_schema`
            is given, though the answer is text.
        InvalidSchema: A given schema is broken, or a type hint has no schema.
    """
    if handler is None:
        return lambda handler: _streaming_tool(handler, options)

    return _streaming_tool(handler, options)


def _streaming_tool(handler: Handler, options: ToolOptions) -> StreamingTool:
    if not inspect.isasyncgenfunction(handler) and not inspect.isgeneratorfunction(handler):
        raise ConfigError(f"a streaming tool is a function that yields text, not {handler!r}")

    if options.get("output_schema") is not None:
        name = options.get("name") or handler.__name__
        raise ConfigError(f'streaming tool "{name}": its answer is text and has no output_schema')

    return StreamingTool(function_tool(_described(handler), **options), handler)


def _described(handler: Handler) -> Handler:
    """A plain function with the parameters and the words of the handler, for the schema's sake."""

    @functools.wraps(handler)
    def described(*args: Any, **named: Any) -> None:
        raise ConfigError("this describes a generator and is not to be called")

    hints = dict(handler.__annotations__)
    hints.pop("return", None)
    described.__annotations__ = hints
    return described


def _as_stream(made: Any) -> AsyncGenerator[str, None]:
    """What the handler made, as something to await the pieces of."""
    is_async: bool = inspect.isasyncgen(made)
    return made if is_async else _from_thread(made)


async def _from_thread(pieces: Iterator[str]) -> AsyncGenerator[str, None]:
    """The pieces of a generator that is driven in worker threads, one piece at a time."""
    is_running = False
    try:
        while True:
            is_running = True
            piece: Any = await anyio.to_thread.run_sync(next, pieces, _DONE, abandon_on_cancel=True)
            is_running = False
            if piece is _DONE:
                return

            yield piece
    finally:
        close = getattr(pieces, "close", None)
        if not is_running and close is not None:
            with anyio.move_on_after(CLOSING_TIME, shield=True):
                await anyio.to_thread.run_sync(close, abandon_on_cancel=True)
