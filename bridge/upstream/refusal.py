"""What an HTTP response that is no MCP answer means: told by status and code, never by text."""

from __future__ import annotations

from typing import Any

import httpx2

from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.core.wire import loads
from bridge.upstream.bounded import media_type, read_beginning
from bridge.upstream.channel import ChannelError, HttpStatusError, RpcError, SessionGone
from bridge.upstream.client import Response
from bridge.upstream.wording import excerpt, place

REFUSAL_BYTES = 1024 * 1024
REDIRECTS = {301, 302, 303, 307, 308}
SESSION_UNKNOWN = {-32600, -32001}  # the codes that servers use for it, beside status 400


async def refusal(response: Response, *, in_session: bool) -> RpcError | ChannelError:
    """The error that a response is; `in_session` if its request carried a session id."""
    status = response.status
    if status in REDIRECTS and (target := response.header("location")):
        target = _place_of(target, response.url)
        return HttpStatusError(status, f"a redirect to {target}, which bridge does not follow")

    body = await read_beginning(response, REFUSAL_BYTES)
    error = _rpc_error(body)
    code = error.get("code") if error is not None else None
    if in_session and _means_session_gone(status, code):
        return SessionGone(f"the server does not know the session (HTTP status {status})")

    # Who must authenticate, and where, is said in the headers, whatever the body says.
    challenge = response.header("www-authenticate")
    if error is not None and status != 401 and not challenge:
        return RpcError(error)

    shown = excerpt(body)
    if response.is_success:
        shown = f"no MCP answer but content type {excerpt(media_type(response))!r}, {shown}"

    return HttpStatusError(status, shown, www_authenticate=challenge)


def is_final(exc: RpcError | ChannelError) -> bool:
    """Whether asking the same again would be refused again."""
    if isinstance(exc, HttpStatusError):
        return exc.status < 500 and exc.status != 429

    return isinstance(exc, RpcError | SessionGone)


def _means_session_gone(status: int, code: object) -> bool:
    if status == 404:
        return code != METHOD_NOT_FOUND

    return status == 400 and code in SESSION_UNKNOWN


def _place_of(location: str, base: httpx2.URL) -> str:
    try:
        return place(base.join(location))
    except httpx2.InvalidURL:
        return "what is no URL"


def _rpc_error(body: bytes) -> dict[str, Any] | None:
    try:
        message = loads(body)
    except ValueError:
        return None

    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None

    error = message.get("error")
    return error if isinstance(error, dict) else None
