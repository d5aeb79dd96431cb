"""The same handlers where somebody looks on; where nobody does, these are not used at all."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import anyio

from bridge.calls.call import Outcome
from bridge.calls.observing import CallRecord, Kind, Observers
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall, Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INTERNAL_ERROR, RpcError
from bridge.core.tool import Tool, is_function_tool
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import Handlers
from bridge.errors import (
    ConfirmationRejected,
    ConfirmationRequired,
    OutcomeUnknown,
    Overloaded,
    TimedOut,
    UpstreamUnavailable,
)
from bridge.upstream.protocol import INPUT_REQUIRED

LOCAL: Final = "local"
LONGEST_NAME: Final = 128
"""Characters of a name that is no tool's; names that are offered have at most 64."""

KINDS: Final[tuple[tuple[tuple[type[Exception], ...], Kind], ...]] = (
    ((UpstreamUnavailable, Overloaded), "unavailable"),
    ((OutcomeUnknown, TimedOut), "unknown"),
    ((ConfirmationRequired, ConfirmationRejected), "refused"),
)
"""What else than `tool_error` a failure may be."""


class _Notes:
    """What is learnt of one call while it runs; a `downstream.asker.Notes`.

    One is made for every call, and of most nothing is learnt but that they ran.
    """

    outcome: Outcome | None = None
    granted: ToolConfirmation | None = None
    questions = 0
    waits = False
    code: int | None = None

    def ran(self, call: FunctionCall, outcome: Outcome, granted: ToolConfirmation | None) -> None:
        """The call was run, perhaps only as far as its gate; perhaps again, with a yes."""
        self.outcome, self.granted = outcome, granted
        self.waits = False
        if call.id in outcome.actions.requested_tool_confirmations:
            self.waits, self.granted = True, None
            self.questions += 1

    def kind(self, answer: Result) -> Kind:
        """How a call that was answered with a result has ended."""
        if answer.get("resultType") == INPUT_REQUIRED:
            return "asked"

        if not answer.get("isError"):
            return "ok"

        if self.outcome is None or self.waits:  # a no came with the call, or no yes came
            return "refused"

        error = self.outcome.error
        found = (kind for types, kind in KINDS if isinstance(error, types))
        return next(found, "tool_error")


class ObservedHandlers(Handlers):
    """Handlers that tell observers of every `tools/call`, whatever becomes of it."""

    def __init__(self, observers: Observers, *args: Any, **options: Any) -> None:
        """`observers` are told; everything else is as for `Handlers`."""
        super().__init__(*args, **options)
        self._observers = observers

    async def call_tool(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `tools/call`, as `Handlers` does."""
        named = params.get("name")
        name = named if isinstance(named, str) else ""
        tool = self._catalog.tools.get(name)
        span = self._observers.begin("" if tool is None else name, asker.meta)
        if span is not None:
            asker.meta = span.meta

        asker.notes = notes = _Notes()
        kind: Kind = "error"
        when, begun = time.time(), time.perf_counter()
        try:
            answer = await super().call_tool(asker, params, on_progress)
            kind = notes.kind(answer)
        except anyio.get_cancelled_exc_class():
            kind = "cancelled"
            raise
        except Exception as exc:
            notes.code = _code(exc)
            raise
        else:
            return answer
        finally:
            seconds = time.perf_counter() - begun
            tool = self._catalog.tools.get(name) if tool is None else tool
            record = _record(when, seconds, asker, params, name, tool, kind, notes)
            self._observers.end(record, span)


def _record(
    when: float,
    seconds: float,
    asker: Asker,
    params: Mapping[str, Any],
    name: str,
    tool: Tool | None,
    kind: Kind,
    notes: _Notes,
) -> CallRecord:
    upstream, own_name = getattr(tool, "upstream", None), getattr(tool, "own_name", name)
    if upstream is None:
        upstream, own_name = (LOCAL, own_name) if is_function_tool(tool) else ("", "")

    arguments, granted = params.get("arguments"), notes.granted
    return CallRecord(
        when,
        seconds,
        asker.principal,
        _mark(asker.session) if asker.session else "",
        name if upstream else name[:LONGEST_NAME],
        upstream,
        own_name,
        arguments if isinstance(arguments, dict) else {},
        kind,
        notes.code,
        notes.questions,
        granted is not None,
        None if granted is None else granted.hash,
    )


def _code(error: Exception) -> int:
    """The code of the JSON-RPC error that the client gets."""
    return error.code if isinstance(error, RpcError) else INTERNAL_ERROR


@lru_cache(maxsize=4096)
def _mark(session: str) -> str:
    """Name a session without telling the name by which it is entered."""
    return hashlib.sha256(session.encode()).hexdigest()[:16]
