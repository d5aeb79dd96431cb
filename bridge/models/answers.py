"""What every adapter makes of a provider's answer: the same words for the same things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bridge.core.content import Args, Content, Part
from bridge.core.response import LLMResponse
from bridge.core.wire import loads

MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
REFUSAL: Final = "REFUSAL"
STOP: Final = "STOP"
SHOWN = 400  # characters of a foreign text in a message of ours

_FINISH: Final = {
    "stop": STOP,
    "tool_call": STOP,
    "tool_calls": STOP,
    "function_call": STOP,
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "OTHER",
}
_UNFINISHED: Final = {
    "MAX_TOKENS": "the model reached its token limit before it said anything",
    "SAFETY": "the provider's content filter stopped the answer",
}


class MalformedCall(Exception):
    """The model called a function in a way that cannot be read; the text is for a person."""


def finish_reason(word: str | None) -> str:
    """Why the answer ended, in the words of the protocol; a provider's own word in capitals."""
    return _FINISH.get(word, word.upper()) if word else ""


def arguments(name: str, given: Any) -> Args:
    """The arguments of a call, given as JSON text, as an object or not at all.

    Raises:
        MalformedCall: They are no JSON object.
    """
    if given is None or given == "":
        return {}

    try:
        found = loads(given) if isinstance(given, str) else given
    except ValueError as exc:
        raise MalformedCall(_malformed(name, "that are not JSON", given)) from exc

    if not isinstance(found, dict):
        raise MalformedCall(_malformed(name, "that are not a JSON object", given))

    return found


def _malformed(name: str, fault: str, given: Any) -> str:
    return f'the model called "{name}" with arguments {fault}: {excerpt(str(given))}'


def excerpt(text: str) -> str:
    """How a foreign text begins, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def piece(text: str, *, thought: bool = False) -> LLMResponse:
    """A piece of text, which the whole answer repeats."""
    return LLMResponse(content=Content("model", (Part(text=text, thought=thought),)), partial=True)


def whole(
    parts: Sequence[Part],
    finish: str,
    *,
    refusal: str = "",
    malformed: str = "",
    **about: Any,
) -> LLMResponse:
    """A whole answer; `about` are fields of the response.

    `malformed` says what is wrong with a call: then no call of the answer is handed out, for they
    belong together. An answer that says nothing has an error code, unless it ended as it should.
    """
    code, message = "", ""
    if malformed:
        parts = [part for part in parts if part.function_call is None]
        cut = "; the answer was cut off at the token limit" if finish == "MAX_TOKENS" else ""
        code, message = MALFORMED, malformed + cut
    elif refusal:
        parts = [*parts, Part(text=refusal)]
        code, message = REFUSAL, refusal
    elif finish not in ("", STOP) and all(part.thought for part in parts):
        code = finish
        message = _UNFINISHED.get(finish, f"the provider ended the answer with {finish!r}")

    return LLMResponse(
        content=Content("model", tuple(parts)) if parts or not code else None,
        turn_complete=True,
        error_code=code,
        error_message=message,
        finish_reason=finish,
        **about,
    )
