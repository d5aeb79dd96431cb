"""The prompts of all servers: named like tools, got from whoever has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.downstream import eras
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.forwarding import able, first_page, forward, text_param
from bridge.downstream.jsonrpc import InvalidParams
from bridge.downstream.offering import Handler, Settle
from bridge.downstream.source import Source, declares
from bridge.telemetry import log
from bridge.tools.names import offered_name
from bridge.upstream.protocol import PROMPTS_CHANGED


@dataclass(frozen=True, slots=True)
class Offered:
    """One prompt: its server, the name it has there, and its definition for clients."""

    source: Source
    own_name: str
    shown: dict[str, Any]


class Prompts:
    """An `Offering`. Where two prompts would have one name neither is offered."""

    def __init__(self, addresses: Addresses, stamp: Mapping[str, Any], settle: Settle) -> None:
        self.on_news: list[News] = []
        self.problems: tuple[str, ...] = ()
        self._addresses = addresses
        self._sources: Sequence[Source] = addresses.sources
        self._stamp = dict(stamp)
        self._settle = settle
        self._offered: dict[str, Offered] = {}
        self._relist()
        for source in self._sources:
            source.on_news.append(self._heard)

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What is answered here."""
        return {"prompts/list": self.list_prompts, "prompts/get": self.get_prompt}

    def capabilities(self) -> Mapping[str, Any]:
        """Prompts, if any server has some."""
        if any(map(partial(declares, capability="prompts"), self._sources)):
            return {"prompts": {"listChanged": True}}

        return {}

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the server of this prompt may ask the client while it makes it."""
        if method != "prompts/get":
            return False

        offered = self.find(params.get("name"))
        return offered is not None and offered.source.may_ask(asker)

    def find(self, name: object) -> Offered | None:
        """The prompt that is offered under a name."""
        return self._offered.get(name) if isinstance(name, str) else None

    async def list_prompts(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `prompts/list`: one page.

        Raises:
            JsonRpcError: There is no such method here, or a cursor came, which we never gave.
        """
        await self._settle()
        able(self._sources, "prompts/list", "prompts")
        first_page(params, "prompts")
        body = {"prompts": [one.shown for _, one in sorted(self._offered.items())]}
        return eras.for_client_list(body, modern=asker.modern, stamp=self._stamp)

    async def get_prompt(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `prompts/get`.

        Raises:
            JsonRpcError: There is no such prompt.
            RpcError: Its server refused, or cannot be reached.
        """
        name = text_param(params, "prompts/get", "name")
        if self.find(name) is None:
            await self._settle()
            able(self._sources, "prompts/get", "prompts")

        offered = self.find(name)
        if offered is None:
            raise InvalidParams(f'unknown prompt "{name}": prompts/list shows what is offered')

        own = {"name": offered.own_name}
        answer = await forward(offered.source, asker, "prompts/get", params, own, on_progress)
        answer = self._rewritten(offered.source, answer)
        return eras.for_client(answer, modern=asker.modern, stamp=self._stamp)

    def _rewritten(self, source: Source, answer: Result) -> Result:
        messages = answer.get("messages")
        if not isinstance(messages, list):
            return answer

        shown = [
            self._addresses.blocks(source, message, "content")
            if isinstance(message, dict)
            else message
            for message in messages
        ]
        return {**answer, "messages": shown}

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        if method == PROMPTS_CHANGED and self._relist():
            for tell in list(self.on_news):
                tell(PROMPTS_CHANGED, {})

    def _relist(self) -> bool:
        """Take what the servers list now; whether that is another offer than before."""
        found: dict[str, list[Offered]] = {}
        for source in self._sources:
            for definition in source.listed.prompts:
                name = offered_name(source.prefix, definition["name"])
                shown = {**definition, "name": name}
                found.setdefault(name, []).append(Offered(source, definition["name"], shown))

        problems = tuple(
            f'two prompts are named "{name}": {_origins(some)}; neither is offered: '
            "give one upstream a prefix of its own"
            for name, some in found.items()
            if len(some) > 1
        )
        for problem in problems:
            if problem not in self.problems:
                log.warning("%s", problem)

        self.problems = problems
        offered = {name: some[0] for name, some in found.items() if len(some) == 1}
        is_other = offered != self._offered
        self._offered = offered
        return is_other


def _origins(some: Sequence[Offered]) -> str:
    return " and ".join(f'"{one.own_name}" of upstream "{one.source.name}"' for one in some)
