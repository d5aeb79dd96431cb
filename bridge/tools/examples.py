"""A tool that shows a model by examples how to answer; no example is ever executed (§12.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bridge.core.content import Content, Part
from bridge.core.context import ToolContext
from bridge.core.instructions import append_instructions, without_marks
from bridge.core.request import LLMRequest
from bridge.tools.preparing import said_first

_FRAME: Final = "<EXAMPLES>"  # the same before and after
_BEGIN: Final = "Begin few-shot"
_END: Final = "End few-shot"
_USER: Final = "[user]"
_MODEL: Final = "[model]"


class _Fences(NamedTuple):
    """What opens the block of a call, and of its answer."""

    call: str
    answer: str


_PLAIN: Final = _Fences("```", "```")
_GEMINI_2: Final = _Fences("```tool_code", "```tool_outputs")


@dataclass(frozen=True, slots=True)
class Example:
    """What a user may say, and all that is to come of it: the model's contents, calls' answers.

    A plain text stands for a content of it, by the user or by the model.
    """

    input: Content | str
    output: Sequence[Content] | str


@dataclass(frozen=True, slots=True, eq=False)
class ExampleTool:
    """Adds the examples to the instruction of each request.

    It only edits requests: it is declared to nobody and cannot be called.
    """

    examples: Sequence[Example]
    name: str = "example_tool"
    description: str = "Adds examples of good answers to each request."
    is_long_running: bool = False

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Append the examples, unless the user's message does not begin with a text."""
        if self.examples and said_first(ctx):
            append_instructions(request, examples_text(self.examples, request.model))


def examples_text(examples: Sequence[Example], model: str) -> str:
    """The block that a model reads; calls are fenced in the way that `model` knows."""
    fences = _GEMINI_2 if "gemini-2" in model else _PLAIN
    shown = (_example(number, one, fences) for number, one in enumerate(examples, 1))
    told = "These show what users ask and how the model answers, with the tools that there are."
    return f"{_FRAME}\n{_BEGIN}\n{told}\n\n{''.join(shown)}{_END}\n{_FRAME}"


def _example(number: int, example: Example, fences: _Fences) -> str:
    asked, answered = example.input, example.output
    spoken = (Part(text=asked),) if isinstance(asked, str) else asked.parts
    lines = [_USER, *(part.text for part in spoken if part.text)]
    contents = [Content("model", (Part(text=answered),))] if isinstance(answered, str) else answered
    speaker = ""
    for content in contents:
        header = _MODEL if content.role == "model" else _USER
        if header != speaker:
            lines.append(header)
            speaker = header

        lines += filter(None, (_shown(part, fences) for part in content.parts))

    text = without_marks("\n".join(lines), _END)
    return f"EXAMPLE {number}:\nBegin example\n{text}\nEnd example\n\n"


def _shown(part: Part, fences: _Fences) -> str:
    """A part as it is written down; empty where there is nothing to read."""
    call, answer = part.function_call, part.function_response
    if call is not None:
        args = ", ".join(f"{name}={_literal(value)}" for name, value in call.args.items())
        return f"{fences.call}\n{call.name}({args})\n```"

    if answer is not None:
        given = json.dumps(answer.response, ensure_ascii=False, default=str)
        return f"{fences.answer}\n{given}\n```"

    return "" if part.thought else part.text or ""


def _literal(value: Any) -> str:
    """A value as code: texts in single quotes, whatever is in them."""
    if not isinstance(value, str):
        return repr(value)

    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
