"""A model that says what it was told to say: for tests, and for demonstrations offline."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from bridge.core.content import Content, FunctionCall, Part
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import ModelError
from bridge.models.answers import STOP, piece, whole

Piece: TypeAlias = Part | FunctionCall | str
Answer: TypeAlias = LLMResponse | Content | Exception | Piece | Sequence[Piece | LLMResponse]
Script: TypeAlias = Answer | Callable[[LLMRequest], Answer | Awaitable[Answer]]

_WORD = re.compile(r"\s*\S+|\s+$")


class ScriptedModel:
    """Gives its answers in order, one a request, whatever it is asked.

    An answer is text, a call, a part, a list of these, a content or a whole response; an exception
    is raised; a function, plain or async, is given the request and returns one of them. A list
    of responses is given as it is. With `stream` the words of an answer come first, one by one.

    `requests` holds what was asked so far: copies, which later edits do not reach.
    """

    def __init__(self, answers: Iterable[Script], *, name: str = "scripted") -> None:
        if isinstance(answers, str):
            raise TypeError("answers is one text; give a list of answers")

        self._answers = iter(answers)
        self._name = name
        self.requests: list[LLMRequest] = []

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    async def generate(
        self, request: LLMRequest, *, stream: bool = False
    ) -> AsyncGenerator[LLMResponse]:
        """Give the next answer.

        Raises:
            ModelError: There is none left.
        """
        self.requests.append(_copied(request))
        for response in _responses(await self._next(request)):
            if stream and not response.partial:
                for said in _pieces(response):
                    yield said

            yield response

    async def _next(self, request: LLMRequest) -> Answer:
        try:
            script = next(self._answers)
        except StopIteration:
            asked = len(self.requests)
            raise ModelError(
                f'the scripted model "{self._name}" was asked {asked} times and has only '
                f"{asked - 1} answers; give it more, or ask less"
            ) from None

        answer = script(request) if callable(script) else script
        return await answer if inspect.isawaitable(answer) else answer


def _copied(request: LLMRequest) -> LLMRequest:
    """The request as it is now; the tools in it are the same objects."""
    return replace(
        request,
        contents=copy.deepcopy(request.contents),
        config=copy.deepcopy(request.config),
        tools=None if request.tools is None else dict(request.tools),
    )


def _responses(answer: Answer) -> Iterator[LLMResponse]:
    match answer:
        case Exception():
            raise answer
        case LLMResponse():
            yield answer
        case Content():
            yield replace(whole((), STOP), content=answer)
        case str() | Part() | FunctionCall():
            yield whole([_part(answer)], STOP)
        case _:
            yield from _listed(answer)


def _listed(answers: Sequence[Piece | LLMResponse]) -> Iterator[LLMResponse]:
    responses = [answer for answer in answers if isinstance(answer, LLMResponse)]
    if not responses:
        pieces = [answer for answer in answers if not isinstance(answer, LLMResponse)]
        yield whole([_part(given) for given in pieces], STOP)
    elif len(responses) == len(answers):
        yield from responses
    else:
        raise TypeError("an answer is a list of parts or a list of responses, not of both")


def _part(given: Piece) -> Part:
    match given:
        case Part():
            return given
        case FunctionCall():
            return Part(function_call=given)
        case _:
            return Part(text=given)


def _pieces(response: LLMResponse) -> Iterator[LLMResponse]:
    for part in response.content.parts if response.content else ():
        for word in _WORD.findall(part.text or ""):
            yield piece(word, thought=part.thought)
