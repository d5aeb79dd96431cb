"""The resources of all servers, and beside them the results that are kept for their clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.downstream import eras
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.cuts import PREFIX, span
from bridge.downstream.forwarding import first_page
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.large import LargeResults
from bridge.downstream.offering import Handler
from bridge.downstream.resources import LIST, READ, TEMPLATES, UNCACHED, Resources
from bridge.downstream.spool import Kept

TEMPLATE: Final = {
    "uriTemplate": f"{PREFIX}{{id}}{{?offset,length}}",
    "name": "large-result",
    "title": "A large result",
    "description": (
        "What was too large for the answer to a call: the whole, or `length` characters of it "
        "from `offset` on. It is kept for a while, for the client that made the call."
    ),
}
RANGE: Final = "bridge/range"
"""In `_meta` of what is read: offset, length and total, in characters."""

NOTE_ROOM: Final = 1024
"""Bytes of an answer that are left for what stands beside the text."""

LONGEST: Final = 1 << 32
_QUERY = re.compile(r"(?:(?:offset|length)=[0-9]{1,9})(?:&(?:offset|length)=[0-9]{1,9})?")


class KeptResources:
    """An `Offering`, and `Subscribable`, around that of the servers."""

    def __init__(
        self,
        inner: Resources,
        addresses: Addresses,
        large: LargeResults,
        stamp: Mapping[str, Any],
    ) -> None:
        self._inner = inner
        self._addresses = addresses
        self._large = large
        self._stamp = dict(stamp)

    @property
    def on_news(self) -> list[News]:
        """What is kept is in no list: only the servers have news."""
        return self._inner.on_news

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What is answered here."""
        return {
            LIST: self.list_resources,
            TEMPLATES: self.list_templates,
            READ: self.read_resource,
        }

    def capabilities(self) -> Mapping[str, Any]:
        """Resources in any case: a link to a result must lead somewhere.

        Any tool may give a large result, and a client learns only once what there is. Where no
        server has resources, nothing is promised but that they can be read: what is kept is in no
        list and never changes.
        """
        return {"resources": {}, **self._inner.capabilities()}

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the server of a resource may ask the client while it is read."""
        uri = params.get("uri")
        is_ours = isinstance(uri, str) and uri.startswith(PREFIX)
        return not is_ours and self._inner.may_ask(asker, method, params)

    async def list_resources(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/list` with what the servers have, which may be nothing."""
        return await self._list(asker, params, LIST, "resources")

    async def list_templates(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/templates/list`; results that are kept have a template, too."""
        answer = await self._list(asker, params, TEMPLATES, "resourceTemplates")
        listed = answer["resourceTemplates"]
        if any(one.get("uriTemplate") == TEMPLATE["uriTemplate"] for one in listed):
            return answer  # a server of this kind is behind us, and has the like

        return {**answer, "resourceTemplates": [*listed, TEMPLATE]}

    async def read_resource(
        self, asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None = None
    ) -> Result:
        """Answer `resources/read`: with what is kept, or as its server does, cut if it is large.

        Raises:
            JsonRpcError: The client has no such result here.
            RpcError: As `Resources.read_resource`.
        """
        uri = params.get("uri")
        if isinstance(uri, str) and uri.startswith(PREFIX):
            found = await self._kept(asker, uri)
            if found is not None:
                return found

            if self._is_ours(uri):
                raise self._unknown(uri)

        answer = await self._inner.read_resource(asker, params, on_progress)
        if self._large.is_small(answer, "contents"):
            return answer

        return await self._large.read(asker, answer)

    async def subscribe(self, asker: Asker, uri: str) -> None:
        """Follow a server's resource; see `Resources.subscribe`. What is kept never changes."""
        if self._inner.can_follow and self._is_ours(uri):
            text = f'"{uri}" cannot be followed: a large result that is kept never changes'
            raise JsonRpcError(eras.RESOURCE_NOT_FOUND, text, {"uri": uri})

        await self._inner.subscribe(asker, uri)

    async def unsubscribe(self, asker: Asker, uri: str) -> None:
        """Follow it no more."""
        await self._inner.unsubscribe(asker, uri)

    def _is_ours(self, uri: str) -> bool:
        """Whether this could only be kept here: a server of this kind may list the like."""
        return uri.startswith(PREFIX) and not self._addresses.uris.is_listed(uri)

    async def _list(self, asker: Asker, params: Mapping[str, Any], method: str, key: str) -> Result:
        listed = self._inner.methods[method]
        try:
            return await listed(asker, params, None)
        except JsonRpcError as exc:  # no server has any
            if exc.code != METHOD_NOT_FOUND:
                raise

        first_page(params, "resources")
        return eras.for_client_list({key: []}, modern=asker.modern, stamp=self._stamp)

    async def _kept(self, asker: Asker, uri: str) -> Result | None:
        name, offset, length = _parsed(uri)
        most = self._large.most - NOTE_ROOM
        wanted = LONGEST if length is None else length
        found = await self._large.spool.read(asker.key, name, offset, min(wanted, most))
        if found is None:
            return None

        kept, text = found
        if offset > kept.length:
            raise InvalidParams(f'offset {offset} is behind the end: "{uri}" has {kept.length}')

        text = _fitting(text, most)
        answer: Result = {"contents": _contents(uri, kept, text, offset, wanted)}
        if asker.modern:
            answer = {**UNCACHED, **answer}

        return eras.for_client(answer, modern=asker.modern, stamp=self._stamp)

    def _unknown(self, uri: str) -> JsonRpcError:
        """The same for what is gone, for what is another's and for what never was."""
        kept_for = span(self._large.spool.seconds)
        text = (
            f'resource "{uri}" not found: a large result is kept for {kept_for}, for the client '
            "that got it, and less long where newer ones need the room. Make the call again"
        )
        return JsonRpcError(eras.RESOURCE_NOT_FOUND, text, {"uri": uri})


def _contents(uri: str, kept: Kept, text: str, offset: int, wanted: int) -> list[dict[str, Any]]:
    """The text exactly; and where it is less than was wanted, what to read next."""
    end = offset + len(text)
    contents: list[dict[str, Any]] = [
        {
            "uri": uri,
            "mimeType": kept.media_type,
            "text": text,
            "_meta": {RANGE: {"offset": offset, "length": len(text), "total": kept.length}},
        }
    ]
    if end < min(offset + wanted, kept.length):
        following = f"{PREFIX}{kept.id}?offset={end}"
        said = (
            f"[bridge: characters {offset} to {end} of {kept.length}, which is as much as fits "
            f"into one answer. Read on with {following}]"
        )
        contents.append({"uri": following, "mimeType": "text/plain", "text": said})

    return contents


def _parsed(uri: str) -> tuple[str, int, int | None]:
    """The id, the offset and the length of what is to be read.

    Raises:
        InvalidParams: The range is written wrong.
    """
    name, mark, query = uri.removeprefix(PREFIX).partition("?")
    if mark and not _QUERY.fullmatch(query):
        raise InvalidParams(f'the range of "{uri}" is unreadable: write ?offset=0&length=65536')

    wanted = dict(one.split("=") for one in query.split("&")) if query else {}
    length = wanted.get("length")
    return name, int(wanted.get("offset", 0)), None if length is None else int(length)


def _fitting(text: str, most: int) -> str:
    """As much of the text as has at most so many bytes of UTF-8."""
    if len(text) * 4 <= most or text.isascii():
        return text[:most]

    body = text.encode("utf-8", "surrogatepass")
    if len(body) <= most:
        return text

    end = most
    while end and body[end] & 0xC0 == 0x80:
        end -= 1

    return body[:end].decode("utf-8", "surrogatepass")
