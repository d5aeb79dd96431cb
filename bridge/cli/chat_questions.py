"""Asking a person whether a call is to run: shown as it would run, decided by y, N or an edit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bridge.agents.questions import Question, decision
from bridge.agents.replay import check_arguments
from bridge.cli.chat_keyboard import Keyboard
from bridge.cli.chat_screen import Screen
from bridge.core.confirmation import json_hash
from bridge.core.content import Args, Content
from bridge.core.tool import Tool
from bridge.core.wire import loads
from bridge.downstream.display import one_line, visible
from bridge.errors import InvalidArguments, ToolError

_GATE = {"arguments", "hash", "tool", "upstream"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a person reads it.

    Where the gate asks, `arguments` are the effective ones, which a yes is bound to. Where a tool
    asks by itself, `shown` is what it wants to be seen, and goes back to it with the answer.
    """

    question: Question
    arguments: Args
    upstream: str = ""
    tool: str = ""
    shown: Any = None

    @property
    def name(self) -> str:
        """The name under which the tool is offered."""
        return self.question.call.name

    def lines(self) -> list[str]:
        """What the person has to know, nothing of it cut, nothing of it hidden."""
        lines = [f"{one_line(self.name)} asks for your approval:"]
        if self.tool:
            lines += [f"  upstream: {one_line(self.upstream)}", f"  tool: {one_line(self.tool)}"]
        elif self.question.hint:
            lines += [f"  it says: {line}" for line in self.question.hint.splitlines()]

        lines += ["  arguments:", *_laid_out(self.arguments)]
        return lines if self.shown is None else [*lines, "  it shows:", *_laid_out(self.shown)]


def asked(question: Question) -> Asked:
    """The question, read as the gate puts it or as a tool of its own does."""
    payload = question.payload
    if isinstance(payload, dict) and payload.keys() >= _GATE:
        tool, upstream = str(payload["tool"]), str(payload["upstream"])
        return Asked(question, payload["arguments"], upstream, tool)

    return Asked(question, question.call.args, shown=payload)


def decide(question: Question, tool: Tool | None, keyboard: Keyboard, screen: Screen) -> Content:
    """Ask until it is decided; returns what decides it. `tool` is None if it is not on offer.

    Raises:
        EOFError: Nobody answers; it stays open.
        KeyboardInterrupt: The person will not answer now; it stays open.
    """
    one = asked(question)
    for line in one.lines():
        screen.aside(line, "bold")

    if tool is None:
        screen.aside(f'  "{one.name}" is not on offer now: a yes would be spent in vain', "red")

    while True:
        prompt = f"Run {one_line(one.name)}? [y/N/e(dit)] "
        typed = keyboard.line(prompt, is_answer=True).strip()
        word, _, rest = typed.partition(" ")
        match word.lower():
            case "y" | "yes" if not rest:
                return decision(question.id, True, payload=one.shown)
            case "" | "n" | "no" if not rest:
                return decision(question.id, False)
            case "e" | "edit":
                edited = _edit(one, tool, rest, keyboard, screen)
                if edited is not None:
                    return edited
            case _:
                screen.aside("Answer y to run it, n (or Enter) to refuse, e to edit its arguments.")


def _edit(
    one: Asked, tool: Tool | None, typed: str, keyboard: Keyboard, screen: Screen
) -> Content | None:
    """A yes to the arguments that the person types; None, and a word why, if they do not fit."""
    if not typed.strip():
        now = json.dumps(one.arguments)  # in ASCII: what is edited must not hide anything
        typed = keyboard.line("New arguments (JSON): ", filled_in=now, is_answer=True).strip()

    if not typed:
        screen.aside("Nothing was typed; the arguments are as they were.")
        return None

    try:
        arguments = _arguments(typed)
        check_arguments(tool, arguments)
    except ToolError as exc:
        screen.aside(f"✗ {exc}", "red")
        return None

    if json_hash(arguments) == json_hash(one.arguments):
        return decision(one.question.id, True, payload=one.shown)

    screen.aside("It runs with these arguments.", "dim")
    return decision(one.question.id, True, arguments=arguments, payload=one.shown)


def _arguments(typed: str) -> Args:
    try:
        arguments = loads(typed)
        json_hash(arguments)  # not every number has a place in JSON
    except (ValueError, RecursionError) as exc:
        raise InvalidArguments(f"that is not JSON: {exc}") from exc

    if not isinstance(arguments, dict):
        raise InvalidArguments('arguments are a JSON object, like {"city": "Tokyo"}')

    return arguments


def _laid_out(value: Any) -> list[str]:
    """JSON in which every character can be seen; its strings hold no line ends of their own."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return [f"    {visible(line)}" for line in text.split("\n")]
