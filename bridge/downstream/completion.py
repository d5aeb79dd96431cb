"""`completion/complete`, answered by the server of the prompt or resource template it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.downstream import eras
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.forwarding import able, forward
from bridge.downstream.jsonrpc import InvalidParams
from bridge.downstream.offering import Handler, Settle
from bridge.downstream.prompts import Prompts
from bridge.downstream.source import Source, declares

COMPLETE = "completion/complete"
NOTHING: Result = {"completion": {"values": [], "total": 0, "hasMore": False}}


class Completion:
    """An `Offering` without lists of its own: it knows what the prompts and addresses know."""

    def __init__(
        self, addresses: Addresses, prompts: Prompts, stamp: Mapping[str, Any], settle: Settle
    ) -> None:
        self.on_news: list[News] = []
        self._addresses = addresses
        self._prompts = prompts
        self._sources: Sequence[Source] = addresses.sources
        self._stamp = dict(stamp)
        self._settle = settle

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What is answered here."""
        return {COMPLETE: self.complete}

    def capabilities(self) -> Mapping[str, Any]:
        """Completions, if any server makes some."""
        has_any = any(map(partial(declares, capability="completions"), self._sources))
        return {"completions": {}} if has_any else {}

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Nobody is asked while they type."""
        return False

    async def complete(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `completion/complete`; with nothing where the server makes no completions.

        Raises:
            JsonRpcError: There is no such method here, or no such prompt or template.
            RpcError: The server refused, or cannot be reached.
        """
        await self._settle()
        able(self._sources, COMPLETE, "completions")
        ref = params.get("ref")
        if not isinstance(ref, dict):
            raise InvalidParams(f'{COMPLETE} needs a "ref", an object')

        source, own = self._found(ref)
        answer = NOTHING
        if declares(source, "completions"):
            changed = {"ref": {**ref, **own}}
            answer = await forward(source, asker, COMPLETE, params, changed, on_progress)

        return eras.for_client(answer, modern=asker.modern, stamp=self._stamp)

    def _found(self, ref: Mapping[str, Any]) -> tuple[Source, dict[str, str]]:
        """Who completes this, and what in the reference is put in that server's words."""
        kind, name, uri = ref.get("type"), ref.get("name"), ref.get("uri")
        if kind == "ref/prompt":
            if (offered := self._prompts.find(name)) is None:
                raise InvalidParams(f'unknown prompt "{name}": prompts/list shows what is offered')

            return offered.source, {"name": offered.own_name}

        if kind != "ref/resource" or not isinstance(uri, str):
            raise InvalidParams('a "ref" is a ref/prompt with a name, or a ref/resource with a uri')

        place = self._addresses.uris.find_template(uri)
        if place is None:
            places = self._addresses.find(uri)
            if not places:
                raise InvalidParams(f'unknown resource "{uri}"')

            place = places[0]

        return place.source, {"uri": place.uri}
