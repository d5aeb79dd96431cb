"""What a process and the host of its conversations say to each other, over a Unix socket.

It is lines. One that is JSON is a JSON-RPC message as it is for the server, with what the host
must know beside it: `caller` is whose a request is, `for` the request that something the server
says belongs to, `direct` that it is for one client, `broken` a failure that is no answer of the
server's.

Most requests, and their results, are not read by the host, which would cost more than all else it
does: they are passed on. Such a request is a number, a space, the caller if there is one, a tab,
and the message from its `method` on, before which goes the number that it gets with the server.
Its result is its number here, a tab, and the server's line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from bridge.core.caller import Caller
from bridge.core.wire import dumps, loads
from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    Message,
    Params,
    SessionGone,
)
from bridge.upstream.protocol import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE

MARGIN: Final = 64 * 1024
"""How much longer a line may be than the server's message that it holds."""

READ_BY_HOST: Final = frozenset({SUBSCRIBE, UNSUBSCRIBE, SET_LEVEL})
"""Requests that are not passed on, for they concern all processes together."""

# As most servers write a result: its number before it, or behind it. What else might stand there
# inside of a text would have its quotes escaped.
ID_FIRST: Final = re.compile(
    rb'\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"result"\s*:'
)
RESULT_FIRST: Final = re.compile(rb'\{\s*"result"\s*:')
ID_LAST: Final = re.compile(rb',\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}$')
LONGEST_END: Final = 64


def passed_on(number: int, caller: Caller | None, method: str, params: Params) -> bytes:
    """The line of a request that the host need not read."""
    beside = b"" if caller is None else _described(caller)
    return b"%d %b\t%b\n" % (number, beside, dumps({"method": method, "params": params})[1:])


def taken_apart(line: bytes) -> tuple[int, Message | None, bytes]:
    """The number, the caller and the message of such a line.

    Raises:
        ValueError: It is none.
    """
    beside, _, request = line.partition(b"\t")
    number, _, caller = beside.partition(b" ")
    return int(number), _caller(caller) if caller else None, request


def _described(caller: Caller) -> bytes:
    if caller.capabilities:
        return dumps(described(caller))

    return _incapable(caller.key, caller.modern, caller.log_level)


@lru_cache(maxsize=1024)
def _incapable(key: str, modern: bool, level: str | None) -> bytes:
    """Most clients can be asked nothing."""
    return dumps({"key": key, "modern": modern, "capabilities": {}, "level": level})


@lru_cache(maxsize=1024)
def _caller(told: bytes) -> Message:
    """Most requests are one's who made others."""
    found: Message = loads(told)
    return found


def result_number(line: bytes) -> int | None:
    """The number of the request whose result this line of a server's is.

    None if that is not plain to see: then the line must be read.
    """
    found = ID_FIRST.match(line)
    if found is None and RESULT_FIRST.match(line) is not None:
        found = ID_LAST.search(line, max(0, len(line) - LONGEST_END))

    return None if found is None else int(found[1])


def described(caller: Caller) -> Message:
    """What the host must know of a client."""
    return {
        "key": caller.key,
        "modern": caller.modern,
        "capabilities": dict(caller.capabilities),
        "level": caller.log_level,
    }


def to_wire(error: ChannelError) -> Message:
    """A failure, as the host tells of it."""
    told: Message = {"kind": type(error).__name__, "text": str(error), "sent": error.sent}
    if isinstance(error, HttpStatusError):
        told |= {"status": error.status, "beginning": error.beginning}
        told["challenge"] = error.www_authenticate

    return told


def from_wire(told: Message) -> ChannelError:
    """The failure that the host told of."""
    match told["kind"]:
        case "ChannelBusy":
            return ChannelBusy(told["text"])
        case "SessionGone":
            return SessionGone(told["text"])
        case "HttpStatusError":
            beginning, challenge = told["beginning"], told["challenge"]
            return HttpStatusError(told["status"], beginning, www_authenticate=challenge)
        case _:
            return ChannelError(told["text"], sent=told["sent"])
