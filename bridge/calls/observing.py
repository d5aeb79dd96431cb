"""What became of each call, for those who only look on: an audit, metrics, traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from bridge.core.content import Args
from bridge.telemetry import log

ARGUMENTS: Final = "arguments"

Kind: TypeAlias = Literal[
    "ok", "tool_error", "refused", "unavailable", "unknown", "error", "asked", "cancelled"
]
"""How a call ended.

ok: the tool answered. tool_error: the answer says that it failed. refused: no yes of a person's
covers it, nothing ran. unavailable: its server could not be asked, it provably did not run.
unknown: it was sent and no answer came. error: the answer is a JSON-RPC error. asked: the client
got a question and may come back. cancelled: the client called it off, or left.
"""


class CallRecord(NamedTuple):
    """One call of an MCP client's, once it is over.

    `when` it began is in seconds since the epoch, `seconds` is how long it took. `session` names
    the client's conversation, but is no key to it; it is empty where there is none. `tool` is the
    name that was called, `upstream` and `own_name` what stands behind it: "local" for tools that
    run here, both empty if no tool of that name is offered. `arguments` are as the client sent
    them; nobody may change or keep them. `code` is that of a JSON-RPC error. `questions` is how
    often a person was to be asked about this call; `approved` whether it ran with a person's
    yes, and `approval` the hash that this yes names, if it names one.

    A tuple, for one is made for every call: a frozen dataclass takes five times as long.
    """

    when: float
    seconds: float
    principal: str
    session: str
    tool: str
    upstream: str
    own_name: str
    arguments: Args
    kind: Kind
    code: int | None = None
    questions: int = 0
    approved: bool = False
    approval: str | None = None

    def __repr__(self) -> str:
        """Without the arguments, which may hold what is not for a log."""
        shown = (f"{name}={value!r}" for name, value in self._asdict().items() if name != ARGUMENTS)
        return f"CallRecord({', '.join(shown)})"


class Observer(Protocol):
    """Whoever wants to know of calls."""

    def called(self, record: CallRecord) -> None:
        """Take note of a call. It must neither wait nor raise: the client still waits."""
        ...


class Span(Protocol):
    """One call in a trace, while it runs."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` that goes upstream: the client's, with this span as the parent of more."""
        ...

    def end(self, record: CallRecord) -> None:
        """The call is over. Called once, in the task that began it."""
        ...


class Tracer(Protocol):
    """Whoever wants to know of calls from their beginning on."""

    def begin(self, tool: str, meta: Mapping[str, Any]) -> Span:
        """A call begins: of this offered tool ("" if there is none), with its client's `_meta`."""
        ...


class Observers:
    """Everybody who looks on. None of them can harm a call: one that fails is told of once."""

    def __init__(self, members: Sequence[Observer] = (), tracer: Tracer | None = None) -> None:
        self._members = tuple(members)
        self._tracer = tracer
        self._told: set[int] = set()

    def __bool__(self) -> bool:
        """Whether there is anybody."""
        return bool(self._members) or self._tracer is not None

    def begin(self, tool: str, meta: Mapping[str, Any]) -> Span | None:
        """The span of a call that begins; None if nobody traces it."""
        if self._tracer is None:
            return None

        try:
            return self._tracer.begin(tool, meta)
        except Exception:  # an exporter's or a sampler's, which may be anybody's
            self._failed(self._tracer)
            return None

    def end(self, record: CallRecord, span: Span | None) -> None:
        """A call is over: tell everybody."""
        if span is not None:
            try:
                span.end(record)
            except Exception:  # as above
                self._failed(self._tracer)

        for member in self._members:
            try:
                member.called(record)
            except Exception:  # an observer may be anybody's
                self._failed(member)

    def _failed(self, who: object) -> None:
        if id(who) not in self._told:
            self._told.add(id(who))
            kind = type(who).__name__
            log.exception("%s failed to observe a call; it is not told of again", kind)
