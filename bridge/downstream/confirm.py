"""Asking the person behind an MCP client whether a call may run, and taking the answer once.

A modern client gets the question as an `input_required` result and brings the answer back with
the same call and the sealed question. A legacy client is asked while its call waits. Yes means
that the form was accepted *and* that its `approve` is true; every yes is good for one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.calls.call import Outcome
from bridge.core.confirmation import ToolConfirmation, json_hash
from bridge.core.content import FunctionCall, Result
from bridge.core.rpc import RpcError
from bridge.downstream.asker import Asker
from bridge.downstream.client import nothing
from bridge.downstream.display import one_line, value_text
from bridge.downstream.sealed import Question, Seals, is_ours
from bridge.errors import (
    ConfirmationRejected,
    ConfirmationRequired,
    InvalidArguments,
    StoreError,
)
from bridge.upstream.protocol import ELICIT, INPUT_REQUIRED

KEY = "approval"
"""The name of our one question among a result's `inputRequests`."""

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve",
            "description": "Run this call once, with exactly these arguments.",
        }
    },
    "required": ["approve"],
}
DECISIONS = frozenset({"accept", "decline", "cancel"})
MULTI_ROUND = ("inputResponses", "requestState")
"""What a modern client brings along when it calls again (MCP 2026-07-28, multi round-trip)."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a modern client brings with its call.

    `granted` is a person's yes. `for_server` is what belongs to the server behind the tool:
    `inputResponses` and `requestState`, as far as there are any.
    """

    granted: ToolConfirmation | None = None
    for_server: Mapping[str, Any] = field(default_factory=nothing)


NOTHING_BROUGHT = Brought()


class Confirmations:
    """The questions of one server, from asking to the one answer each of them takes."""

    def __init__(self, seals: Seals | None = None) -> None:
        self.seals = Seals() if seals is None else seals

    async def brought(self, asker: Asker, call: FunctionCall, params: Mapping[str, Any]) -> Brought:
        """What came with the call besides its arguments.

        A question of ours that is not this asker's, about another call, too old or already
        answered counts for nothing: the call goes on without a yes, and is asked anew.

        Raises:
            ConfirmationRejected: The person said no.
            ConfirmationRequired: Whether the answer was used before cannot be known now.
        """
        state, responses = params.get("requestState"), params.get("inputResponses")
        if not asker.modern or (state is None and responses is None):
            return NOTHING_BROUGHT

        if not is_ours(state):
            return Brought(for_server={key: params[key] for key in MULTI_ROUND if key in params})

        question = self.answered(asker, digest(call), state)
        if question is None or not isinstance(responses, dict):
            return Brought()

        if question.theirs is not None:
            if not await self._taken(call, question):
                return Brought()

            theirs: dict[str, Any] = {"inputResponses": responses}
            if question.theirs:
                theirs["requestState"] = question.theirs

            return Brought(ToolConfirmation(confirmed=True, hash=question.call), theirs)

        answer = responses.get(KEY)
        if not _is_decision(answer) or not await self._taken(call, question):
            return Brought()

        return Brought(_granted(call, answer, question.call))

    async def _taken(self, call: FunctionCall, question: Question) -> bool:
        try:
            return await self.seals.spend(question)
        except StoreError as exc:
            raise ConfirmationRequired(
                f'"{call.name}" did not run: the record of the answers that were used cannot be '
                "reached now, so this one is worth nothing. Call again later"
            ) from exc

    def answered(self, asker: Asker, request: str, state: Any) -> Question | None:
        """The question of ours that this state is, if it was put to this asker, about this.

        Whether it was answered before shows when its answer is taken.
        """
        question = self.seals.open(state)
        if question is None or question.request != request:
            return None

        is_same = (question.principal, question.session) == (asker.principal, asker.session)
        return question if is_same else None

    def carried(self, asker: Asker, call: FunctionCall, answer: Result, yes: str | None) -> Result:
        """A server's own question about a call that a person has approved, with that approval.

        The server's state travels inside of ours, so that the approval comes back with it.
        """
        state = answer.get("requestState")
        theirs = state if isinstance(state, str) else ""  # empty: it needs none
        sealed = self.seals.seal(asker.principal, asker.session, digest(call), yes, theirs=theirs)
        return {**answer, "requestState": sealed}

    async def ask(self, asker: Asker, call: FunctionCall, outcome: Outcome) -> ToolConfirmation:
        """Ask a legacy client's person while the call waits, and return the yes.

        Raises:
            ConfirmationRejected: The person said no.
            ConfirmationRequired: The client cannot ask, or no answer came.
        """
        if asker.asks is None or not asker.has_form:
            raise _cannot_ask(call)

        form, fingerprint = _form(call, outcome)
        try:
            answer = await asker.ask(ELICIT, form)
        except RpcError as exc:
            raise ConfirmationRequired(f"no approval came, nothing ran: {exc}") from exc

        return _granted(call, answer if _is_decision(answer) else {}, fingerprint)

    def input_required(self, asker: Asker, call: FunctionCall, outcome: Outcome) -> Result:
        """The result that has a modern client ask its person and call again.

        Raises:
            ConfirmationRequired: The client did not declare that it can show a form.
        """
        if not asker.has_form:
            raise _cannot_ask(call)

        form, fingerprint = _form(call, outcome)
        request = {"method": ELICIT, "params": {"mode": "form", **form}}
        return {
            "resultType": INPUT_REQUIRED,
            "inputRequests": {KEY: request},
            "requestState": self.seals.seal(
                asker.principal, asker.session, digest(call), fingerprint
            ),
        }


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the gate, or the tool itself, wants the person to see."""

    upstream: str
    tool: str
    arguments: Any
    fingerprint: str | None
    hint: str = ""
    details: Any = None


def _shown(call: FunctionCall, outcome: Outcome) -> _Shown:
    """The gate's payload names all of it; a tool that asks by itself may put anything there."""
    question = outcome.actions.requested_tool_confirmations[call.id]
    payload = question.payload
    if isinstance(payload, dict) and payload.keys() == {"arguments", "hash", "tool", "upstream"}:
        upstream, tool = str(payload["upstream"]), str(payload["tool"])
        return _Shown(upstream, tool, payload["arguments"], str(payload["hash"]))

    return _Shown("local", call.name, call.args, question.hash, question.hint, payload)


