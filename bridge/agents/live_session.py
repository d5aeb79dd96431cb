"""A conversation that goes both ways at any time, with tools that run beside it (§9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import TaskGroup

from bridge.agents.answers import events_after
from bridge.agents.callbacks import stages_of
from bridge.agents.contract import ModelAgent
from bridge.agents.events import text_content
from bridge.agents.live import LiveConnection, LiveModel
from bridge.agents.plugin import NO_PLUGINS, PLUGINS
from bridge.agents.processors import AgentRun, prepare, replayed
from bridge.agents.questions import replies_in
from bridge.agents.whole_run import WholeRun
from bridge.calls.streams import STOP_STREAMING, LiveStreams, closing
from bridge.core.content import Args, Content, Result
from bridge.core.context import Context, ToolContext
from bridge.core.declaration import Declaration
from bridge.core.delta import ContextDelta, InvocationDelta
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.tool import pack_tool
from bridge.errors import BridgeError

TASK_COMPLETED: Final = "task_completed"
"""The tool whose answer ends a live conversation."""

LAST_WORDS: Final = 0.1
"""Seconds that a conversation goes on once its task is completed."""


@dataclass(frozen=True, slots=True)
class StopStreaming:
    """How a model reads of `stop_streaming`; the call itself is answered before any look-up."""

    name: str = STOP_STREAMING
    description: str = "Stop every running instance of a function that streams."
    is_long_running: bool = False

    def declaration(self) -> Declaration:
        """It takes the name of the function to stop."""
        named = {"type": "string", "description": "The name of the function to stop."}
        schema = {
            "type": "object",
            "properties": {"function_name": named},
            "required": ["function_name"],
        }
        return Declaration(self.name, self.description, schema)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Raises BridgeError: it is the live session that stops things."""
        raise BridgeError(f"{self.name} is answered by the live session")


class LiveSession:
    """One live conversation: `send` into it at any time, and take its events as they come.

    Every event is stored before it is there to be taken. The model is heard no further while
    events wait to be taken.
    """

    def __init__(self, run: AgentRun, whole: WholeRun, tasks: TaskGroup) -> None:
        self._run = run
        self._whole = whole
        self._tasks = tasks
        self._outgoing, self._incoming = anyio.create_memory_object_stream[Event]()
        self._storing = anyio.Lock()  # a session is appended to by one at a time
        self._connected = anyio.Event()
        self._connection: LiveConnection | None = None
        self._failure: Exception | None = None

    @property
    def streaming(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the calls that are still streaming, by tool name."""
        streams = self._run.streams
        return streams.running if isinstance(streams, LiveStreams) else {}

    async def send(self, said: Content | str) -> None:
        """Store what the user says, and tell the model; decided calls are run and told instead.

        Raises:
            BridgeError: The conversation is over.
            Exception: What a plugin or the session service raises.
        """
        content = text_content(said) if isinstance(said, str) else said
        connection = await self._open_connection()
        async with self._storing:
            _, event = await self._whole.take_in(self._run.ctx, content, {})

        if event is not None and event.content is not None:
            if replies_in(event):
                self._tasks.start_soon(self._guarded, self._resume)
            else:
                await connection.send(event.content)

    async def events(self) -> AsyncGenerator[Event]:
        """What is said and done, until the model hangs up.

        Raises:
            Exception: What ended the conversation, if it was a failure.
        """
        async for event in self._incoming:
            yield event

        if self._failure is not None:
            raise self._failure

    async def tell(self, text: str) -> None:
        """Tell the model something that is not kept in the history."""
        connection = await self._open_connection()
        await connection.send(text_content(text))

    async def drive(self) -> None:
        """Converse until the model hangs up; runs beside whoever takes the events."""
        await self._guarded(self._converse)
        self._connection = None
        self._connected.set()
        self._outgoing.close()

    def close(self) -> None:
        """Give up what nobody will send or take any more."""
        self._outgoing.close()
        self._incoming.close()

    async def _converse(self) -> None:
        instead = await self._whole.answered_before(self._run.ctx)
        if instead is not None:
            await self._outgoing.send(instead)
            return

        model = _live_model(self._run.agent)
        request = LLMRequest(model=model.name)
        async with closing(prepare(self._run, request)) as events:
            async for event in events:
                await self._put(event)

        if any(hasattr(tool, "run_stream") for tool in (request.tools or {}).values()):
            pack_tool(request, StopStreaming())

        async with model.connect(request) as connection:
            self._connection = connection
            self._connected.set()
            async with closing(connection.responses()) as responses:
                async for response in responses:
                    if await self._follow(request, connection, response):
                        return

    async def _follow(
        self, request: LLMRequest, connection: LiveConnection, response: LLMResponse
    ) -> bool:
        """Pass on what the model says and run what it calls; whether its task is completed."""
        said = self._run.said(response, request)
        await self._put(said)
        if said.partial or not said.function_calls():
            return False

        outcomes = await self._run.execute(said, request)
        events = events_after(self._run.ctx, said, outcomes)
        for event in events:
            await self._put(event)

        if any(outcome.call.name == TASK_COMPLETED for outcome in outcomes):
            await anyio.sleep(LAST_WORDS)
            return True

        if events and events[0].content is not None:
            await connection.send(events[0].content)

        return False

    async def _resume(self) -> None:
        """Run what the user has just decided, and tell the model what came of it."""
        connection = await self._open_connection()
        async with closing(replayed(self._run)) as events:
            async for event in events:
                await self._put(event)
                if event.content is not None and event.function_responses():
                    await connection.send(event.content)

    async def _put(self, event: Event) -> None:
        async with self._storing:
            kept = await self._whole.kept(self._run.ctx, event)

        await self._outgoing.send(kept)

    async def _open_connection(self) -> LiveConnection:
        await self._connected.wait()
        if self._connection is None:
            raise BridgeError("the live conversation is over") from self._failure

        return self._connection

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some of the conversation's work; a failure of it is for whoever takes the events."""
        try:
            await work()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the model has hung up, or nobody takes the events any more
        except Exception as exc:  # models, tools and stores may fail in any way
            self._failure = self._failure or exc
            self._outgoing.close()


@asynccontextmanager
async def conversation(
    agent: ModelAgent, ctx: Context, whole: WholeRun
) -> AsyncIterator[LiveSession]:
    """Open a live conversation with `agent`; leaving the block ends it, and all its streams.

    Raises:
        BridgeError: The agent's model is not one that can be spoken with live.
    """
    _live_model(agent)
    failure: Exception | None = None
    here = ctx.with_delta(ContextDelta(invocation=InvocationDelta(agent=agent)))
    stages = stages_of(agent.own, here.scope.value(PLUGINS) or NO_PLUGINS)
    async with anyio.create_task_group() as tasks:
        run = AgentRun(agent, here, stages, hands_over=False)
        session = LiveSession(run, whole, tasks)
        run.streams = LiveStreams(tasks, session.tell)
        tasks.start_soon(session.drive)
        try:
            yield session
        except Exception as exc:  # the caller's own, which the task group would wrap
            failure = exc
        finally:
            tasks.cancel_scope.cancel()
            session.close()
            await whole.over(here)

    if failure is not None:
        raise failure


def _live_model(agent: ModelAgent) -> LiveModel:
    model = agent.model
    if isinstance(model, LiveModel):
        return model

    name = "none" if model is None else model.name
    raise BridgeError(f'"{agent.name}" cannot be spoken with live: its model is {name}')
