"""What a process and the host of its conversations say to each other, over a Unix socket.

It is lines. One that begins with "{" is JSON: a JSON-RPC message as it is for the server, with
what the host must know beside it. `caller` is whose a request is, `for` the request that
something the server says belongs to, `direct` that it is for one client, `broken` a failure that
is no answer of the server's. `hold` names a request whose time stands still while `holds`.

Before all of that a process says which server it wants (`open`), and, for a conversation that is
one client's alone, whose (`client`, with `alone`: which of a modern client's). The host answers
with what `seat.opened` holds, or with `yourself`, where the process had better call the server
itself, or with why it `failed`; and at last with why it `closed` the conversation.

Most requests, and their results, are not read by the host, which would cost more than all else it
does: they are passed on. Such a request is a number, a space, the caller if there is one, a tab,
and the message from its `method` on, before which goes the number that it gets with the server.
Its result is its number here, a tab, and the server's line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from bridge.core.caller import Caller
from bridge.core.wire import dumps, escaped, loads
from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    Message,
    Params,
    SessionGone,
)
from bridge.upstream.protocol import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE

SHORT: Final = 512
"""Bytes of the longest description of a caller that is kept."""

UNBOUNDED: Final = sys.maxsize
"""The longest line: what goes between our own processes was bounded where it came in."""

READ_BY_HOST: Final = frozenset({SUBSCRIBE, UNSUBSCRIBE, SET_LEVEL})
"""Requests that are not passed on, for they concern all processes together."""

# As most servers write a result: its number before it, or behind it. In a text that looks like
# that the quotes are escaped, so that it does not match.
ID_FIRST: Final = re.compile(
    rb'\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"result"\s*:'
)
METHOD: Final = b'"method"'
RESULT_FIRST: Final = re.compile(rb'\{\s*"result"\s*:')
ID_LAST: Final = re.compile(rb',\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}$')
LONGEST_END: Final = 64


def passed_on(number: int, caller: Caller | None, method: str, params: Params) -> bytes:
    """The line of a request that the host need not read, with its end."""
    beside = b"" if caller is None else _written(caller)
    return b"%d %b\t%b\n" % (number, beside, dumps({"method": method, "params": params})[1:])


def taken_apart(line: bytes) -> tuple[int, Message | None, bytes]:
    """The number, the caller (if there is one) and the message of such a line, without its end.

    Raises:
        ValueError: It is none.
    """
    beside, _, request = line.partition(b"\t")
    number, _, caller = beside.partition(b" ")
    if not caller:
        return int(number), None, request

    return int(number), _read(caller) if len(caller) <= SHORT else loads(caller), request


@lru_cache(maxsize=1024)
def _read(caller: bytes) -> Message:
    """A caller: most requests are one's who made others. Nobody may change what is returned."""
    found: Message = loads(caller)
    return found


def result_number(line: bytes) -> int | None:
    """The number of the request whose result this line of a server's is.

    None if that is not plain to see: then the line must be read.
    """
    if line.find(METHOD) >= 0:  # perhaps it is no answer at all
        return None

    found = ID_FIRST.match(line)
    if found is None and RESULT_FIRST.match(line) is not None:
        found = ID_LAST.search(line, max(0, len(line) - LONGEST_END))

    return None if found is None else int(found[1])


def described(caller: Caller) -> Message:
    """What the host must know of a client."""
    return _told(caller.key, caller.modern, caller.log_level, caller.capabilities)


def _told(
    key: str, modern: bool, level: str | None, capabilities: Mapping[str, Any] | None = None
) -> Message:
    return {"key": key, "modern": modern, "capabilities": dict(capabilities or {}), "level": level}


def _written(caller: Caller) -> bytes:
    if caller.capabilities or len(caller.key) + len(caller.log_level or "") > SHORT:
        return escaped(described(caller))

    return _incapable(caller.key, caller.modern, caller.log_level)


@lru_cache(maxsize=1024)
def _incapable(key: str, modern: bool, level: str | None) -> bytes:
    """A caller who can be asked nothing, as most."""
    return escaped(_told(key, modern, level))


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