def _form(call: FunctionCall, outcome: Outcome) -> tuple[dict[str, Any], str]:
    """The params of the question to a person, and the hash that a yes to it will name.

    Where a tool asked by itself, that is one which no gate takes: what stands behind the name
    may be another tool by the time the yes comes back.
    """
    shown = _shown(call, outcome)
    whole = shown.fingerprint or digest(call)
    lines = [
        "Allow this call?",
        "",
        f"server: {one_line(shown.upstream)}",
        f"tool: {one_line(shown.tool)}",
        f"arguments: {value_text(shown.arguments, whole)}",
    ]
    if shown.hint:
        lines.append(f"note: {one_line(shown.hint)}")

    if shown.details is not None:
        lines.append(f"details: {value_text(shown.details, whole)}")

    return {"message": "\n".join(lines), "requestedSchema": FORM}, whole


def digest(call: FunctionCall) -> str:
    """Name the call as the client sent it.

    Raises:
        InvalidArguments: What the client sent has no canonical JSON.
    """
    try:
        return json_hash([call.name, call.args])
    except (ValueError, RecursionError) as exc:
        raise InvalidArguments(f'the arguments of "{call.name}" cannot be approved: {exc}') from exc


def _is_decision(answer: Any) -> bool:
    action = answer.get("action") if isinstance(answer, dict) else None
    return isinstance(action, str) and action in DECISIONS


def _granted(call: FunctionCall, answer: Any, fingerprint: str | None) -> ToolConfirmation:
    content = answer.get("content")
    is_yes = isinstance(content, dict) and content.get("approve") is True
    if answer.get("action") != "accept" or not is_yes:
        raise ConfirmationRejected(f'the call of "{call.name}" was not approved; nothing ran')

    return ToolConfirmation(confirmed=True, hash=fingerprint)


def _cannot_ask(call: FunctionCall) -> ConfirmationRequired:
    return ConfirmationRequired(
        f'"{call.name}" needs a person\'s approval, and this client cannot ask for it; nothing '
        "ran. Call it through a client that supports elicitation forms, or with `bridge call`"
    )
