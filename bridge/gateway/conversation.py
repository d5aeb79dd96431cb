"""One conversation with an agent: what is said in it, and what in it waits for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from bridge.agents.events import USER
from bridge.agents.questions import CONFIRMATION, Question, questions_in
from bridge.agents.run_config import RunConfig
from bridge.agents.runner import Message, Runner
from bridge.calls.streams import closing
from bridge.core.event import Event
from bridge.core.session import Session

LOCAL_USER = "local"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands: what a person is asked, and whether a turn was cut off."""

    questions: tuple[Question, ...]
    is_cut_off: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session of a runner's that is there already."""

    runner: Runner
    session_id: str
    config: RunConfig

    async def say(self, message: Message) -> AsyncIterator[Event]:
        """The events of one turn, what is said among them; see `Runner.run`."""
        events = self.runner.run(
            message,
            user_id=LOCAL_USER,
            session_id=self.session_id,
            yields_message=True,
            config=self.config,
        )
        async with closing(events) as told:
            async for event in told:
                yield event

    async def standing(self) -> Standing:
        """How the conversation stands now, as it rests."""
        session = await self.runner.session(LOCAL_USER, self.session_id)
        return standing_of(session, self.runner.agent.name)


def standing_of(session: Session, agent_name: str) -> Standing:
    """How a conversation stands that is held with all of its events."""
    questions = tuple(_open(session.events, agent_name))
    last = session.events[-1] if session.events else None
    is_over = last is None or (last.author != USER and last.is_final_response())
    return Standing(questions, is_cut_off=not is_over)


def _open(events: Sequence[Event], agent_name: str) -> list[Question]:
    """The agent's own questions that nobody has decided on and whose calls still wait.

    Of several questions about one call the newest stands for it.
    """
    found: dict[str, Question] = {}
    for event in events:
        for answer in event.function_responses():
            if event.author == USER and answer.name == CONFIRMATION:
                found = {key: one for key, one in found.items() if one.id != answer.id}
            else:
                found.pop(answer.id, None)

        if event.author == agent_name:
            found.update((question.call.id, question) for question in questions_in(event))

    return list(found.values())
