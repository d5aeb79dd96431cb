"""What is said: contents made of parts, as a model, a person and a tool exchange them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Args: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A request to run one tool; `id` names this call, not the tool."""

    id: str
    name: str
    args: Args


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    """The answer to the call with the same id; None where a tool returned nothing."""

    id: str
    name: str
    response: Result | None


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with a media type: an image, a sound, a file."""

    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a content: exactly one of text, call, response, blob or code result is set.

    `code_execution_result` is what a model's provider says of code that it ran by itself.
    """

    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    thought: bool = False
    thought_signature: bytes | None = None
    code_execution_result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What one side says; `role` is "user" or "model"."""

    role: str
    parts: tuple[Part, ...] = ()
