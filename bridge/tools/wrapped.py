"""A stranger's tool under another name, or behind the gate, where it can do neither by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from bridge.core.confirmation import Subject, json_hash
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.dialects.dialect import Dialect, in_dialect
from bridge.core.request import LLMRequest
from bridge.core.tool import Tool, pack_tool
from bridge.tools.gate import Rule, check
from bridge.tools.names import LOCAL


def guarded(tool: Tool, rule: Rule) -> Tool:
    """The tool behind `rule`, and behind the one it has; wrapped only if it cannot take a rule."""
    with_rule: Callable[[Rule], Tool] | None = getattr(tool, "with_rule", None)
    return WrappedTool(tool, rule=rule) if with_rule is None else with_rule(rule)


def relabelled(tool: Tool, name: str, description: str | None = None) -> Tool:
    """The tool under another name, and another description unless that is None.

    A tool that nobody calls by name (one without a declaration) is itself.
    """
    relabel: Callable[[str, str | None], Tool] | None = getattr(tool, "relabelled", None)
    if relabel is not None:
        return relabel(name, description)

    if not hasattr(tool, "declaration"):
        return tool

    return WrappedTool(tool, name=name, description=description)


class WrappedTool:
    """Any tool with a declaration, dressed in a name, a description and a rule.

    Without a rule it can all that the inner tool can, and nothing else. Behind a rule it can
    only what passes the gate: run, and enter itself in a request.
    """

    run: Callable[[ToolContext, Args], Awaitable[Result | None]]
    process_request: Callable[[ToolContext, LLMRequest], Awaitable[None]]

    def __init__(
        self,
        inner: Tool,
        *,
        name: str | None = None,
        description: str | None = None,
        rule: Rule | None = None,
    ) -> None:
        self.inner: Any = inner
        self.name = inner.name if name is None else name
        self.description = inner.description if description is None else description
        self.is_long_running = inner.is_long_running
        self.rule = rule
        self._subject: Subject | None = None
        if hasattr(inner, "run"):
            self.run = inner.run if rule is None else self._run_behind_gate

        if rule is not None or hasattr(inner, "process_request"):
            self.process_request = self._process_request

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is not set above. Behind a rule, whatever else the inner tool
        # can would be a way around the gate.
        if name.startswith("_") or name in ("inner", "rule", "run", "process_request"):
            raise AttributeError(name)

        if self.rule is not None:
            raise AttributeError(f'the guarded tool "{self.name}" has no attribute {name!r}')

        return getattr(self.inner, name)

    @property
    def subject(self) -> Subject:
        """What a yes to a call of this tool is bound to: the inner tool as it declares itself."""
        if self._subject is None:
            told = self.inner.declaration() or Declaration(self.inner.name, self.inner.description)
            definition = json_hash(
                [
                    told.name,
                    told.description,
                    told.parameters_json_schema,
                    told.response_json_schema,
                ]
            )
            self._subject = Subject(LOCAL, self.inner.name, definition)

        return self._subject

    def declaration(self, dialect: Dialect | None = None) -> Declaration | None:
        """The inner tool's, under this name and, where it was given anew, this description."""
        told: Declaration | None = self.inner.declaration()
        if told is None:
            return None

        told = replace(told, name=self.name)
        if self.description != self.inner.description:
            told = replace(told, description=self.description)

        return in_dialect(told, dialect)

    def with_rule(self, rule: Rule) -> WrappedTool:
        """The same tool behind `rule`, and behind the one it has, as one question."""
        joined = rule if self.rule is None else self.rule.and_also(rule)
        return self._dressed(self.name, self.description, joined)

    def relabelled(self, name: str, description: str | None = None) -> WrappedTool:
        """The same tool under another name and, unless None, with another description."""
        return self._dressed(
            name, self.description if description is None else description, self.rule
        )

    def _dressed(self, name: str, description: str, rule: Rule | None) -> WrappedTool:
        return WrappedTool(self.inner, name=name, description=description, rule=rule)

    async def _run_behind_gate(self, ctx: ToolContext, args: Args) -> Result | None:
        if self.rule is not None:
            await check(ctx, self.rule, self.subject, args)

        result: Result | None = await self.inner.run(ctx, args)
        return result

    async def _process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Let the inner tool edit the request, then stand in for it where it entered itself.

        Behind a rule this tool enters itself in any case (spec 1.8).

        Raises:
            DuplicateTool: Another tool has this name.
        """
        entered = False
        if hasattr(self.inner, "process_request"):
            entered = await self._entered_by_inner(ctx, request)

        if entered or self.rule is not None:
            pack_tool(request, self)

    async def _entered_by_inner(self, ctx: ToolContext, request: LLMRequest) -> bool:
        """Run the inner tool's own processing; whether it entered itself, which is undone.

        Its own name may be taken by a tool that has nothing to do with it: that is why this one
        has another. So it does not see who has its name.
        """
        own_name, before = self.inner.name, request.tools
        others = {name: tool for name, tool in (before or {}).items() if name != own_name}
        request.tools = others
        try:
            await self.inner.process_request(ctx, request)
        finally:
            found = request.tools or {}
            entered = found.pop(own_name, None) is not None
            request.tools = {**(before or {}), **found} or before

        if entered:
            _withdraw(request, own_name)

        return entered


def _withdraw(request: LLMRequest, name: str) -> None:
    """Take back the declaration that was entered last under `name`."""
    for entry in request.config.tools if request.config is not None else ():
        declarations = None if entry is None else entry.function_declarations
        for index in range(len(declarations or ()) - 1, -1, -1):
            if declarations is not None and declarations[index].name == name:
                del declarations[index]
                return
