"""Toolsets made of toolsets: what is offered, under which names, and behind whose approval."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.request import LLMRequest
from bridge.core.tool import Tool, Toolset, is_function_tool
from bridge.errors import ConfigError, DuplicateTool, ToolsetError
from bridge.tools.asking import Asking
from bridge.tools.gate import Provider, Rule
from bridge.tools.names import matcher, offered_name
from bridge.tools.wrapped import guarded, relabelled
from bridge.tools.wrapper import Process, Tools, Wrapper, problems_of, same

Predicate: TypeAlias = Callable[[ReadonlyContext, Tool], bool]


class Composable:
    """The wrappers as methods, for toolsets that want them."""

    def filtered(
        self: Toolset,
        allow: Predicate | Sequence[str] | None = None,
        *,
        deny: Sequence[str] = (),
    ) -> FilteredToolset:
        """Only some of the tools: see `FilteredToolset`."""
        return FilteredToolset(self, allow, deny=deny)

    def confirmed(
        self: Toolset, confirm: bool | Sequence[str] | Provider = True
    ) -> ConfirmedToolset:
        """The same tools behind a person's approval: see `ConfirmedToolset`."""
        return ConfirmedToolset(self, confirm)

    def renamed(
        self: Toolset,
        names: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
    ) -> RenamedToolset:
        """The same tools under other names: see `RenamedToolset`."""
        return RenamedToolset(self, names, descriptions)

    def prefixed(self: Toolset, prefix: str) -> PrefixedToolset:
        """The same tools with a prefix to their names: see `PrefixedToolset`."""
        return PrefixedToolset(self, prefix)


class StaticToolset(Composable):
    """The tools it was given."""

    def __init__(self, tools: Iterable[Tool], *, name: str = "tools") -> None:
        self.name = name
        self._tools = tuple(tools)

    async def tools(self, ctx: ReadonlyContext) -> Tools:
        """Always the same tuple."""
        return self._tools


class FilteredToolset(Wrapper, Composable):
    """Only the tools that are allowed and not denied, in their order.

    `allow` is `predicate(ctx, tool) -> bool`, asked at every listing, or a list of names and
    globs; None allows all that `deny`, a list of names and globs, does not name. This decides
    what is offered; it authorises nothing.
    """

    def __init__(
        self,
        toolset: Toolset,
        allow: Predicate | Sequence[str] | None,
        *,
        deny: Sequence[str] = (),
    ) -> None:
        """Raises ConfigError if there is no toolset, or nothing to filter by."""
        super().__init__(toolset)
        if allow is None and not deny:
            raise ConfigError("FilteredToolset filters by a predicate or globs, not by None")

        self._predicate = allow if callable(allow) else None
        self._chosen: Tools = ()
        self._allowed = matcher(["*"] if allow is None or callable(allow) else allow)
        self._denied = matcher(deny)

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        return (t for t in listing if self._allowed(t.name) and not self._denied(t.name))

    async def tools(self, ctx: ReadonlyContext) -> Tools:
        """The tools on offer in this context; the same tuple while they are the same tools."""
        listing = await super().tools(ctx)
        if self._predicate is None:
            return listing

        chosen, before = tuple(t for t in listing if self._predicate(ctx, t)), self._chosen
        if same(chosen, before):
            return before

        self._chosen = chosen
        return chosen


class ConfirmedToolset(Wrapper, Composable):
    """The same tools, of which some or all wait for a person's approval.

    `confirm` is True (every call), a list of names and globs (every call of those), a provider
    `(name, args) -> bool` (decides call by call), or False (none). Tools that do not run here
    are left as they are.
    """

    def __init__(self, toolset: Toolset, confirm: bool | Sequence[str] | Provider = True) -> None:
        """Raises ConfigError if there is no toolset, or `confirm` is none of these."""
        super().__init__(toolset)
        check_confirm("confirm", confirm)
        self._provider: Provider | None = None
        if callable(confirm):
            self._provider, self._guards = confirm, matcher(["*"])
        elif isinstance(confirm, bool):
            self._guards = matcher(["*"] if confirm else ())
        else:
            self._guards = matcher(confirm)

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        return (self._guard(tool) if self._guards(tool.name) else tool for tool in listing)

    def _guard(self, tool: Tool) -> Tool:
        if is_function_tool(tool):
            return guarded(tool, Rule(tool.name, self._provider is None, self._provider))

        if hasattr(tool, "run_stream"):
            raise ToolsetError(
                f'"{tool.name}" of "{self.name}" only streams, so no approval can be asked for '
                "it; leave it out of what is confirmed, or out of the toolset"
            )

        return tool


