"""What a server tells of its own accord, as far as it is asked to: changed lists and resources.

A legacy server tells of its lists by itself, and of each resource it was asked to with
`resources/subscribe`. A modern one tells nothing but on the response of `subscriptions/listen`,
whose filter says what is wanted; another filter is another request (MCP 2026-07-28).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from bridge.core.content import Result
from bridge.telemetry import log
from bridge.upstream.channel import ChannelError, Notify, Options, Params, RpcError
from bridge.upstream.link import Link
from bridge.upstream.place import FIRST_PAUSE, LONGEST_PAUSE
from bridge.upstream.protocol import (
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    SUBSCRIBE,
    SUBSCRIPTION_KEY,
    TASK_STATUS,
    TOOLS_CHANGED,
    UNSUBSCRIBE,
)

FLAGS = {
    "toolsListChanged": ("tools", TOOLS_CHANGED),
    "promptsListChanged": ("prompts", PROMPTS_CHANGED),
    "resourcesListChanged": ("resources", RESOURCES_CHANGED),
}
"""What a filter can want, with the capability that declares it and the news that comes of it."""

NEWS = frozenset({RESOURCE_UPDATED, TASK_STATUS, *(method for _, method in FLAGS.values())})
ACKNOWLEDGED_SECONDS = 5.0
RENEWING = Options(timeout=10.0)


@dataclass(slots=True)
class _Followed:
    """One resource: by how many it is followed, and whether the server knows."""

    count: int = 0
    is_on: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class News:
    """What one connection wants to hear in one event loop, whatever link it has at the moment."""

    def __init__(
        self,
        name: str,
        link: Callable[[], Awaitable[Link]],
        request: Callable[[str, Params], Awaitable[Result]],
        tell: Notify,
    ) -> None:
        """`link` and `request` are the connection's; `tell` takes what may have been missed."""
        self._name = name
        self._connect = link
        self._request = request
        self._tell = tell
        self._link: Link | None = None
        self._followed: dict[str, _Followed] = {}
        self._changed = anyio.Event()
        self._acknowledged = anyio.Event()
        self._waiting: list[anyio.Event] = []

    async def subscribe(self, uri: str) -> None:
        """Follow one resource, once more; returns when the server knows.

        Raises:
            ToolError: The server refused, or cannot be reached.
        """
        followed = self._followed.setdefault(uri, _Followed())
        followed.count += 1
        try:
            async with followed.lock:
                if not followed.is_on:
                    await self._begin(uri)
                    followed.is_on = True
        except BaseException:
            followed.count -= 1
            if not followed.count:
                self._followed.pop(uri, None)

            raise

    async def unsubscribe(self, uri: str) -> None:
        """Follow it once less; what the server says to that does not matter."""
        followed = self._followed.get(uri)
        if followed is None:
            return

        followed.count -= 1
        async with followed.lock:
            if not followed.count and followed.is_on:
                followed.is_on = False
                await self._end(uri)

            if not followed.count:
                self._followed.pop(uri, None)
                self._wake()

    def acknowledged(self) -> None:
        """The server has begun to tell what the youngest filter wants."""
        self._acknowledged.set()

    async def attend(self, link: Link) -> None:
        """Beside an open link: have the server tell what is wanted, whenever that changes."""
        self._link = link
        if link.era == "legacy":
            await self._renew(link)
            return

        older: anyio.CancelScope | None = None
        async with anyio.create_task_group() as tasks:
            while link.is_open:
                changed = self._changed
                waiting, self._waiting = self._waiting, []
                scope = anyio.CancelScope()
                if wanted := self._filter(link):
                    self._acknowledged = anyio.Event()
                    tasks.start_soon(self._listen, link, wanted, scope)
                    with anyio.move_on_after(ACKNOWLEDGED_SECONDS):
                        await self._acknowledged.wait()

                if older is not None:
                    older.cancel()  # only now, so that nothing is missed in between

                older = scope
                for known in waiting:
                    known.set()

                await changed.wait()

    async def _begin(self, uri: str) -> None:
        link = await self._connect()
        if link.era == "legacy":
            await self._request(SUBSCRIBE, {"uri": uri})
            return

        known = anyio.Event()
        self._waiting.append(known)
        self._wake()
        with anyio.move_on_after(ACKNOWLEDGED_SECONDS):
            await known.wait()

    async def _end(self, uri: str) -> None:
        link = self._link
        if link is None or link.era != "legacy" or not link.is_open:
            return

        try:
            await link.request(UNSUBSCRIBE, {"uri": uri}, RENEWING)
        except (RpcError, ChannelError) as exc:
            log.debug('upstream "%s": a resource is still followed: %s', self._name, exc)

    async def _renew(self, link: Link) -> None:
        """A new session knows nothing of what was followed in the one before."""
        for uri, followed in list(self._followed.items()):
            if not followed.is_on:
                continue

            try:
                await link.request(SUBSCRIBE, {"uri": uri}, RENEWING)
            except (RpcError, ChannelError) as exc:
                followed.is_on = False
                log.info('upstream "%s" tells no more of a resource: %s', self._name, exc)

            self._tell(RESOURCE_UPDATED, {"uri": uri})

    def _filter(self, link: Link) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            flag: True for flag, (capability, _) in FLAGS.items() if link.announces(capability)
        }
        if self._followed:
            wanted["resourceSubscriptions"] = sorted(self._followed)

        return wanted

    async def _listen(self, link: Link, wanted: dict[str, Any], scope: anyio.CancelScope) -> None:
        pause = FIRST_PAUSE
        with scope:
            while link.is_open:
                try:
                    await link.request("subscriptions/listen", {"notifications": wanted})
                    pause = FIRST_PAUSE
                except (RpcError, ChannelError) as exc:
                    log.info('upstream "%s" ended its subscription: %s', self._name, exc)

                await anyio.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                self._missed(wanted)  # whatever changed meanwhile went unheard

    def _missed(self, wanted: dict[str, Any]) -> None:
        for flag, (_, method) in FLAGS.items():
            if flag in wanted:
                self._tell(method, {})

        for uri in wanted.get("resourceSubscriptions", ()):
            self._tell(RESOURCE_UPDATED, {"uri": uri})

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def told(params: Params) -> Params:
    """News without the mark of the subscription that it came over, which is this hop's alone."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or SUBSCRIPTION_KEY not in meta:
        return params

    rest = {key: value for key, value in meta.items() if key != SUBSCRIPTION_KEY}
    kept = {key: value for key, value in params.items() if key != "_meta"}
    return {**kept, "_meta": rest} if rest else kept
