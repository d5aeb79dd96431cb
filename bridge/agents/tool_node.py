"""A function tool that runs by itself, without a model to call it: a workflow's node (§1.9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.agents.contract import AnyAgent
from bridge.agents.events import MODEL, own_event, text_content, visible_text
from bridge.agents.llm_agent import AnySchema, check_name
from bridge.agents.structured import schema_of
from bridge.calls.values import copied
from bridge.core.actions import EventActions
from bridge.core.content import Args
from bridge.core.context import Context, InvocationContext, ToolContext
from bridge.core.delta import UNSET, ContextDelta, InvocationDelta
from bridge.core.event import Event
from bridge.core.tool import FunctionTool, is_function_tool
from bridge.core.wire import loads
from bridge.errors import ConfigError, InvalidArguments, ToolError
from bridge.tools.problems import Problem, describe, kind_of
from bridge.tools.schema import Checker

RESULT: Final = "result"
"""The key under which a function tool gives what is no object."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolNode:
    """Runs one function tool on its input, and says what came of it in one event.

    It has the shape of an agent and stands wherever one can. Nothing steps in around the call,
    and nobody can be asked: a tool that needs a person's yes does not run here. `name` is the
    tool's unless it is given. The schemas (JSON Schema, or a pydantic model class) are what the
    input and the output have to fit besides the tool's own.

    Raises:
        ConfigError: The tool is none that runs here, the name cannot be an agent's, or a schema
            is none.
    """

    tool: FunctionTool
    name: str = ""
    input_schema: AnySchema = None
    output_schema: AnySchema = None
    sub_agents: Sequence[AnyAgent] = field(default=(), init=False)
    _input: Checker | None = field(init=False, repr=False)
    _output: Checker | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_function_tool(self.tool):
            called = getattr(self.tool, "name", type(self.tool).__name__)
            raise ConfigError(f'"{called}" cannot be a node: it is no tool that runs here')

        object.__setattr__(self, "name", self.name or self.tool.name)
        check_name(self.name)
        object.__setattr__(self, "_input", _checker(self.input_schema, self.name, "input"))
        object.__setattr__(self, "_output", _checker(self.output_schema, self.name, "output"))

    @property
    def description(self) -> str:
        """The tool's description."""
        return self.tool.description

    async def run(
        self, ctx: InvocationContext | Context, given: Any = UNSET
    ) -> AsyncGenerator[Event]:
        """The one event of the call: its `output`, as text, too, where it is a text.

        `given` is the input: an object, or the JSON text of one. Without one it is what the user
        has said. The call has an id and actions of its own.

        Raises:
            InvalidArguments: The input is no object, or does not fit; the tool did not run.
            ToolError: The tool failed, or has to wait for a person; or its output does not fit.
        """
        here = Context.promote(ctx, ContextDelta(invocation=InvocationDelta(agent=self)))
        args = self._arguments(visible_text(here.user_content) if given is UNSET else given)
        actions = EventActions()
        output = self.checked(await self._called(ToolContext(here, "", actions), args))
        content = text_content(output, MODEL) if isinstance(output, str) else None
        yield own_event(here, content=content, output=output, actions=actions)

    def checked(self, output: Any) -> Any:
        """The output, which has to fit: else what it holds under "result", if that fits.

        Raises:
            ToolError: Neither fits; the text says what is wrong with the whole of it.
        """
        problems = _problems(self._output, output)
        if not problems:
            return output

        if isinstance(output, dict) and RESULT in output:
            inner = output[RESULT]
            if not _problems(self._output, inner):
                return inner

        raise ToolError(f'the output of node "{self.name}" does not fit: {describe(problems)}')

    def _arguments(self, given: Any) -> Args:
        """The input as the tool's arguments, in which the tool may do as it likes."""
        args = _from_text(given) if isinstance(given, str) else given
        if not isinstance(args, dict):
            raise InvalidArguments(
                f'the input of node "{self.name}" must be an object, not {kind_of(args)}'
            )

        problems = _problems(self._input, args)
        if problems:
            raise InvalidArguments(
                f'the input of node "{self.name}" does not fit: {describe(problems)}'
            )

        found: Args = copied(args)
        return found

    async def _called(self, desk: ToolContext, args: Args) -> Any:
        try:
            output = await self.tool.run(desk, args)
        except Exception as exc:  # whatever fails in the tool is this node's failure
            reason = str(exc) or type(exc).__name__
            raise ToolError(f'the tool "{self.tool.name}" failed: {reason}') from exc

        if desk.actions.requested_tool_confirmations:
            raise ToolError(
                f'the tool "{self.tool.name}" asked for confirmation, and in a node nobody is '
                "asked; let an agent call it"
            )

        return output


def _checker(given: AnySchema, name: str, what: str) -> Checker | None:
    schema = schema_of(given, f'the {what} schema of node "{name}"')
    return None if schema is None else Checker(schema)


def _problems(checker: Checker | None, value: Any) -> list[Problem]:
    return [] if checker is None else checker.problems(value)


def _from_text(text: str) -> Any:
    """The object that the text is the JSON of; any other text is itself."""
    try:
        value = loads(text)
    except ValueError:
        return text

    return value if isinstance(value, dict) else text
