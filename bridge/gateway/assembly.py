"""From settings to the stack of toolsets that they describe: the one place that knows both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio

from bridge.config.settings import LocalToolSettings, Settings, ToolRules, UpstreamSettings
from bridge.core.tool import Tool, Toolset, is_function_tool
from bridge.errors import ConfigError, ToolsetError
from bridge.gateway.logins import Login, to_account
from bridge.gateway.resolve import resolve, resolve_provider
from bridge.tools.catalog import Catalog
from bridge.tools.checked import CheckedToolset, literally
from bridge.tools.function import function_tool
from bridge.tools.gate import Provider, Rule
from bridge.tools.toolsets import (
    CombinedToolset,
    ConfirmedToolset,
    FilteredToolset,
    PrefixedToolset,
    RenamedToolset,
    StaticToolset,
)
from bridge.tools.wrapped import guarded, relabelled
from bridge.upstream.channel import Limits
from bridge.upstream.command import Command
from bridge.upstream.target import Endpoint, Hosted
from bridge.upstream.toolset import MCPToolset

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that a configuration names, put together and not yet started.

    `toolset` holds all of it, combined; `catalog` is its table by offered name.
    """

    settings: Settings
    upstreams: Mapping[str, MCPToolset]
    toolset: CombinedToolset
    catalog: Catalog

    async def aclose(self) -> None:
        """Close every upstream, side by side, whatever happens meanwhile."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for upstream in self.upstreams.values():
                    tasks.start_soon(upstream.aclose)


def assemble(
    settings: Settings,
    *,
    patience: float | None = None,
    host: str | None = None,
    login: Login | None = None,
) -> Assembly:
    """Put together what the settings describe; nothing is started, nothing is connected.

    `patience` bounds, in seconds, how long one upstream may hold up the tools of the others where
    nobody keeps them connected; see `CombinedToolset`. `host`, where several processes serve
    together, is the Unix socket of the one that keeps the conversations with upstreams. `login`
    shows a person where to log in to one that wants that; without it nobody is asked.

    Raises:
        ConfigError: A function that the settings name cannot be found or used.
    """
    upstreams = {
        name: to_upstream(name, one, host, login)
        for name, one in settings.upstreams.items()
        if one.enabled
    }
    members: list[Toolset] = [
        stacked(upstream, settings.upstreams[name]) for name, upstream in upstreams.items()
    ]
    if settings.tools:
        members.append(StaticToolset(local_tools(settings.tools), name=LOCAL))

    toolset = CombinedToolset(members, on_failure="report", patience=patience)
    return Assembly(settings, upstreams, toolset, Catalog(toolset))


def to_upstream(
    name: str, settings: UpstreamSettings, host: str | None = None, login: Login | None = None
) -> MCPToolset:
    """The MCP server as a toolset of its own names, not connected yet."""
    target = to_target(name, settings, login)
    return MCPToolset(
        target if host is None else Hosted(name, host, target),
        name=name,
        media=settings.media,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        limits=Limits(message_bytes=settings.max_message),
        session=settings.session,
        most_sessions=settings.most_sessions,
        session_idle_seconds=settings.session_idle,
    )


def to_target(
    name: str, settings: UpstreamSettings, login: Login | None = None
) -> Command | Endpoint:
    """Where the server is found, with what is secret about it."""
    url, oauth = settings.url, settings.oauth
    if url is not None:
        account = None if oauth is None else to_account(name, url, oauth, login)
        return Endpoint(url, settings.transport, settings.headers, account)

    return Command(settings.command, settings.env, settings.cwd)


def stacked(upstream: Toolset, settings: UpstreamSettings) -> Toolset:
    """The wrappers in their order: filtered → confirmed → renamed → prefixed.

    Filters, confirmation and new names speak of the server's own names, so the prefix is last.
    Whether all that they name is there is judged by everything the server lists.
    """
    rules = settings.tools
    toolset: Toolset = CheckedToolset(upstream, _named(rules))
    if rules.allow or rules.deny:
        toolset = FilteredToolset(toolset, rules.allow or None, deny=rules.deny)

    if rules.confirm is not False:
        toolset = ConfirmedToolset(toolset, _confirm(rules.confirm, upstream.name))

    if rules.rename or rules.describe:
        toolset = RenamedToolset(toolset, rules.rename, rules.describe)

    # Also where it is empty: names are made legal.
    return PrefixedToolset(toolset, prefix_of(upstream.name, settings))


def prefix_of(upstream: str, settings: UpstreamSettings) -> str:
    """What stands before the names of an upstream's tools and prompts."""
    return f"{upstream}__" if settings.prefix is None else settings.prefix


def _named(rules: ToolRules) -> dict[str, Sequence[str]]:
    """Each key whose names or globs are to match tools of the upstream, with them."""
    return {
        "tools.allow": rules.allow,
        "tools.deny": rules.deny,
        "tools.rename": literally(rules.rename),
        "tools.describe": literally(rules.describe),
        "tools.confirm": rules.confirm if isinstance(rules.confirm, tuple) else (),
    }


def local_tools(settings: Sequence[LocalToolSettings]) -> Sequence[Tool]:
    """The Python functions that the settings name, each as a tool.

    Raises:
        ConfigError: A function cannot be found, or no tool can be made of it.
    """
    return [_local_tool(index, one) for index, one in enumerate(settings)]


def _local_tool(index: int, settings: LocalToolSettings) -> Tool:
    where = f"tools[{index}]"
    found = resolve(settings.function, where)
    try:
        # What is a tool where it is defined, by `@function_tool`, may be named and guarded here.
        tool = found if is_function_tool(found) else function_tool(found)
    except (ConfigError, ToolsetError) as exc:
        raise ConfigError(f'{where}: no tool can be made of "{settings.function}": {exc}') from exc

    if settings.name is not None:
        tool = relabelled(tool, settings.name)

    confirm = settings.confirm
    if isinstance(confirm, str):
        return guarded(tool, Rule(tool.name, False, resolve_provider(confirm, f"{where}.confirm")))

    return guarded(tool, Rule(tool.name, True)) if confirm else tool


def _confirm(
    confirm: bool | str | tuple[str, ...], upstream: str
) -> bool | Sequence[str] | Provider:
    if isinstance(confirm, str):
        return resolve_provider(confirm, f"upstreams.{upstream}.tools.confirm")

    return confirm
