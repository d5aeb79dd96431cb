"""The resources and resource templates of all servers, read and followed where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, rpc_error
from bridge.downstream import eras
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.forwarding import able, first_page, forward, text_param
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.offering import Handler, Settle
from bridge.downstream.source import Source, declares, to_rpc_error
from bridge.downstream.uris import Place
from bridge.errors import ToolError
from bridge.upstream.protocol import RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED

LIST, TEMPLATES, READ = "resources/list", "resources/templates/list", "resources/read"
UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
UNKNOWN: Final = frozenset({eras.RESOURCE_NOT_FOUND, INVALID_PARAMS, 0})
"""The codes with which servers answer that they have no such resource; some send none at all."""

MOST_FOLLOWED: Final = 10_000


class Resources:
    """An `Offering`, and `Subscribable`."""

    def __init__(self, addresses: Addresses, stamp: Mapping[str, Any], settle: Settle) -> None:
        self.on_news: list[News] = []
        self._addresses = addresses
        self._sources: Sequence[Source] = addresses.sources
        self._stamp = dict(stamp)
        self._settle = settle
        self._lists: dict[str, list[dict[str, Any]]] = {}
        self._followed: dict[str, list[Place]] = {}
        self._relist()
        for source in self._sources:
            source.on_news.append(partial(self._heard, source))

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What is answered here."""
        return {
            LIST: self.list_resources,
            TEMPLATES: self.list_templates,
            READ: self.read_resource,
        }

    def capabilities(self) -> Mapping[str, Any]:
        """Resources, if any server has some; subscribing, if any server of these takes it.

        Changes of the list are told even where no server tells of its own: it is another, too,
        when a server comes back with something else.
        """
        if not any(map(partial(declares, capability="resources"), self._sources)):
            return {}

        more = {"subscribe": True} if self.can_follow else {}
        return {"resources": {"listChanged": True, **more}}

    @property
    def can_follow(self) -> bool:
        """Whether any server tells of changes of single resources."""
        can_follow = partial(declares, capability="resources", part="subscribe")
        return any(map(can_follow, self._sources))

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Whether a server that may have this resource may ask the client while it is read."""
        uri = params.get("uri")
        if method != READ or not isinstance(uri, str):
            return False

        return any(place.source.may_ask(asker) for place in self._addresses.find(uri))

    async def list_resources(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/list`: one page; raises as `Prompts.list_prompts`."""
        return await self._list(asker, params, LIST, "resources")

    async def list_templates(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/templates/list`: one page; raises as `Prompts.list_prompts`."""
        return await self._list(asker, params, TEMPLATES, "resourceTemplates")

    async def read_resource(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/read`: by the server that has it; where nobody says who, by the first.

        Raises:
            JsonRpcError: There is no such method here.
            RpcError: No server has it, or the one that has it refused or cannot be reached.
        """
        uri = text_param(params, READ, "uri")
        await self._settle()
        able(self._sources, READ, "resources")
        failures: list[RpcError] = []
        for place in self._addresses.find(uri):
            own = {"uri": place.uri}
            try:
                answer = await forward(place.source, asker, READ, params, own, on_progress)
            except RpcError as exc:
                failures.append(exc)
            else:
                return self._shown(asker, place.source, answer)

        raise _failure(uri, failures)

    async def subscribe(self, asker: Asker, uri: str) -> None:
        """Follow one resource for this client.

        Raises:
            JsonRpcError: There is no such method here, nobody has the resource, or its server does
                not tell of changes.
        """
        await self._settle()
        if not self.can_follow:
            raise JsonRpcError(METHOD_NOT_FOUND, 'there is no method "resources/subscribe" here')

        refusals = "no server here tells of its changes"
        if sum(map(len, self._followed.values())) >= MOST_FOLLOWED:
            raise JsonRpcError(-32000, "too many resources are followed here")

        for place in self._addresses.find(uri):
            if not declares(place.source, "resources", "subscribe"):
                continue

            try:
                await place.source.subscribe(place.uri)
            except ToolError as error:
                refusals = str(to_rpc_error(error)) or refusals
            else:
                self._followed.setdefault(uri, []).append(place)
                return

        data = {"uri": uri}
        raise JsonRpcError(eras.RESOURCE_NOT_FOUND, f'"{uri}" cannot be followed: {refusals}', data)

    async def unsubscribe(self, asker: Asker, uri: str) -> None:
        """Follow it no more."""
        places = self._followed.get(uri)
        if not places:
            return

        place = places.pop()
        if not places:
            del self._followed[uri]

        await place.source.unsubscribe(place.uri)

    async def _list(self, asker: Asker, params: Mapping[str, Any], method: str, key: str) -> Result:
        await self._settle()
        able(self._sources, method, "resources")
        first_page(params, "resources" if method == LIST else "resource templates")
        body = {key: self._lists[key]}
        return eras.for_client_list(body, modern=asker.modern, stamp=self._stamp)

    def _shown(self, asker: Asker, source: Source, answer: Result) -> Result:
        contents = answer.get("contents")
        if isinstance(contents, list):
            addressed = self._addresses.addressed
            answer = {**answer, "contents": [addressed(source, one) for one in contents]}

        if asker.modern and answer.get("resultType", "complete") == "complete":
            answer = {**UNCACHED, **answer}

        return eras.for_client(answer, modern=asker.modern, stamp=self._stamp)

    def _heard(self, source: Source, method: str, params: dict[str, Any]) -> None:
        if method == RESOURCES_CHANGED:
            self._relisted()
        elif method == RESOURCE_UPDATED and isinstance(params.get("uri"), str):
            place = Place(source, params["uri"])
            names = {uri for uri, places in self._followed.items() if place in places}
            for uri in names or {self._addresses.outward(source, place.uri)}:
                self._tell(RESOURCE_UPDATED, {**params, "uri": uri})

    def _relisted(self) -> None:
        before = self._addresses.version
        self._addresses.rebuild()
        if self._relist():
            self._tell(RESOURCES_CHANGED, {})

        if self._addresses.version != before:
            self._tell(TOOLS_CHANGED, {})  # a tool's definition may name its app's resource

    def _relist(self) -> bool:
        """Take what the servers list now; whether clients read anything else than before."""
        addresses, uris = self._addresses, self._addresses.uris
        resources = [
            addresses.addressed(source, one)
            for source in self._sources
            for one in source.listed.resources
        ]
        templates = [
            {**one, "uriTemplate": uris.outward_template(source, one["uriTemplate"])}
            for source in self._sources
            for one in source.listed.templates
        ]
        resources.sort(key=lambda one: str(one["uri"]))
        templates.sort(key=lambda one: str(one["uriTemplate"]))
        lists = {"resources": resources, "resourceTemplates": templates}
        is_other = lists != self._lists
        self._lists = lists
        return is_other

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        for tell in list(self.on_news):
            tell(method, params)


def _failure(uri: str, failures: Sequence[RpcError]) -> RpcError:
    """What the client is answered: what went wrong, if a server said more than "not here"."""
    for failure in failures:
        if failure.code not in UNKNOWN or (len(failures) == 1 and not _says_missing(failure)):
            return failure

    if len(failures) != 1:
        text = f'resource "{uri}" not found: no server here has it'
        return rpc_error(eras.RESOURCE_NOT_FOUND, text, {"uri": uri})

    error = {**failures[0].error, "code": eras.RESOURCE_NOT_FOUND}
    data = error.get("data")
    if data is None or isinstance(data, dict):
        error["data"] = {**(data or {}), "uri": uri}

    return RpcError(error)


def _says_missing(failure: RpcError) -> bool:
    """Whether this says that there is no such resource, in the words of either era."""
    data = failure.error.get("data")
    has_uri = isinstance(data, dict) and "uri" in data
    return failure.code == eras.RESOURCE_NOT_FOUND or (failure.code == INVALID_PARAMS and has_uri)
