"""`subscriptions/listen`: how a modern client hears of changes (MCP 2026-07-28, subscriptions).

The request's own response is the stream. It begins with what is granted, and ends with a result
only where the server ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio

from bridge.core.content import Result
from bridge.core.rpc import INTERNAL_ERROR
from bridge.downstream.asker import Asker
from bridge.downstream.changes import Changes
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.offering import Subscribable
from bridge.upstream.protocol import (
    ACKNOWLEDGED,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    SUBSCRIPTION_KEY,
    TOOLS_CHANGED,
)

FLAGS = {
    "toolsListChanged": TOOLS_CHANGED,
    "promptsListChanged": PROMPTS_CHANGED,
    "resourcesListChanged": RESOURCES_CHANGED,
}
MOST_STREAMS: Final = 10_000
MOST_RESOURCES: Final = 1000


class Listening:
    """The open subscriptions of one server."""

    def __init__(self, changes: Changes, resources: Subscribable | None) -> None:
        self._changes = changes
        self._resources = resources
        self._streams: set[anyio.Event] = set()

    async def listen(
        self, asker: Asker, params: Mapping[str, Any], request_id: str | int
    ) -> Result:
        """Serve one subscription until its client leaves or this server closes.

        Raises:
            JsonRpcError: The client has no stream, or too many are open.
            InvalidParams: The filter is none.
        """
        post = asker.post
        if post is None:
            raise InvalidParams("a subscription needs a stream: accept text/event-stream")

        if len(self._streams) >= MOST_STREAMS:
            raise JsonRpcError(INTERNAL_ERROR, "too many subscriptions are open here")

        honored = _honored(params.get("notifications"), has_resources=self._resources is not None)
        wanted = {FLAGS[flag] for flag in honored if flag in FLAGS}
        uris = frozenset(honored.get("resourceSubscriptions", ()))
        meta = {SUBSCRIPTION_KEY: request_id}

        def tell(method: str, news: dict[str, Any]) -> None:
            if method in wanted or (method == RESOURCE_UPDATED and news.get("uri") in uris):
                asker.tell(method, {**news, "_meta": {**news.get("_meta", {}), **meta}})

        over = anyio.Event()
        self._streams.add(over)
        followed: list[str] = []
        unfollow: Callable[[], object] | None = None
        try:
            # Whoever has read that this is granted hears of all that happens from then on.
            await self._subscribe(asker, uris, followed)
            unfollow = self._changes.follow(tell)
            asker.tell(ACKNOWLEDGED, {"notifications": honored, "_meta": meta})
            await over.wait()
        finally:
            if unfollow is not None:
                unfollow()

            self._streams.discard(over)
            with anyio.CancelScope(shield=True):
                await self._unsubscribe(asker, followed)

        return {"_meta": meta}

    def close(self) -> None:
        """End every subscription, each with its result."""
        for over in self._streams:
            over.set()

    async def _subscribe(self, asker: Asker, uris: frozenset[str], followed: list[str]) -> None:
        for uri in sorted(uris):
            if self._resources is not None:
                try:
                    await self._resources.subscribe(asker, uri)
                except JsonRpcError:
                    continue  # nobody has it: it is granted, and never fires

                followed.append(uri)

    async def _unsubscribe(self, asker: Asker, followed: list[str]) -> None:
        for uri in followed:
            if self._resources is not None:
                await self._resources.unsubscribe(asker, uri)


def _honored(asked: Any, *, has_resources: bool) -> dict[str, Any]:
    """What of a filter is granted: all of it, but for flags that are not set."""
    if not isinstance(asked, dict):
        raise InvalidParams('subscriptions/listen needs "notifications", an object')

    honored: dict[str, Any] = {flag: True for flag in FLAGS if asked.get(flag) is True}
    uris = asked.get("resourceSubscriptions")
    if uris is None or not has_resources:
        return honored

    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams('"resourceSubscriptions" is no list of URIs')

    if len(uris) > MOST_RESOURCES:
        raise InvalidParams(f"more than {MOST_RESOURCES} resources cannot be followed at once")

    return {**honored, "resourceSubscriptions": uris} if uris else honored
