"""Turn a Python function into a tool that runs here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict, Unpack, overload

import anyio
import anyio.to_thread

from bridge.core.confirmation import Subject, json_hash
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration, Schema
from bridge.core.dialects.dialect import Dialect, in_dialect
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import ConfigError, ToolError
from bridge.telemetry import log
from bridge.tools.arguments import Arguments, arguments_of
from bridge.tools.cancelled import self_cancelled
from bridge.tools.docstring import parse_docstring
from bridge.tools.gate import Provider, Rule, check, check_provider
from bridge.tools.names import LOCAL, is_legal
from bridge.tools.results import Results, results_of
from bridge.tools.signature import Handler, is_async, read_signature

_LONG_RUNNING_NOTE = (
    "This operation takes long. Once it has answered, be it only with an intermediate or pending "
    "status, do not call it again for the same purpose."
)
_Runner: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class LocalTool:
    """A Python function with a schema in front of it, one behind it, and a gate in between."""

    name: str
    description: str
    is_long_running: bool
    rule: Rule | None
    subject: Subject
    arguments: Arguments
    results: Results
    takes_context: bool
    handler: _Runner

    def declaration(self, dialect: Dialect | None = None) -> Declaration:
        """What a model reads, with a note not to repeat the call where it runs long.

        Raises:
            InvalidSchema: It cannot be said in this dialect.
        """
        notes = [self.description] if self.description else []
        if self.is_long_running:
            notes.append(_LONG_RUNNING_NOTE)

        told = Declaration(
            self.name, "\n\n".join(notes), self.arguments.schema, self.results.schema
        )
        return in_dialect(told, dialect)

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool in the request, as `pack_tool` does."""
        pack_tool(request, self)

    async def run(self, ctx: ToolContext, args: Args) -> Result | None:
        """Convert the arguments, pass the gate, call the function, convert its result.

        Raises:
            InvalidArguments: The arguments do not fit; no question was asked and nothing ran.
            ConfirmationRequired: A person has to say yes first.
            ConfirmationRejected: A person said no.
            ToolError: The function failed, with its own message; or its result does not fit.
        """
        value = self.arguments.convert(args)
        if self.rule is not None:
            converted = self.arguments.shown(value) if self.rule.has_provider else None
            await check(ctx, self.rule, self.subject, args, converted)

        return self.results.to_result(await self._call(ctx, value))

    async def _call(self, ctx: ToolContext, value: Any) -> Any:
        context = (ctx,) if self.takes_context else ()
        fields = self.arguments.fields
        # The one place where a user's function is called: whatever it raises is this call's.
        try:
            if fields is None:
                return await self.handler(*context, value)

            named = {name: getattr(value, attribute) for name, attribute in fields}
            return await self.handler(*context, **named)
        except ToolError:
            raise
        except anyio.get_cancelled_exc_class() as exc:
            raise self_cancelled(exc, f'the function of tool "{self.subject.tool}"') from exc
        except Exception as exc:
            log.info('the function of tool "%s" failed', self.subject.tool, exc_info=True)
            raise ToolError(str(exc) or type(exc).__name__) from exc

    def with_rule(self, rule: Rule) -> LocalTool:
        """The same tool behind `rule`, and behind the one it has, as one question."""
        return replace(self, rule=rule if self.rule is None else self.rule.and_also(rule))

    def relabelled(self, name: str, description: str | None = None) -> LocalTool:
        """The same tool, offered under another name and, unless None, another description."""
        told = self.description if description is None else description
        return replace(self, name=name, description=told)


class ToolOptions(TypedDict, total=False):
    """What `function_tool` may be told besides the function; None is "as it is by default"."""

    name: str | None
    """What to call the tool; by default the function's name."""
    description: str | None
    """What a model is told; by default the docstring."""
    args_type: Any
    """The type of the whole arguments, instead of the parameter's annotation."""
    input_schema: Schema | None
    """JSON Schema to check the arguments with, before they are converted."""
    output_schema: Schema | None
    """JSON Schema to check the result with, instead of the return annotation."""
    is_long_running: bool
    """Tells the model not to repeat the call, and allows that there is no answer yet."""
    require_confirmation: bool | Provider
    """Whether a person must say yes to each call, or who decides that call by call."""


