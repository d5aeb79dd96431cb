"""An answer in the dialect of chat completions: whole, or put together from its deltas.

Servers differ. What is read here: reasoning as `reasoning_content` or `reasoning`; content as text
or as a list of parts; deltas of calls with an index, with an id alone, or whole calls that share
one index; arguments as text, as an object or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from bridge.core.content import FunctionCall, Part
from bridge.core.response import LLMResponse
from bridge.core.wire import loads
from bridge.models.answers import MalformedCall, arguments, finish_reason, piece, whole
from bridge.models.chat_request import EXTRA, sealed
from bridge.models.event_source import BadAnswer

Json: TypeAlias = dict[str, Any]


def read_object(text: bytes | str) -> Json:
    """A JSON object that a provider sent.

    Raises:
        BadAnswer: It is none, or it holds the provider's own word that it failed. The text quotes
            it whole.
    """
    try:
        found = loads(text)
    except ValueError as exc:
        raise BadAnswer(f"the provider's answer is not JSON: {_plain(text)}") from exc

    if not isinstance(found, dict):
        raise BadAnswer(f"the provider's answer is not a JSON object: {_plain(text)}")

    if found.get("error"):
        raise BadAnswer(f"the provider reports an error: {said(found)}")

    return found


def said(body: Any) -> str:
    """What a body says is wrong, wherever the provider put it."""
    if isinstance(body, bytes):
        try:
            return said(loads(body))
        except ValueError:
            return _plain(body)

    inner = body
    while isinstance(inner, dict):
        body, inner = inner, inner.get("error") or inner.get("message") or inner.get("detail")

    return str(body if inner is None else inner)


def _plain(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def to_answer(body: Json) -> LLMResponse:
    """The answer that a whole body holds.

    Raises:
        BadAnswer: It holds none.
    """
    reply = Reply()
    reply.read_whole(body)
    if not reply.is_begun:
        raise BadAnswer("the provider's answer has no choices")

    return reply.answer()


class _Call:
    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self._pieces: list[str] = []
        self._given: Any = None  # arguments that came as JSON, not as text
        self._extra: Json | None = None

    def add(self, delta: Json) -> None:
        self.id = self.id or _text(delta.get("id"))
        self._extra = self._extra or _dict(delta.get(EXTRA))
        function = _dict(delta.get("function")) or {}
        self.name = self.name or _text(function.get("name"))
        given = function.get("arguments")
        if isinstance(given, str):
            self._pieces.append(given)
        elif given is not None:
            self._given = given

    def to_part(self) -> Part:
        if not self.name:
            raise MalformedCall("the model made a call that names no function")

        args = arguments(self.name, "".join(self._pieces) or self._given)
        call = FunctionCall(self.id, self.name, args)
        return Part(function_call=call, thought_signature=sealed(self._extra))


class Reply:
    """What is known of an answer so far; each chunk that is read adds to it."""

    def __init__(self) -> None:
        self.is_begun = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish = ""
        self._model = ""
        self._usage: Json | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the provider said why the answer ended."""
        return bool(self._finish)

    def read(self, chunk: Json) -> list[LLMResponse]:
        """Add what a chunk says; returns the pieces of text in it."""
        choice = self._choice(chunk)
        delta = _dict(choice.get("delta")) or {}
        for call in _dicts(delta.get("tool_calls")):
            self._call_of(call).add(call)

        return list(self._add_texts(delta))

    def read_whole(self, body: Json) -> None:
        """Add what a whole answer says."""
        message = _dict(self._choice(body).get("message")) or {}
        for call in _dicts(message.get("tool_calls")):
            self._begun_call("").add(call)

        list(self._add_texts(message))

    def _choice(self, body: Json) -> Json:
        self._model = _text(body.get("model")) or self._model
        self._usage = _dict(body.get("usage")) or self._usage
        choice = next(_dicts(body.get("choices")), None)
        self.is_begun = self.is_begun or choice is not None
        choice = choice or {}
        self._finish = finish_reason(_text(choice.get("finish_reason"))) or self._finish
        return choice

    def _add_texts(self, said: Json) -> Iterator[LLMResponse]:
        thought = _text(said.get("reasoning_content")) or _text(said.get("reasoning"))
        if thought:
            self._thoughts.append(thought)
            yield piece(thought, thought=True)

        for key, texts in (("content", self._texts), ("refusal", self._refusals)):
            text = _text(said.get(key))
            if text:
                texts.append(text)
                yield piece(text)

    def _call_of(self, delta: Json) -> _Call:
        """The call that a delta goes on with; a new one if it begins one.

        A new index or a new id begins a call; where there is no index, a name does, too.
        """
        index, call_id = delta.get("index"), _text(delta.get("id"))
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is None or (call_id and call.id and call_id != call.id):
                call = self._by_index[index] = self._begun_call(call_id)

            return call

        last = self._calls[-1] if self._calls else None
        named = _text((_dict(delta.get("function")) or {}).get("name"))
        goes_on = last is not None and (call_id == last.id if call_id else not named)
        return last if last is not None and goes_on else self._begun_call(call_id)

    def _begun_call(self, call_id: str) -> _Call:
        call = _Call(call_id)
        self._calls.append(call)
        return call

    def answer(self) -> LLMResponse:
        """The whole answer, as far as it was read."""
        parts = [Part(text="".join(self._thoughts), thought=True)] if self._thoughts else []
        parts += [Part(text="".join(self._texts))] if self._texts else []
        malformed = ""
        try:
            parts += [call.to_part() for call in self._calls]
        except MalformedCall as exc:
            malformed = str(exc)

        return whole(
            parts,
            self._finish,
            refusal="".join(self._refusals),
            malformed=malformed,
            model_version=self._model,
            usage_metadata=self._usage,
        )


def _text(value: Any) -> str:
    """A text, or the texts of a list of parts; anything else says nothing."""
    if isinstance(value, list):
        return "".join(_text(item.get("text")) for item in _dicts(value))

    return value if isinstance(value, str) else ""


def _dict(value: Any) -> Json | None:
    return value if isinstance(value, dict) else None


def _dicts(value: Any) -> Iterator[Json]:
    return (
        (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
    )
