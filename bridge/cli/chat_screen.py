"""What a person sees of a chat: the agent's words to stdout, everything else beside them.

On a terminal both are one stream; elsewhere what is no word of the agent's goes to stderr, so
that neither a tool's error nor a question can be taken for its answer.
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from bridge.agents.events import USER, visible_text
from bridge.agents.questions import CONFIRMATION
from bridge.cli.output import visible
from bridge.core.content import FunctionCall, FunctionResponse
from bridge.core.event import Event

FALLBACK: Final = (100, 24)  # columns and lines where no terminal says how many it has
LEAST_SHOWN: Final = 20  # characters of a value, however narrow the terminal
LINES_OF_ERROR: Final = 4

_WRAPPED = ({"output"}, {"result"})  # what an answer is put into that is no object of its own


class Screen:
    """Shows the events of a conversation as they come; `speaker` is the agent's name.

    `has_failed` says whether the model has answered with an error.
    """

    def __init__(self, speaker: str) -> None:
        is_terminal = sys.stdout.isatty()
        self.has_failed = False
        self._label = f"{speaker}> " if is_terminal else ""
        self._console = Console(stderr=not is_terminal, highlight=False, soft_wrap=True)
        self._said = ""  # what is shown already of the answer that is coming
        self._is_in_line = False
        self._is_thinking = False

    def show(self, event: Event) -> None:
        """Show one event, or one piece of an answer."""
        if event.author == USER:
            return

        if event.partial:
            self._piece(event)
            return

        if event.function_responses():
            self._answers(event)
        else:
            self._answer(visible_text(event.content))
            for call in event.function_calls():
                self._call(call, is_late=call.id in event.long_running_tool_ids)

        if event.error_code or event.error_message:
            self.has_failed = True
            said = event.error_message or "no message"
            self.aside(f"✗ the model answered with an error: {said} ({event.error_code})", "red")

    def progress(self, tool: str, done: float, total: float | None, message: str | None) -> None:
        """Show how far a call is."""
        of = "" if total is None else f"/{total:g}"
        self.aside(f"… {tool} {done:g}{of} {message or ''}".rstrip(), "dim")

    def aside(self, text: str, style: str = "") -> None:
        """Say something that is no word of the agent's, on lines of its own."""
        self.end_line()
        self._console.print(Text(visible(text), style=style))

    def end_line(self) -> None:
        """End the line that the agent's words stand on, if they stand on one."""
        self._said, self._is_thinking = "", False
        if self._is_in_line:
            self._write("\n")
            self._is_in_line = False

    def _piece(self, event: Event) -> None:
        text = visible_text(event.content)
        if not text and event.parts and not self._is_thinking and not self._said:
            self.aside("… thinking", "dim")
            self._is_thinking = True

        self._words(text)
        self._said += text

    def _answer(self, text: str) -> None:
        """A whole answer, of which pieces may be shown already."""
        if not text.startswith(self._said):
            self.end_line()  # it was changed on its way: what counts is the whole

        self._words(text.removeprefix(self._said))
        self.end_line()

    def _words(self, text: str) -> None:
        if not text:
            return

        if not self._is_in_line:
            self._write(self._label)
            self._is_in_line = True

        self._write("\t".join(visible(piece) for piece in text.split("\t")))

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def _call(self, call: FunctionCall, *, is_late: bool) -> None:
        if call.name == CONFIRMATION:
            return  # a question to a person, who is asked it

        self.aside(fitted(f"→ {call.name} ", as_json(call.args)), "cyan")
        if is_late:
            self.aside(f"… {call.name} goes on; its answer may come much later", "dim")

    def _answers(self, event: Event) -> None:
        waiting = event.actions.requested_tool_confirmations
        for answer in event.function_responses():
            if answer.id in waiting:
                self.aside(f"? {answer.name} waits for a person's yes", "yellow")
            else:
                self._result(answer)

        if not waiting:
            self._answer(visible_text(event.content))  # a result that is meant for people

    def _result(self, answer: FunctionResponse) -> None:
        response = answer.response
        if response is None:
            self.aside(f"← {answer.name} gave no answer", "dim")
        elif "error" in response:
            reason = response["error"] if isinstance(response["error"], str) else as_json(response)
            line = fitted(f"✗ {answer.name} failed: ", reason, LINES_OF_ERROR)
            self.aside(line, "red")
        else:
            value = next(iter(response.values())) if response.keys() in _WRAPPED else response
            text = value if isinstance(value, str) else as_json(value)
            self.aside(fitted(f"← {answer.name} ", text), "dim")


class JsonScreen(Screen):
    """Prints every event as one line of JSON, for machines; what is said beside goes to stderr."""

    def __init__(self, speaker: str) -> None:
        super().__init__(speaker)
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    def show(self, event: Event) -> None:
        """Print one event, or one piece of an answer."""
        self.has_failed = self.has_failed or bool(event.error_code or event.error_message)
        self._write(json.dumps(event.to_json()) + "\n")


def as_json(value: Any) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def fitted(beginning: str, text: str, lines: int = 1) -> str:
    """`text` behind `beginning`, on one line (or so many of the terminal's); a cut is told."""
    text = visible(" ".join(text.split()))
    room = shutil.get_terminal_size(FALLBACK).columns * lines - len(visible(beginning))
    if len(text) <= max(room, LEAST_SHOWN):
        return beginning + text

    kept = max(room - len(_cut(len(text))), LEAST_SHOWN)
    return beginning + text[:kept] + _cut(len(text) - kept)


def _cut(left_out: int) -> str:
    return f"… (+{left_out} characters)"
