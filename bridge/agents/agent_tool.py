"""An agent as a tool of another agent: asked in private, heard only in its answer (§10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridge.agents.contract import AnyAgent
from bridge.agents.events import text_content, visible_text
from bridge.agents.run_config import RunConfig
from bridge.agents.runner import Runner
from bridge.calls.streams import closing
from bridge.calls.values import copied
from bridge.core.content import Args, Content, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration, Schema
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.session import SessionKey
from bridge.core.state import TEMP_PREFIX
from bridge.core.tool import pack_tool
from bridge.core.wire import loads
from bridge.errors import InvalidArguments, ToolError
from bridge.stores.fulltext import SqliteMemoryService
from bridge.stores.memory import InMemoryArtifactService
from bridge.tools.problems import describe
from bridge.tools.schema import Checker

REQUEST: Final = "request"
INTERNAL_PREFIX: Final = "_adk"
"""Begins the keys of state that are the runtime's own and no other agent's business."""

_DEFAULT_INPUT: Final[Schema] = {
    "type": "object",
    "properties": {REQUEST: {"type": "string", "description": "What the agent is to do."}},
    "required": [REQUEST],
}
_STREAMING = RunConfig(streaming=True)


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that asks `agent` and answers with its last words.

    The agent runs in a session of its own, with services of its own and without the caller's
    plugins. It starts from a copy of the caller's state; nothing of what it writes or saves goes
    back. With `skip_summarization` its answer is shown as it is, and the caller's model is not
    asked again.
    """

    agent: AnyAgent
    skip_summarization: bool = False

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def description(self) -> str:
        """The agent's description."""
        return self.agent.description

    @property
    def is_long_running(self) -> bool:
        """The call ends with the agent's answer."""
        return False

    def display_result_on_skip_summarization(self) -> bool:
        """The answer is meant for people."""
        return True

    def declaration(self) -> Declaration:
        """What the agent takes: its own input schema, or a request in words."""
        schema = self._form("input_form")
        return Declaration(self.name, self.description, schema or _DEFAULT_INPUT)

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool in the request, as `pack_tool` does."""
        pack_tool(request, self)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Ask the agent, hear it out, and answer with the last that it said.

        Raises:
            InvalidArguments: They do not fit the agent's input.
            ToolError: The agent failed, its answer has another form than it should, or it asks
                for a person's approval, which nobody can give in here.
        """
        if self.skip_summarization:
            ctx.actions.skip_summarization = True

        question = self._question(args)
        try:
            last = await self._ask(ctx, question)
        except ToolError:
            raise
        except Exception as exc:  # whatever goes wrong in the agent is this call's failure
            raise ToolError(f'the agent "{self.name}" failed: {exc}') from exc

        return self._answer(last)

    def _question(self, args: Args) -> Content:
        schema = self._form("input_form")
        if schema is not None:
            problems = Checker(schema).problems(args)
            if problems:
                raise InvalidArguments(
                    f'the arguments of agent "{self.name}" do not fit: {describe(problems)}'
                )

            return text_content(json.dumps(args, ensure_ascii=False))

        if REQUEST not in args:
            raise InvalidArguments(f'the agent "{self.name}" needs "{REQUEST}": what is it to do?')

        request = args[REQUEST]
        return text_content(request if isinstance(request, str) else json.dumps(request))

    async def _ask(self, ctx: ToolContext, question: Content) -> Content | None:
        """Run the agent; returns the content of the last of its events that has any."""
        async with SqliteMemoryService() as memory:
            runner = Runner(
                self.agent,
                app_name=self.name,
                artifacts=InMemoryArtifactService(),
                memory=memory,
            )
            kept, temporary = _inherited(dict(ctx.state.all()))
            session = await runner.sessions.create(SessionKey(self.name, ctx.user_id), kept)
            events = runner.run(
                question,
                user_id=ctx.user_id,
                session_id=session.id,
                state_delta=temporary,
                config=_STREAMING,
                scope=ctx.scope,
            )
            last: Content | None = None
            async with closing(events) as heard:
                async for event in heard:
                    self._check(event)
                    last = event.content or last

            return last

    def _check(self, event: Event) -> None:
        if event.error_code or event.error_message:
            raise ToolError(
                f'the agent "{self.name}" failed: {event.error_message or "no message"} '
                f"({event.error_code or 'no code'})"
            )

        if event.actions.requested_tool_confirmations:
            named = {answer.id: answer.name for answer in event.function_responses()}
            asking = (named.get(call_id) for call_id in event.actions.requested_tool_confirmations)
            names = ", ".join(f'"{name}"' for name in asking if name) or "a tool"
            raise ToolError(
                f'the agent "{self.name}" asked for approval of {names}, and as a tool it cannot '
                "be answered; make it a sub-agent, or have the whole agent confirmed"
            )

    def _answer(self, last: Content | None) -> Result:
        text = visible_text(last, "\n")
        if not text:
            return {}

        schema = self._form("output_form")
        if schema is None:
            return {"result": text}

        try:
            value = loads(text)
        except ValueError as exc:
            raise ToolError(f'the answer of agent "{self.name}" is not JSON: {exc}') from exc

        problems = Checker(schema).problems(value)
        if problems:
            raise ToolError(
                f'the answer of agent "{self.name}" does not fit its schema: {describe(problems)}'
            )

        return value if isinstance(value, dict) else {"result": value}

    def _form(self, name: str) -> Schema | None:
        """The agent's schema of that name; agents that know none have none."""
        schema: Schema | None = getattr(self.agent, name, None)
        return schema


def _inherited(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the agent starts from: what may rest, which its store copies, and what may not."""
    own = {key: value for key, value in state.items() if not key.startswith(INTERNAL_PREFIX)}
    temporary = {key: copied(own[key]) for key in own if key.startswith(TEMP_PREFIX)}
    return {key: value for key, value in own.items() if key not in temporary}, temporary
