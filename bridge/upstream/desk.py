"""What a server says and asks of its own accord: whose it is.

A server may speak while it works on a request: tell of it, or ask the client behind it. Where the
transport says which request that is, it is that one's. Elsewhere it can only be told if all that
is under way is one client's; what may be somebody else's is shown to nobody.
"""

from __future__ import annotations

from typing import Any

from anyio.abc import TaskGroup

from bridge.core.caller import Caller
from bridge.core.encodable import encodable
from bridge.core.rpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, rpc_error
from bridge.upstream.capabilities import refusal, wants
from bridge.upstream.channel import Message, Notify, Params
from bridge.upstream.protocol import (
    CANCELLED,
    ELICITATION_DONE,
    EVERYBODYS,
    LOG_MESSAGE,
    SUBSCRIPTION_KEY,
)
from bridge.upstream.questions import Clock, Questions, Reply

MOST_ELICITED = 100
"""How many questions answered elsewhere, at a URL, are remembered until they are done."""


class Desk:
    """What one channel's server says, unasked, goes over this desk to the client it belongs to.

    `callers` are the clients of the requests under way, by their numbers, the youngest last; the
    channel enters and removes them. `default` is the client of everything outside requests.
    `version` is the revision that was negotiated, None before.
    """

    def __init__(self, on_notification: Notify, default: Caller | None = None) -> None:
        self.callers: dict[int, Caller] = {}
        self.version: str | None = None
        self._on_notification = on_notification
        self._default = default
        self._questions: Questions | None = None
        self._elicited: dict[str, Caller] = {}

    def open(self, tasks: TaskGroup, reply: Reply, clock: Clock) -> None:
        """Take requests from now on; each is answered in a task of its own among `tasks`."""
        self._questions = Questions(tasks, reply, clock)

    def close(self) -> None:
        """Take no more requests: the tasks that answer them are ending."""
        self._questions = None

    def told(self, method: Any, params: Params, number: int | None = None) -> None:
        """Pass a notification on, or drop it; `number` is the request on whose stream it came."""
        if not isinstance(method, str):
            return  # whatever it is

        if method == CANCELLED and self._called_off(params):
            return

        caller, is_clear = self._whose(number)
        if method == ELICITATION_DONE:
            caller = self._elicited.pop(str(params.get("elicitationId")), caller)

        if _is_everybodys(method, params) or (caller is None and is_clear):
            self._on_notification(method, params)
        elif caller is not None and _is_for(caller, method, params):
            caller.tell(method, params)

    def asked(self, message: Message, number: int | None = None) -> Message | None:
        """Take a request of the server's; the reply if it is known at once, else it is sent later.

        `number` is the request on whose stream it came, None where the transport does not tell.
        """
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            reply["result"] = {}
        else:
            try:
                self._ask(message, number)
            except RpcError as exc:
                reply["error"] = exc.error
            else:
                return None

        answer: Message = encodable(reply)  # what it names and is named by may be anything
        return answer

    def _ask(self, message: Message, number: int | None) -> None:
        """Have the client asked whose this is.

        Raises:
            RpcError: It is nobody's, or not to be asked; it says why.
        """
        method, params = str(message["method"]), message.get("params")
        caller, is_clear = self._whose(number)
        # Since 2026 servers send no requests: they answer what they need to know.
        is_modern = self.version is not None and self.version >= "2026"
        if self._questions is None or is_modern or (caller is None and is_clear):
            raise rpc_error(METHOD_NOT_FOUND, "bridge offers no client capabilities")

        if caller is None:
            several = "calls of several clients are under way: it cannot be told whom this is for"
            raise rpc_error(INTERNAL_ERROR, several)

        if (why := refusal(caller.capabilities, method, params)) is not None:
            raise why

        params = params if isinstance(params, dict) else {}
        causes = tuple(self.callers) if number is None else (number,)
        self._questions.put(caller, message["id"], method, params, causes)
        self._remember(caller, params)

    def _whose(self, number: int | None) -> tuple[Caller | None, bool]:
        """The client that something belongs to, and whether that is clear where it is nobody."""
        if number is not None:
            return self.callers.get(number, self._default), True

        if not self.callers:
            return self._default, True

        *others, youngest = self.callers.values()
        for other in others:
            # Calls of a modern client name no session: those of one key may be two people's.
            if other.modern or youngest.modern or other.key != youngest.key:
                return None, False

        return youngest, True

    def _called_off(self, params: Params) -> bool:
        return self._questions is not None and self._questions.call_off(params.get("requestId"))

    def _remember(self, caller: Caller, params: Params) -> None:
        """Keep who was sent to a URL, to tell that client when it is done there."""
        done = params.get("elicitationId")
        if params.get("mode") == "url" and isinstance(done, str):
            self._elicited[done] = caller
            if len(self._elicited) > MOST_ELICITED:
                del self._elicited[next(iter(self._elicited))]


class Negotiated:
    """A channel that negotiates a revision, for which its desk alone has a use."""

    desk: Desk

    @property
    def protocol_version(self) -> str | None:
        """The revision that was negotiated; None before."""
        return self.desk.version

    @protocol_version.setter
    def protocol_version(self, value: str | None) -> None:
        self.desk.version = value


def _is_everybodys(method: str, params: Params) -> bool:
    meta = params.get("_meta")
    return method in EVERYBODYS or (isinstance(meta, dict) and SUBSCRIPTION_KEY in meta)


def _is_for(caller: Caller, method: str, params: Params) -> bool:
    return method != LOG_MESSAGE or wants(caller.log_level, params.get("level"))
