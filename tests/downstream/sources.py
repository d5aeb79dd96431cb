"""Servers behind us, as the tests of what is served beside the tools need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.errors import ToolError, UpstreamError, UpstreamUnavailable
from bridge.upstream.protocol import PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED

STAMP = {"name": "tests", "version": "1"}
MODERN = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": STAMP}}
ALL: Mapping[str, Any] = {
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


@dataclass(frozen=True, slots=True)
class Shelves:
    """What a server lists."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    prompts: Sequence[Mapping[str, Any]] = ()
    resources: Sequence[Mapping[str, Any]] = ()
    templates: Sequence[Mapping[str, Any]] = ()


class StandIn:
    """A server that answers from memory: with its prompts, and with what stands at its URIs."""

    def __init__(
        self,
        name: str,
        *,
        prompts: Sequence[str] = (),
        resources: Sequence[str] = (),
        templates: Sequence[str] = (),
        stands: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] = ALL,
        prefix: str | None = None,
    ) -> None:
        self.name = name
        self.prefix = f"{name}__" if prefix is None else prefix
        self.on_news: list[News] = []
        self.stands = {uri: f"{uri} of {name}" for uri in resources} | dict(stands or {})
        self.followed: Counter[str] = Counter()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.brought: list[Mapping[str, Any]] = []
        self.is_away = False
        self.can_ask = False
        self.answers: dict[str, Result] = {}
        self.listed = Shelves(
            capabilities,
            [{"name": one, "unknown": {"kept": one}} for one in prompts],
            [{"uri": one, "name": one.upper(), "unknown": 1} for one in resources],
            [{"uriTemplate": one, "name": one.upper()} for one in templates],
        )

    def relist(self, **shelves: Any) -> None:
        """List something else from now on."""
        self.listed = replace(self.listed, **shelves)
        self.tell(PROMPTS_CHANGED)
        self.tell(RESOURCES_CHANGED)

    def tell(self, method: str = RESOURCE_UPDATED, **params: Any) -> None:
        """Say that something changed."""
        for take in list(self.on_news):
            take(method, params)

    def may_ask(self, asker: Asker) -> bool:
        """Whether it asks clients."""
        return self.can_ask and bool(asker.capabilities)

    async def request(
        self,
        asker: Asker,
        method: str,
        params: dict[str, Any],
        on_progress: ProgressSink | None = None,
    ) -> Result:
        """Answer, or refuse as servers do."""
        self.asked.append((method, params))
        self.brought.append(asker.brought)
        if self.is_away:
            raise UpstreamUnavailable(f'upstream "{self.name}" is not available: away')

        if on_progress is not None:
            await on_progress(1, 2, self.name)

        if method in self.answers:
            return self.answers[method]

        if method != "resources/read":
            raise refused(-32603, "no answer is written down")

        text = self.stands.get(params["uri"])
        if text is None:
            raise refused(-32002, "Resource not found", {"uri": params["uri"]})

        return {"contents": [{"uri": params["uri"], "text": text, "unknown": 2}], "unknown": 3}

    async def subscribe(self, uri: str) -> None:
        """Count who follows a resource."""
        if uri not in self.stands:
            raise refused(-32002, "Resource not found")

        self.followed[uri] += 1

    async def unsubscribe(self, uri: str) -> None:
        """Count who does no more."""
        self.followed[uri] -= 1


def refused(code: int, message: str, data: Any = None) -> ToolError:
    """A server's JSON-RPC error, as an upstream gives it."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return UpstreamError(message, error, is_protocol_error=True)


def addressed(*servers: StandIn) -> Addresses:
    """The addresses of these servers."""
    return Addresses(list(servers))
