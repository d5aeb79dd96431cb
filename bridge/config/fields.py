"""What a plain setting may hold: checks that say in a sentence what to write instead.

A check raises `wrong` (the sentence goes on after the value, which may be shown) or `bad` (a
whole sentence, for values that must not be shown).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Strict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from bridge.config.units import seconds, size

WRONG = "wrong"
BAD = "bad"


def wrong(text: str) -> PydanticCustomError:
    """An error that goes on after the value: `is not a duration. Write …`."""
    return PydanticCustomError(WRONG, text)


def bad(text: str) -> PydanticCustomError:
    """An error that is a whole sentence and shows no value."""
    return PydanticCustomError(BAD, text)


def fits(pattern: re.Pattern[str], error: Callable[[str], PydanticCustomError], text: str) -> Any:
    """A check that the whole of a text is like `pattern`; `error(text)` is raised otherwise."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise error(text)

        return value

    return AfterValidator(check)


def also(check: Callable[[Any], None]) -> Any:
    """A check of a whole mapping whose complaint stands beside those about its entries.

    `check` gets the value as it came in, and raises `bad` or `wrong`.
    """

    def run(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        errors: list[InitErrorDetails] = []
        result = None
        try:
            result = handler(value)
        except ValidationError as exc:
            errors += [_again(detail) for detail in exc.errors()]

        try:
            check(value)
        except PydanticCustomError as exc:
            errors.append(InitErrorDetails(type=exc, input=None))

        if errors:
            raise ValidationError.from_exception_data("settings", errors, hide_input=True)

        return result

    return WrapValidator(run)


def _again(detail: ErrorDetails) -> InitErrorDetails:
    same = PydanticCustomError(detail["type"], detail["msg"])
    return InitErrorDetails(type=same, loc=detail["loc"], input=None)


def number_as_text(value: Any) -> Any:
    """A whole number becomes the digits it was written with: programs are given texts."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def is_flag(value: Any) -> bool:
    """True or false; a text that says so counts, because what a variable holds is text."""
    if value in ("true", "false"):
        return bool(value == "true")

    if not isinstance(value, bool):
        raise wrong("is neither true nor false. Write true or false.")

    return value


def _to_seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise wrong(f'has no unit. Write "{value}s" for seconds, or use ms, m or h.')

    if not isinstance(value, str):
        raise wrong("is not a duration. Write 500ms, 30s, 2m or 1h.")

    try:
        return seconds(value)
    except ValueError as exc:
        raise wrong(str(exc)) from None


def _is_positive(value: float) -> float:
    if value <= 0:
        raise wrong("is no time at all. Write a duration above 0.")

    return value


def to_bytes(value: Any) -> int:
    """A size as it is written, in bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise wrong(f'has no unit. Write "{value}B" for bytes, or use KiB, MiB or GiB.')

    if not isinstance(value, str):
        raise wrong("is not a size. Write 64KiB or 4MiB.")

    try:
        return size(value)
    except ValueError as exc:
        raise wrong(str(exc)) from None


Text = Annotated[str, Strict()]
Flag = Annotated[bool, BeforeValidator(is_flag)]
Duration = Annotated[float, BeforeValidator(_to_seconds), AfterValidator(_is_positive)]
Wait = Annotated[float, BeforeValidator(_to_seconds)]
Size = Annotated[int, BeforeValidator(to_bytes)]

UpstreamName = Annotated[
    Text,
    fits(
        re.compile(r"(?!local\Z)[A-Za-z0-9_-]{1,32}"),
        wrong,
        'is no name for an upstream. Use 1 to 32 letters, digits, "_" or "-"; '
        '"local" is kept for tools that run here.',
    ),
]
ServerName = Annotated[
    Text,
    fits(
        re.compile(r"[ -~]{1,64}"),
        wrong,
        "is no name for a server. Use 1 to 64 plain characters.",
    ),
]
