"""A conversation at the terminal: turn after turn, with the decisions that they take.

The person's side runs here, in the main thread; agent, upstreams and stores run in an event loop
beside it, and what happens there comes over as a queue of events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Final, TypeAlias, TypeVar

from anyio.from_thread import BlockingPortal

from bridge.agents.questions import CONFIRMATION, Question, questions_in
from bridge.agents.runner import Message
from bridge.calls.streams import closing
from bridge.cli.chat_keyboard import INTERRUPTED, Keyboard
from bridge.cli.chat_questions import decide
from bridge.cli.chat_screen import Screen
from bridge.cli.chat_sessions import Opened, open_session
from bridge.cli.output import complain, counted
from bridge.core.content import Content
from bridge.core.event import Event
from bridge.errors import BridgeError
from bridge.gateway.agent import RunningAgent
from bridge.gateway.scripted_demo import suggestions

T = TypeVar("T")

Progress: TypeAlias = tuple[str, float, float | None, str | None]
Told: TypeAlias = SimpleQueue[Event | Progress | str | None]
"""What a turn tells: events, progress, that it is to STOP, and None at its end."""

STOP: Final = "stop"
FAILED: Final = 1
PROMPT: Final = "you> "


class Chat:
    """One run of the command: a person, a screen, and an agent in another thread."""

    _agent: RunningAgent
    _opened: Opened

    def __init__(self, portal: BlockingPortal, keyboard: Keyboard, screen: Screen) -> None:
        self._portal = portal
        self._keyboard = keyboard
        self._screen = screen
        self._told: Told = SimpleQueue()
        self._has_failed = False

    async def heard(
        self, tool: str, progress: float, total: float | None, message: str | None
    ) -> None:
        """Take in how far a call is; this comes from the agent's thread."""
        self._told.put((tool, progress, total, message))

    def over(self, agent: RunningAgent, session: str | None, new: bool, message: str | None) -> int:
        """Hold the conversation; returns the exit code."""
        try:
            self._agent = agent
            self._wait_for_upstreams()
            self._opened = self._wait(partial(open_session, agent, session, new))
            self._greet(is_staying=message is None)
            return self._talk() if message is None else self._once(message)
        except KeyboardInterrupt:
            self._screen.end_line()
            return INTERRUPTED

    def _wait_for_upstreams(self) -> None:
        upstreams = self._agent.gateway.assembly.upstreams
        if upstreams and self._keyboard.is_watched:
            self._screen.aside(f"asking {', '.join(upstreams)} …", "dim")

        self._wait(self._agent.offered.settle)

    def _greet(self, *, is_staying: bool) -> None:
        """Say who is there, what is missing, and how to leave."""
        say, agent, session = partial(self._screen.aside, style="dim"), self._agent, self._opened
        tools = agent.gateway.catalog.tools
        if is_staying and self._keyboard.is_watched:
            name, offered = agent.settings.name, counted(len(tools), "tool")
            say(f"{name} ({agent.model}) has {offered}. Ctrl-C ends a turn, Ctrl-D leaves.")

        for status in self._portal.call(agent.gateway.statuses):
            if status.state != "ready":
                reason = status.reason or "it is still connecting"
                self._screen.aside(f'upstream "{status.name}" is not available: {reason}')

        events = session.session.events
        if events:
            last = f"{session.session.updated_at.astimezone():%Y-%m-%d %H:%M}"
            say(f'session "{session.session.id}" goes on: {counted(len(events), "event")}, {last}')
        else:
            say(f'session "{session.session.id}" begins')

        if agent.settings.model.is_scripted:
            say("No model is configured, so the answers are scripted.")
            for words in suggestions(tools) if is_staying and self._keyboard.is_watched else ():
                say(f"  say: {words}")

    def _once(self, message: str) -> int:
        """One turn, with the decisions that it takes, if a person is there to take them."""
        questions = self._turn(message)
        try:
            if questions and not self._keyboard.is_watched:
                self._keep(questions)
            else:
                self._ask(questions)
        except EOFError:
            self._screen.end_line()

        return self._code()

    def _talk(self) -> int:
        """Turn after turn, until the person leaves.

        Raises:
            KeyboardInterrupt: They left by a second Ctrl-C.
        """
        work: Callable[[], None] = partial(self._go_on, is_beginning=True)
        while True:
            try:
                work()
                said = self._keyboard.line(PROMPT)
                work = partial(self._say, said) if said.strip() else self._go_on
            except EOFError:
                break
            except KeyboardInterrupt:
                if self._keyboard.is_leaving:
                    raise

                self._screen.aside("Ctrl-C again, or Ctrl-D, leaves.", "dim")
                work = _nothing
            except BridgeError as exc:
                self._screen.end_line()
                complain(str(exc))
                self._has_failed = True
                work = _nothing

        return 0 if self._keyboard.is_watched else self._code()

    def _go_on(self, *, is_beginning: bool = False) -> None:
        """Ask what is still to be decided; or take up a turn that was cut off, if told to."""
        standing = self._wait(self._opened.conversation.standing)
        if standing.questions:
            self._ask(standing.questions)
        elif standing.is_cut_off and is_beginning:
            self._screen.aside("The last turn was cut off; an empty line goes on with it.", "dim")
        elif standing.is_cut_off:
            self._ask(self._turn(None))

    def _say(self, said: str) -> None:
        self._ask(self._turn(said))

    def _ask(self, questions: Sequence[Question]) -> None:
        """Have every question decided, and then what comes of it, until nothing waits.

        Raises:
            EOFError, KeyboardInterrupt: The person will not decide now; all is kept.
        """
        while questions:
            tools = self._agent.gateway.catalog.tools
            try:
                decisions = [
                    decide(one, tools.get(one.call.name), self._keyboard, self._screen)
                    for one in questions
                ]
            except (EOFError, KeyboardInterrupt):
                self._keep(questions)
                raise

            # All of them in one message: the calls of one batch run, and are told, together.
            parts = tuple(part for decided in decisions for part in decided.parts)
            questions = self._turn(Content(decisions[0].role, parts))

    def _keep(self, questions: Sequence[Question]) -> None:
        """Say how the questions that nobody decides now can be decided later."""
        self._has_failed = True
        names = ", ".join(one.call.name for one in questions)
        self._screen.aside(
            f"Not run, and not refused: {names}. The question is kept; decide on it later with: "
            f"bridge chat … --session {self._opened.session.id}",
            "yellow",
        )

    def _turn(self, message: Message) -> Sequence[Question]:
        """Show one turn as it comes; returns the questions that it ends with.

        Raises:
            KeyboardInterrupt: Ctrl-C ended it.
            BridgeError: The turn failed.
        """
        told: Told = SimpleQueue()
        self._told = told
        future = self._portal.start_task_soon(self._tell, message, told)
        questions: list[Question] = []
        is_calling = isinstance(message, Content)
        with self._keyboard.waking(partial(told.put, STOP)):
            while (item := told.get()) is not None:
                if isinstance(item, Event):
                    self._screen.show(item)
                    questions += questions_in(item)
                    is_calling = _is_calling(item, is_calling)
                elif not isinstance(item, str):
                    self._screen.progress(*item)
                elif self._keyboard.is_leaving:
                    raise KeyboardInterrupt
                else:
                    future.cancel()

        if future.cancelled():
            open_end = " A call was running: it may have been done." if is_calling else ""
            self._screen.aside(f"Stopped.{open_end} An empty line goes on.", "yellow")
            raise KeyboardInterrupt

        future.result()
        return questions

    async def _tell(self, message: Message, told: Told) -> None:
        try:
            async with closing(self._opened.conversation.say(message)) as events:
                async for event in events:
                    told.put(event)
        finally:
            told.put(None)

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for something short that is done in the other thread; Ctrl-C calls it off."""
        future = self._portal.start_task_soon(work)
        try:
            with self._keyboard.interruptible():
                return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _code(self) -> int:
        return FAILED if self._has_failed or self._screen.has_failed else 0


def _is_calling(event: Event, before: bool) -> bool:
    """Whether a call runs after this event, as far as it says."""
    if event.function_responses():
        return False

    return before or any(call.name != CONFIRMATION for call in event.function_calls())


def _nothing() -> None:
    pass