def check_confirm(parameter: str, value: object) -> None:
    """Raises ConfigError if a value cannot say what waits for a person: it must not be guessed."""
    if not isinstance(value, bool | Collection) and not callable(value):
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise ConfigError(
            f"{parameter} is True, False, a list of names and globs, or a function of a tool's "
            f"name and arguments, not {kind}"
        )


class RenamedToolset(Wrapper, Composable):
    """The same tools, some under another name (`{own: new}`) or description (`{own: text}`)."""

    def __init__(
        self,
        toolset: Toolset,
        names: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
    ) -> None:
        """Raises ConfigError if there is no toolset."""
        super().__init__(toolset)
        self._names = dict(names or {})
        self._descriptions = dict(descriptions or {})

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        self._check(listing)
        return (self._rename(tool) for tool in listing)

    def _rename(self, tool: Tool) -> Tool:
        own = tool.name
        if own not in self._names and own not in self._descriptions:
            return tool

        return relabelled(tool, self._names.get(own, own), self._descriptions.get(own))

    def _check(self, listing: Sequence[Tool]) -> None:
        """Raises DuplicateTool if a new name is another tool's name."""
        taken: dict[str, str] = {}
        for own in (tool.name for tool in listing):
            new = self._names.get(own, own)
            other = taken.setdefault(new, own)
            if other != own:
                raise DuplicateTool(
                    f'"{other}" and "{own}" of "{self.name}" would both be named "{new}"; '
                    "rename one of them differently"
                )


class PrefixedToolset(Wrapper, Composable):
    """The same tools, each name behind a prefix, and legal: see `names.offered_name`."""

    def __init__(self, toolset: Toolset, prefix: str) -> None:
        """Raises ConfigError if there is no toolset."""
        super().__init__(toolset)
        self._prefix = prefix

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        for tool in listing:
            name = offered_name(self._prefix, tool.name)
            yield tool if name == tool.name else relabelled(tool, name)


class CombinedToolset(Composable):
    """The tools of several toolsets, in their order, listed side by side.

    If a member cannot be listed, "raise" fails the listing; "report" serves the others, and
    `failures` holds, by member name, why the latest listing lacks some. `patience` is how many
    seconds, once a member has answered, the others are waited for (see `Asking`).
    """

    process_request: Process  # only where a member has one

    def __init__(
        self,
        toolsets: Iterable[Toolset],
        *,
        on_failure: Literal["raise", "report"] = "raise",
        name: str = "combined",
        patience: float | None = None,
    ) -> None:
        self.name = name
        self.failures: Mapping[str, Exception] = {}
        self._members = _by_name(toolsets)
        self._asking = Asking(self._members, patience)
        self._raises = on_failure == "raise"
        # One pair, swapped whole: event loops in several threads may list at once.
        self._remembered: tuple[list[Sequence[Tool]], Tools] = ([], ())
        if any(hasattr(member, "process_request") for member in self._members.values()):
            self.process_request = self._process_request

    @property
    def problems(self) -> tuple[str, ...]:
        """What the members that could be listed say is wrong, each behind its name."""
        return tuple(
            f'"{name}": {problem}'
            for name, member in self._members.items()
            if name not in self.failures
            for problem in problems_of(member)
        )

    async def tools(self, ctx: ReadonlyContext) -> Tools:
        """All members' tools; two of one name are both there, for whoever packs them to refuse.

        Raises:
            ToolsetError: The first member, in order, that cannot be listed; unless reported.
        """
        answers = await self._asking.ask(ctx)
        failures = {n: a for n, a in answers.items() if isinstance(a, Exception)}
        if self._raises:
            for name, error in failures.items():
                raise ToolsetError(f'toolset "{name}" cannot be listed: {error}') from error

        self.failures = failures
        listings = [a for a in answers.values() if not isinstance(a, Exception)]
        seen, made = self._remembered
        if same(listings, seen):
            return made

        made = tuple(tool for listing in listings for tool in listing)
        # A list may change and still be itself, so only tuples are remembered.
        self._remembered = (listings if all(isinstance(a, tuple) for a in listings) else [], made)
        return made

    async def _process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Every member's own, in order, but for those that could not be listed."""
        for name, member in self._members.items():
            process: Process | None = getattr(member, "process_request", None)
            if process is not None and name not in self.failures:
                await process(ctx, request)


def _by_name(toolsets: Iterable[Toolset]) -> dict[str, Toolset]:
    """The toolsets by name; a name that is taken gets a number."""
    named: dict[str, Toolset] = {}
    for toolset in toolsets:
        name, number = toolset.name, 1
        while name in named:
            number += 1
            name = f"{toolset.name}#{number}"

        named[name] = toolset

    return named