@overload
def function_tool(handler: Handler, **options: Unpack[ToolOptions]) -> LocalTool: ...
@overload
def function_tool(
    handler: None = None, **options: Unpack[ToolOptions]
) -> Callable[[Handler], LocalTool]: ...
def function_tool(
    handler: Handler | None = None, **options: Unpack[ToolOptions]
) -> LocalTool | Callable[[Handler], LocalTool]:
    """Make a tool of a function; also a decorator, with options (`ToolOptions`) or without.

    The function's first parameter gets the call's `ToolContext` if it is annotated so, or is
    named `ctx`. A single parameter of an object type (pydantic model, dataclass, TypedDict, dict
    with string keys, or one of these or None) gets the arguments whole; otherwise each parameter
    gets the property of its name. The schemas come from the type hints, and what the docstring
    says of a parameter describes it. A function that is not async runs in a worker thread, which
    is abandoned when the call is cancelled.

    Raises:
        ConfigError: The function, its argument type or its name cannot be a tool's.
        InvalidSchema: A given schema is broken, or a type hint has no schema.
    """
    if handler is None:
        return lambda handler: _local_tool(handler, **options)

    return _local_tool(handler, **options)


def _local_tool(
    handler: Handler,
    *,
    name: str | None = None,
    description: str | None = None,
    args_type: Any = None,
    input_schema: Schema | None = None,
    output_schema: Schema | None = None,
    is_long_running: bool = False,
    require_confirmation: bool | Provider = False,
) -> LocalTool:
    own_name = _checked_name(handler, name)
    signature = read_signature(handler, own_name)
    documented = parse_docstring(inspect.getdoc(handler))
    told = documented.description if description is None else description
    arguments = arguments_of(
        signature,
        own_name,
        args_type=args_type,
        input_schema=input_schema,
        descriptions=documented.parameters,
    )
    results = results_of(signature.returns, own_name, output_schema)
    definition = json_hash([own_name, told, arguments.schema, results.schema])
    return LocalTool(
        name=own_name,
        description=told,
        is_long_running=is_long_running,
        rule=_rule(own_name, require_confirmation),
        subject=Subject(LOCAL, own_name, definition),
        arguments=arguments,
        results=results,
        takes_context=signature.takes_context,
        handler=handler if is_async(handler) else _in_thread(handler),
    )


def _checked_name(handler: Handler, name: str | None) -> str:
    found = str(getattr(handler, "__name__", type(handler).__name__)) if name is None else name
    if not callable(handler):
        raise ConfigError(f'tool "{found}": {handler!r} is not a function')

    if not is_legal(found):
        raise ConfigError(
            f'"{found}" cannot name a tool: give it a name= of 1 to 64 letters, digits, "_" or "-"'
        )

    return found


def _rule(name: str, require_confirmation: bool | Provider | None) -> Rule | None:
    if callable(require_confirmation):
        _check_provider(name, require_confirmation)
        return Rule(name, require=False, provider=require_confirmation)

    if not isinstance(require_confirmation, bool | None):
        kind = type(require_confirmation).__name__
        raise ConfigError(
            f'tool "{name}": require_confirmation is True, False or a function of a tool\'s name '
            f"and arguments, not a {kind}"
        )

    return Rule(name, require=True) if require_confirmation else None


def _check_provider(name: str, provider: Provider) -> None:
    """Raises ConfigError if the function cannot be called with a tool's name and arguments."""
    try:
        check_provider(provider)
    except TypeError as exc:
        raise ConfigError(
            f'tool "{name}": the function that decides about confirmation takes a tool\'s name '
            f"and arguments: {exc}"
        ) from exc


def _in_thread(handler: Handler) -> _Runner:
    """The handler as an async function: it runs in a worker thread, with the caller's context."""

    async def run(*args: Any, **named: Any) -> Any:
        work = functools.partial(handler, *args, **named)
        output = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        return await output if inspect.isawaitable(output) else output

    return run
