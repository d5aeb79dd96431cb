"""From settings to an agent that runs: its model, its tools, and the places where things rest."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bridge.agents.llm_agent import Agent
from bridge.agents.runner import Runner
from bridge.calls.hooks import Hook
from bridge.config.agent import AgentSettings, ModelSettings
from bridge.config.settings import Settings
from bridge.core.content import Args, Result
from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.model import Model
from bridge.core.stores import ApprovalStore, ArtifactService, SessionService
from bridge.core.tool import Tool
from bridge.errors import ConfigError, StoreError
from bridge.gateway.assembly import assemble
from bridge.gateway.live import Gateway, running
from bridge.gateway.resolve import resolve
from bridge.gateway.scripted_demo import scripted_demo
from bridge.gateway.state import state_directory as state_directory
from bridge.models.openai_compatible import OpenAICompatible
from bridge.stores.database import open_database
from bridge.stores.files import FileArtifactService
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore
from bridge.tools.artifacts import load_artifacts

CallProgress: TypeAlias = Callable[[str, float, float | None, str | None], Awaitable[None]]
"""Takes (tool, progress, total, message) of a call that is running."""

PYDANTIC_AI = "agent.model.pydantic_ai"
SETTLING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Stores:
    """Where an agent's sessions, a person's decisions and its artifacts rest."""

    sessions: SessionService
    approvals: ApprovalStore
    artifacts: ArtifactService


@dataclass(frozen=True, slots=True)
class RunningAgent:
    """An agent over a running gateway. `model` is the name of who speaks for it."""

    settings: AgentSettings
    gateway: Gateway
    offered: OfferedTools
    runner: Runner
    model: str


@asynccontextmanager
async def open_agent(
    settings: Settings,
    on_progress: CallProgress | None = None,
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[RunningAgent]:
    """Start the configured agent, its stores and every upstream; on leaving, all are closed.

    `on_progress` hears of every call that says how far it is.

    Raises:
        ConfigError: Something that the settings name cannot be found or used.
        StoreError: The database cannot be reached.
    """
    wanted = settings.agent
    assembly = assemble(settings)
    model = to_model(wanted.model)
    async with (
        _closed_after(model),
        open_stores(wanted, environ) as stores,
        running(assembly) as gateway,
    ):
        offered = OfferedTools(gateway)
        agent = Agent(
            wanted.name,
            model,
            wanted.instruction,
            tools=_own_tools(settings),
            toolsets=[offered],
            hooks=[] if on_progress is None else [_Listening(on_progress)],
        )
        runner = Runner(
            agent,
            app_name=wanted.name,
            sessions=stores.sessions,
            approvals=stores.approvals,
            artifacts=stores.artifacts,
            creates_sessions=False,
        )
        yield RunningAgent(wanted, gateway, offered, runner, model.name)


@asynccontextmanager
async def open_stores(
    settings: AgentSettings, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[Stores]:
    """Open the configured database, or the one in the user's state directory.

    Raises:
        ConfigError: The URL names no database that can be used.
        StoreError: It cannot be reached, or the file is no database.
    """
    home = state_directory(environ)
    store = home / "agent.db" if settings.store is None else settings.store
    url: str | Path
    if isinstance(store, Path):
        url, artifacts, named = store, store.with_suffix(".artifacts"), f'"{store}"'
    else:
        url, artifacts, named = store.get_secret_value(), home / "artifacts", "agent.store"

    async with AsyncExitStack() as stack:
        try:
            database = await stack.enter_async_context(open_database(url))
        except StoreError as exc:
            raise StoreError(f"the sessions in {named} cannot be used: {exc}") from exc

        yield Stores(
            SqlSessionService(database),
            SqlApprovalStore(database),
            FileArtifactService(artifacts),
        )


def to_model(settings: ModelSettings) -> Model:
    """Who speaks for the agent.

    Raises:
        ConfigError: There is no such model, or what it needs is not installed.
    """
    compatible = settings.openai_compatible
    if compatible is not None:
        key = None if compatible.api_key is None else compatible.api_key.get_secret_value()
        return OpenAICompatible(compatible.base_url, compatible.model, api_key=key)

    return scripted_demo() if settings.pydantic_ai is None else _pydantic_ai(settings.pydantic_ai)


class OfferedTools:
    """What the gateway offers, as one toolset: each run sees the offer of its beginning."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._is_settled = False

    @property
    def name(self) -> str:
        """The configured name of this bridge."""
        return self._gateway.assembly.settings.serve.name

    async def settle(self) -> None:
        """Wait, once and not for ever, until every upstream has come or failed.

        An agent that begins without its tools says that it has none.
        """
        if not self._is_settled:
            await self._gateway.settled(SETTLING_SECONDS)
            self._is_settled = True

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        """The tools of the last good listing; the first run waits as `settle` does."""
        await self.settle()
        return tuple(self._gateway.catalog.tools.values())


class _Listening(Hook):
    """Lets every call report its progress."""

    def __init__(self, on_progress: CallProgress) -> None:
        self._on_progress = on_progress

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result | None:
        ctx.on_progress = partial(self._on_progress, tool.name)
        return None


def _own_tools(settings: Settings) -> list[Tool]:
    """What the agent has besides the offer: a way to what is kept for it, where anything is."""
    keeps = any(one.enabled and one.media == "artifacts" for one in settings.upstreams.values())
    return [load_artifacts] if keeps else []


def _pydantic_ai(name: str) -> Model:
    """A model of Pydantic AI's, which is loaded only where it is wanted."""
    try:
        make = resolve("bridge.models.pydantic_ai:PydanticAIModel", PYDANTIC_AI)
    except ConfigError as exc:
        if isinstance(exc.__cause__, ModuleNotFoundError):
            raise ConfigError(
                f'{PYDANTIC_AI} needs more: pip install "mcp-agent-bridge[models]"'
            ) from exc

        raise

    try:
        model: Model = make(name)
    except ConfigError as exc:
        raise ConfigError(f"{PYDANTIC_AI}: {exc}") from exc

    return model


@asynccontextmanager
async def _closed_after(model: Model) -> AsyncIterator[None]:
    try:
        yield
    finally:
        close: Callable[[], Awaitable[None]] | None = getattr(model, "aclose", None)
        if close is not None:
            await close()
