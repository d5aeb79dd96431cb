"""From a modern server's `input_required` to its answer, for clients of both eras.

A modern server that needs to know something answers so, and is asked again with what it wants
(MCP 2026-07-28, multi round-trip requests). A modern client does that itself and gets the server's
words as they are. A legacy client cannot: it is asked here, by requests, and the call is repeated
with what it said.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

import anyio

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.rpc import RpcError
from bridge.errors import OutcomeUnknown, UpstreamError
from bridge.upstream.capabilities import refusal
from bridge.upstream.channel import Options, Params
from bridge.upstream.envelope import takes_tasks
from bridge.upstream.protocol import COMPLETE, ELICIT, INPUT_REQUIRED, TASK
from bridge.upstream.sessions import Sessions

MOST_ROUNDS = 10
MOST_INPUTS = 32  # in one round
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # before a server is asked again that asked nothing


async def request(sessions: Sessions, method: str, params: Params, options: Options) -> Result:
    """Send one `tools/call`, `prompts/get` or `resources/read`, for `options.caller`.

    Returns the complete answer, or, to a modern client, what its server needs to know.
    `options.timeout` bounds what the server takes, over all rounds, and not what people take.

    Raises:
        ToolError: As `Connection.request`; UpstreamError also if the server needs what the
            client cannot give.
    """
    started = time.monotonic()
    raw = await sessions.of(options.caller).request(method, params, options)
    if raw.get("resultType", COMPLETE) == COMPLETE:
        return raw

    return await settle(raw, sessions, method, params, options, started)


async def settle(
    raw: Result,
    sessions: Sessions,
    method: str,
    params: Params,
    options: Options,
    started: float,
) -> Result:
    """Go on from an answer that is not complete; see `request`. `started` is monotonic."""
    caller = options.caller
    what = f'upstream "{sessions.shared.name}" answered "{_named(method, params)}" with '
    kind = str(raw.get("resultType"))[:40]
    if caller is not None and kind == INPUT_REQUIRED:
        if caller.modern:
            return raw

        rounds = _Rounds(caller, what + INPUT_REQUIRED, options.timeout, started)
        return await rounds.run(raw, sessions, method, params, options)

    if caller is not None and kind == TASK and takes_tasks(caller):
        return raw

    raise _refused(f"{what}{kind!r}, {_needs(kind)}")


class _Rounds:
    """The rounds between a legacy client and a modern server."""

    def __init__(self, caller: Caller, what: str, seconds: float | None, started: float) -> None:
        self._caller = caller
        self._what = what
        self._seconds = seconds
        self._started = started  # later by all the time that people have taken

    async def run(
        self, raw: Result, sessions: Sessions, method: str, params: Params, options: Options
    ) -> Result:
        for asked in range(MOST_ROUNDS):
            answers = await self._answers(raw, asked)
            again = {**params, **answers}
            left = options._replace(timeout=self._left())
            raw = await sessions.of(self._caller).request(method, again, left)
            kind = raw.get("resultType", COMPLETE)
            if kind == COMPLETE:
                return raw

            if kind != INPUT_REQUIRED:
                raise _refused(f"{self._what} and then {str(kind)[:40]!r}, {_needs(str(kind))}")

        raise _refused(f"{self._what} more than {MOST_ROUNDS} times, which bridge does not follow")

    def _left(self) -> float | None:
        """The seconds that the server has left.

        Raises:
            OutcomeUnknown: None.
        """
        if self._seconds is None:
            return None

        left = self._started + self._seconds - time.monotonic()
        if left <= 0:
            raise OutcomeUnknown(
                f"{self._what} and gave no answer within {self._seconds:g} s; outcome unknown"
            )

        return left

    async def _answers(self, raw: Result, asked: int) -> Params:
        """What the call is repeated with."""
        inputs = raw.get("inputRequests")
        state = {key: raw[key] for key in ("requestState",) if key in raw}
        if not inputs:
            if not state:
                raise _refused(f"{self._what} and did not say what it needs")

            await anyio.sleep(min(FIRST_PAUSE * 2**asked, LONGEST_PAUSE))
            return state

        if not isinstance(inputs, dict) or len(inputs) > MOST_INPUTS:
            raise _refused(f"{self._what} and no map of at most {MOST_INPUTS} requests")

        began = time.monotonic()
        responses = {key: await self._answer(one) for key, one in inputs.items()}
        self._started += time.monotonic() - began
        return {"inputResponses": responses, **state}

    async def _answer(self, asked: Any) -> Result:
        """What the client says to one request."""
        method, params = _request(asked)
        if (why := refusal(self._caller.capabilities, method, params)) is not None:
            raise _refused(f"{self._what}, for {method[:80]!r}: {why}")

        try:
            return await self._caller.ask(method, params)
        except RpcError as exc:
            if method == ELICIT:  # there is an answer for it: the person made no choice
                return {"action": "cancel"}

            raise _refused(f"{self._what}, and its client refused {method}: {exc}") from exc


def _request(asked: Any) -> tuple[str, Params]:
    """One of the server's requests, as a legacy client reads it."""
    asked = asked if isinstance(asked, dict) else {}
    params = asked.get("params")
    params = params if isinstance(params, dict) else {}
    method = str(asked.get("method", ""))
    if method == ELICIT and params.get("mode") == "url" and "elicitationId" not in params:
        params = {**params, "elicitationId": uuid.uuid4().hex}  # which only legacy clients need

    return method, params


def _named(method: str, params: Mapping[str, Any]) -> str:
    return str(params.get("name") or params.get("uri") or method)


def _needs(kind: str) -> str:
    if kind == INPUT_REQUIRED:
        return "which needs a client that can be asked"

    if kind == TASK:
        return "which needs a client that follows tasks"

    return "which is not known here"


def _refused(said: str) -> UpstreamError:
    answer = {"content": [{"type": "text", "text": said}], "isError": True}
    return UpstreamError(said, answer, is_protocol_error=False)
