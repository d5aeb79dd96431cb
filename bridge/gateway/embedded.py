"""A whole configuration as one toolset, inside somebody else's program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridge.config.load import load
from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool
from bridge.gateway.assembly import Assembly, assemble
from bridge.gateway.logins import Login
from bridge.tools.closing import Closing
from bridge.tools.toolsets import Composable
from bridge.upstream.status import UpstreamStatus


class ConfiguredToolset(Composable, Closing):
    """The tools of every upstream and every local function that a configuration names.

    Upstreams connect when the tools are first asked for, side by side. One that fails is left
    out and shown by `statuses()`; the others are served. One that hangs holds them up once, for
    `serve.startup_wait` at most; it goes on connecting by itself, and its tools are in a later
    listing. No task of the caller's owns anything: it may be closed from any.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @property
    def name(self) -> str:
        """The configured name of this bridge."""
        return self._assembly.settings.serve.name

    @property
    def assembly(self) -> Assembly:
        """What it is made of."""
        return self._assembly

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        """Every tool on offer, under its offered name.

        Raises:
            DuplicateTool: Two members offer one name.
        """
        return await self._assembly.toolset.tools(ctx)

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the configuration has no effect on what is offered, and why; one line each."""
        return self._assembly.toolset.problems

    def statuses(self) -> list[UpstreamStatus]:
        """How each upstream is now, in the order of the configuration."""
        return [upstream.status() for upstream in self._assembly.upstreams.values()]

    async def aclose(self) -> None:
        """Close every upstream; from any task, any number of times."""
        await self._assembly.aclose()


def open_toolset(*paths: str | Path, login: Login | None = None) -> ConfiguredToolset:
    """Read configuration files, merged left to right, as one toolset.

    `login` takes an upstream's name and a URL, and shows the URL to a person, who logs in there;
    without it nobody is asked.

    Use it as `async with open_toolset("bridge.yaml") as toolset:`, or call its `aclose()`.

    Raises:
        ConfigError: Everything that is wrong with them, at once.
    """
    settings = load(paths)
    return ConfiguredToolset(assemble(settings, patience=settings.serve.startup_wait, login=login))
