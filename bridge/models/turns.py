"""A conversation as model APIs want it: what the model asked for is answered right after it.

Contents say who spoke. An API that names calls by id wants more: every call with an id, all its
answers together, and no call left without one. That is made here, once for every adapter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from bridge.core.content import Blob, Content, FunctionResponse, Part, Result

NO_ANSWER: Final[Result] = {"status": "no answer yet"}
"""What a model is told of a call that nobody has answered, such as one that still runs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call gave: its result (None where it returned nothing), and media beside it."""

    id: str
    name: str
    response: Result | None
    media: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One thing the model said; each of its calls has an id."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What came back: the answers to the calls of the turn before, then what a person said."""

    answers: tuple[Answer, ...]
    said: tuple[Part, ...]


Turn: TypeAlias = ModelTurn | UserTurn


def to_turns(contents: Sequence[Content]) -> list[Turn]:
    """The turns of a conversation; what the user's side says in a row is one of them.

    A blob that directly follows a function response in the same content belongs to that answer.
    A call without an id gets one, and the answer without an id that has its name gets the same.
    A call without an answer is answered with `NO_ANSWER`.
    """
    return _Conversation(contents).turns


class _Conversation:
    def __init__(self, contents: Sequence[Content]) -> None:
        self.turns: list[Turn] = []
        self._fresh_ids = _fresh_ids(contents)
        self._open: dict[str, str] = {}  # calls without an answer so far: id to name
        self._made: set[str] = set()  # ids that came from us
        self._answers: list[Answer] = []
        self._said: list[Part] = []
        for content in contents:
            if content.role == "model" and not _answers_calls(content):
                self._hear_model(content)
            else:
                self._hear_user(content)

        self._finish_turn()

    def _hear_model(self, content: Content) -> None:
        self._finish_turn()
        parts = tuple(self._with_id(part) for part in content.parts)
        self._open = {
            part.function_call.id: part.function_call.name
            for part in parts
            if part.function_call is not None
        }
        self.turns.append(ModelTurn(parts))

    def _with_id(self, part: Part) -> Part:
        call = part.function_call
        if call is None or call.id:
            return part

        made = next(self._fresh_ids)
        self._made.add(made)
        return replace(part, function_call=replace(call, id=made))

    def _hear_user(self, content: Content) -> None:
        follows_answer = False
        for part in content.parts:
            if part.function_response is not None:
                self._answers.append(self._answer(part.function_response))
                follows_answer = True
            elif follows_answer and part.inline_data is not None:
                last = self._answers[-1]
                self._answers[-1] = replace(last, media=(*last.media, part.inline_data))
            else:
                self._said.append(part)
                follows_answer = False

    def _answer(self, response: FunctionResponse) -> Answer:
        call_id = response.id or self._made_id(response.name) or next(self._fresh_ids)
        self._open.pop(call_id, None)
        return Answer(call_id, response.name, response.response)

    def _made_id(self, name: str) -> str | None:
        """The id we gave to the first open call of that name."""
        named = (key for key, called in self._open.items() if called == name and key in self._made)
        return next(named, None)

    def _finish_turn(self) -> None:
        self._answers += [Answer(key, name, NO_ANSWER) for key, name in self._open.items()]
        if self._answers or self._said:
            self.turns.append(UserTurn(tuple(self._answers), tuple(self._said)))

        self._answers, self._said, self._open = [], [], {}


def _answers_calls(content: Content) -> bool:
    return any(part.function_response is not None for part in content.parts)


def _fresh_ids(contents: Sequence[Content]) -> Iterator[str]:
    """Ids that no call has: the same ones each time this conversation is sent."""
    parts = [part for content in contents for part in content.parts]
    taken = {part.function_call.id for part in parts if part.function_call is not None}
    taken |= {part.function_response.id for part in parts if part.function_response is not None}
    return (made for n in itertools.count(1) if (made := f"call_{n}") not in taken)
