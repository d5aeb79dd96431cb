"""The outermost loop: a message comes in, events are stored and go out (§15)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from bridge.agents.choosing import agent_for, invocation_for
from bridge.agents.contract import AnyAgent
from bridge.agents.events import text_content
from bridge.agents.live_session import LiveSession, conversation
from bridge.agents.llm_agent import LlmAgent
from bridge.agents.plugin import PLUGINS, Plugin, Plugins
from bridge.agents.replay import APPROVALS
from bridge.agents.run_config import DEFAULT_RUN, RUN_CONFIG, RunConfig
from bridge.agents.tree import AGENT_TREE, AgentTree
from bridge.agents.whole_run import WholeRun
from bridge.calls.streams import closing
from bridge.core.bound import BoundArtifacts, BoundMemory
from bridge.core.content import Content
from bridge.core.context import Context, InvocationContext
from bridge.core.event import Event
from bridge.core.scope import BACKGROUND, Scope
from bridge.core.session import Session, SessionKey
from bridge.core.stores import ApprovalStore, ArtifactService, MemoryService, SessionService
from bridge.errors import BridgeError, SessionExists, SessionNotFound
from bridge.stores.memory import InMemoryApprovalStore, InMemorySessionService

Message: TypeAlias = Content | str | None
"""What the user says; None lets the agent go on with what is there."""

DEFAULT_SESSION: Final = "default"


class Runner:
    """Runs an agent, and those below it, in sessions.

    Without services of their own, sessions and decisions live as long as the runner, and there
    are no artifacts and no memory. A session that is not there is created, unless
    `creates_sessions` is False.

    Raises:
        ConfigError: Two agents, or two plugins, have one name.
    """

    def __init__(
        self,
        agent: AnyAgent,
        *,
        app_name: str = "bridge",
        sessions: SessionService | None = None,
        artifacts: ArtifactService | None = None,
        memory: MemoryService | None = None,
        approvals: ApprovalStore | None = None,
        plugins: Sequence[Plugin] = (),
        creates_sessions: bool = True,
    ) -> None:
        self.agent = agent
        self.app_name = app_name
        self.sessions = InMemorySessionService() if sessions is None else sessions
        self.artifacts = artifacts
        self.memory = memory
        self.approvals = InMemoryApprovalStore() if approvals is None else approvals
        self._plugins = Plugins(plugins)
        self._tree = AgentTree(agent)
        self._creates_sessions = creates_sessions

    async def run(
        self,
        message: Message,
        *,
        user_id: str = "local",
        session_id: str = DEFAULT_SESSION,
        state_delta: Mapping[str, Any] | None = None,
        yields_message: bool = False,
        config: RunConfig = DEFAULT_RUN,
        scope: Scope = BACKGROUND,
    ) -> AsyncGenerator[Event]:
        """Take in a message and yield what comes of it, each event after it is stored.

        The work goes on only as events are taken. Who stops early closes the iterator:
        `async with contextlib.aclosing(runner.run(…)) as events:`. `state_delta` is filed with
        the message, which is yielded, too, if `yields_message`.

        Raises:
            SessionNotFound: There is no such session, and none is to be created.
            StaleSession: Somebody else has added to the session in the meantime.
            Exception: What an agent, a model or a plugin raises; what came before is stored.
        """
        said = text_content(message) if isinstance(message, str) else message
        session = await self.session(user_id, session_id)
        ctx = self._context(session, said, config, scope)
        run = WholeRun(self.sessions, self._plugins)
        ctx, event = await run.take_in(ctx, said, state_delta or {})
        if event is not None and yields_message:
            yield event

        async with closing(run.events(ctx, ctx.agent.run)) as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def live(
        self,
        *,
        user_id: str = "local",
        session_id: str = DEFAULT_SESSION,
        config: RunConfig = DEFAULT_RUN,
        scope: Scope = BACKGROUND,
    ) -> AsyncIterator[LiveSession]:
        """Open a live conversation; leaving the block ends it.

        What steps in around tools and whole runs does so here, too; nothing steps in around
        agents and models, for here nobody takes turns.

        Raises:
            BridgeError: The agent, or its model, cannot be spoken with live.
            SessionNotFound: There is no such session, and none is to be created.
        """
        session = await self.session(user_id, session_id)
        ctx = self._context(session, None, config, scope)
        agent = ctx.agent
        if not isinstance(agent, LlmAgent):
            raise BridgeError(f'the agent "{agent.name}" cannot be spoken with live')

        async with conversation(agent, ctx, WholeRun(self.sessions, self._plugins)) as live:
            yield live

    async def session(self, user_id: str = "local", session_id: str = DEFAULT_SESSION) -> Session:
        """The session as it rests; a new one where there is none and one may be created.

        Raises:
            SessionNotFound: There is none, and none is to be created.
        """
        key = SessionKey(self.app_name, user_id, session_id)
        try:
            return await self.sessions.get(key)
        except SessionNotFound:
            if not self._creates_sessions:
                raise

        try:
            return await self.sessions.create(key)
        except SessionExists:  # somebody was quicker
            return await self.sessions.get(key)

    def _context(
        self, session: Session, said: Content | None, config: RunConfig, scope: Scope
    ) -> Context:
        scope = scope.with_value(AGENT_TREE, self._tree).with_value(PLUGINS, self._plugins)
        scope = scope.with_value(RUN_CONFIG, config).with_value(APPROVALS, self.approvals)
        artifacts, memory = self.artifacts, self.memory
        invocation = InvocationContext(
            session,
            invocation_for(session.events, said),
            agent_for(self._tree, session.events, said),
            user_content=said,
            run_config=config,
            artifacts=None if artifacts is None else BoundArtifacts(artifacts, session.key),
            memory=None if memory is None else BoundMemory(memory, self.app_name, session.user_id),
            scope=scope,
        )
        return Context(invocation)
