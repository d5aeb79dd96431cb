"""What all that is served beside the tools has in common: params in, raw answers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.downstream.asker import Asker
from bridge.downstream.confirm import MULTI_ROUND
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.sealed import is_ours
from bridge.downstream.source import Source, declares, to_rpc_error
from bridge.errors import ToolError

NOT_FORWARDED = frozenset({"_meta", "task", *MULTI_ROUND})
"""What of a client's params goes to the server another way, or not at all."""


def able(sources: Sequence[Source], method: str, capability: str) -> list[Source]:
    """The servers that have this.

    Raises:
        JsonRpcError: None has, so that the method does not exist here.
    """
    found = [source for source in sources if declares(source, capability)]
    if not found:
        raise JsonRpcError(METHOD_NOT_FOUND, f'there is no method "{method}" here')

    return found


def first_page(params: Mapping[str, Any], what: str) -> None:
    """Let only the first page be asked for: it holds everything.

    Raises:
        InvalidParams: A cursor, which we never gave.
    """
    cursor = params.get("cursor")
    if cursor is not None:
        raise InvalidParams(f'unknown cursor "{cursor}": all {what} are on the first page')


def text_param(params: Mapping[str, Any], method: str, key: str) -> str:
    """A param that is a string.

    Raises:
        InvalidParams: It is none.
    """
    value = params.get(key)
    if not isinstance(value, str):
        raise InvalidParams(f'{method} needs a "{key}", a string')

    return value


async def forward(
    source: Source,
    asker: Asker,
    method: str,
    params: Mapping[str, Any],
    changed: Mapping[str, Any],
    on_progress: ProgressSink | None = None,
) -> Result:
    """Have the server answer, with some params put in its own words.

    Raises:
        RpcError: It refused, or cannot be reached.
        InvalidParams: The params cannot be sent to anybody.
    """
    kept = {key: value for key, value in params.items() if key not in NOT_FORWARDED}
    if asker.modern and not is_ours(params.get("requestState")):
        asker.brought = {key: params[key] for key in MULTI_ROUND if key in params}

    try:
        return await source.request(asker, method, {**kept, **changed}, on_progress)
    except ToolError as error:
        raise to_rpc_error(error) from error
    except ValueError as exc:  # half a character, which no JSON in UTF-8 carries
        raise InvalidParams(f"the params of {method} cannot be sent on: {exc}") from exc
