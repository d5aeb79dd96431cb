"""One large result: the largest of its texts are cut until the rest is small enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bridge.core.content import Result
from bridge.core.declaration import Schema
from bridge.downstream.encoding import encoded
from bridge.downstream.spool import Kept, Spool
from bridge.errors import InvalidSchema
from bridge.tools.schema import Checker

PREFIX: Final = "bridge://results/"
KEPT: Final = "bridge/kept"
"""In `_meta`: for parts of the whole result, by JSON pointer (RFC 6901), the URIs of the wholes."""

JSON: Final = "application/json"
PLAIN: Final = "text/plain"
MOST_CUT: Final = 8
"""How many texts of one result are cut one by one; if that is not enough, the rest goes as one."""

NOTE_BYTES: Final = 512
"""About what is added where something is cut; what is not much longer is left alone."""

MEDIA: Final = frozenset({"image", "audio"})


class Cuts:
    """The cuts of one result, whose owner may read what is cut; `excess` bytes are too many."""

    def __init__(self, spool: Spool, owner: str, preview: int, excess: int) -> None:
        self._spool = spool
        self._owner = owner
        self._preview = preview
        self._excess = excess
        self._kept: dict[str, Kept] = {}
        self._where: dict[str, str] = {}
        self._failed = False

    async def of_call(self, answer: Result, tool: str, promised: Schema | None) -> Result:
        """The result of a tool; `promised` is the schema of its structured content, if any."""
        content = answer.get("content")
        blocks = list(content) if isinstance(content, list) else []
        links: dict[int, Kept] = {}
        result: Result = dict(answer)
        for index in self._largest(blocks, answer.get("structuredContent")):
            if index < 0:
                await self._cut_structured(result, blocks, links, promised)
            else:
                kept = await self._cut_block(blocks, index, "content")
                links.update({} if kept is None else {index: kept})

        if self._excess > 0 and not self._failed:
            await self._bundle(blocks, links)

        result["content"] = list(_with_links(blocks, links, tool))
        return self._said(answer, result)

    async def of_read(self, answer: Result) -> Result:
        """The result of `resources/read`."""
        blocks = list(answer["contents"])
        for index in self._largest(blocks, None):
            await self._cut_block(blocks, index, "contents")

        return self._said(answer, {**answer, "contents": blocks})

    def _said(self, answer: Result, result: Result) -> Result:
        """The cut result; the whole one where nothing could be cut, or something not be kept."""
        if self._failed or not self._where:
            return answer

        meta = answer.get("_meta")
        result["_meta"] = {**(meta if isinstance(meta, dict) else {}), KEPT: self._where}
        return result

    def _largest(self, blocks: list[Any], structured: Any) -> Iterable[int]:
        """The indexes of what is worth cutting, as long as that is needed; -1: the structured."""
        sizes = [(len(_text(block)), index) for index, block in enumerate(blocks)]
        if structured is not None:
            sizes.append((len(encoded(structured)), -1))

        sizes.sort(key=lambda one: -one[0])
        for size, index in sizes[:MOST_CUT]:
            is_worth_it = self._excess > 0 and size > self._preview + NOTE_BYTES
            if self._failed or not is_worth_it:
                return

            yield index

    async def _keep(self, pointer: str, text: str, media_type: str) -> Kept | None:
        """Keep a text, once where the result says it twice."""
        kept = self._kept.get(text) or await self._spool.keep(self._owner, text, media_type)
        if kept is None:
            self._failed = True
            return None

        self._kept[text] = kept
        self._where[pointer] = PREFIX + kept.id
        return kept

    async def _cut_block(self, blocks: list[Any], index: int, key: str) -> Kept | None:
        """Cut the text of one block; where it is whole, if it is kept."""
        block, text = blocks[index], _text(blocks[index])
        is_inner = isinstance(block.get("resource"), dict)
        holder = block["resource"] if is_inner else block
        pointer = f"/{key}/{index}{'/resource' * is_inner}/text"
        kept = await self._keep(pointer, text, holder.get("mimeType") or PLAIN)
        if kept is None:
            return None

        shown = {**holder, "text": self._shortened(text, kept)}
        blocks[index] = {**block, "resource": shown} if is_inner else shown
        self._excess -= kept.size - self._preview
        return kept

    async def _cut_structured(
        self, result: Result, blocks: list[Any], links: dict[int, Kept], promised: Schema | None
    ) -> None:
        """Leave the structured content out; or shorten its texts, where it was promised.

        A client may refuse a result that breaks the promise, and a shortened list would be
        another list. So what cannot be shortened honestly stays.
        """
        structured = result["structuredContent"]
        text = encoded(structured).decode()
        if promised is not None and not self._can_shorten(structured, len(text), promised):
            return

        kept = await self._keep("/structuredContent", text, JSON)
        if kept is None:
            return

        self._excess -= kept.size
        if promised is not None:
            note = self._note_within(kept)
            result["structuredContent"] = _shorter(structured, self._preview, note)
            return

        del result["structuredContent"]
        has_text = any(_text(block) for block in blocks)
        said = f"[bridge: the structured content is left out. {self._where_to_read(kept, 0)}]"
        if not has_text:
            said = self._shortened(text, kept)

        links[len(blocks)] = kept
        blocks.append({"type": "text", "text": said})

    def _can_shorten(self, structured: Any, size: int, promised: Schema) -> bool:
        """Whether its texts are what makes it large, and may be shortened."""
        shorter = _shorter(structured, self._preview, " " * NOTE_BYTES)
        if len(encoded(shorter)) > size // 2:
            return False

        try:
            return not Checker(promised).problems(shorter)
        except InvalidSchema:
            return False

    async def _bundle(self, blocks: list[Any], links: dict[int, Kept]) -> None:
        """Take out all that is left, where many small texts make the result large."""
        left = [i for i, one in enumerate(blocks) if i not in links and not _is_media(one)]
        text = encoded({"content": [blocks[i] for i in left]}).decode()
        if len(text) <= self._preview + NOTE_BYTES:
            return

        kept = await self._keep("/content", text, JSON)
        if kept is None:
            return

        said = f"{len(left)} blocks, as JSON:\n{self._shortened(text, kept)}"
        links[left[0]] = kept
        blocks[left[0]] = {"type": "text", "text": said}
        for index in left[1:]:
            blocks[index] = None

    def _shortened(self, text: str, kept: Kept) -> str:
        shown = min(self._preview, kept.length)
        read = self._where_to_read(kept, shown)
        return (
            f"{text[:shown]}\n\n[bridge: this is cut. Characters 0 to {shown} of {kept.length} "
            f"are shown. {read}]"
        )

    def _where_to_read(self, kept: Kept, shown: int) -> str:
        uri = PREFIX + kept.id
        return (
            f"The whole, {kept.length} characters, is kept for {span(self._spool.seconds)} as the "
            f"resource {uri} ; read on with {uri}?offset={shown}&length=65536 (in characters)."
        )

    def _note_within(self, kept: Kept) -> str:
        return f"\n\n[bridge: this is cut. The whole structured content is JSON: {PREFIX}{kept.id}]"


def _with_links(blocks: list[Any], links: dict[int, Kept], tool: str) -> Iterable[Any]:
    """The blocks that are left, each that was cut with a link to the whole behind it."""
    for index, block in enumerate(blocks):
        if block is not None:
            yield block

        kept = links.get(index)
        if kept is not None:
            yield {
                "type": "resource_link",
                "uri": PREFIX + kept.id,
                "name": f"{tool}-result",
                "description": f"The whole: {kept.length} characters; ?offset=…&length=… for less",
                "mimeType": kept.media_type,
                "size": kept.size,
            }


def _text(block: Any) -> str:
    """The text of a content block, or of the resource in it; empty where it has none."""
    if not isinstance(block, dict):
        return ""

    inner = block.get("resource")
    text = (inner if isinstance(inner, dict) else block).get("text")
    return text if isinstance(text, str) else ""


def _is_media(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") in MEDIA:
        return True

    inner = block.get("resource")
    return isinstance(inner, dict) and "blob" in inner


def _shorter(value: Any, most: int, note: str) -> Any:
    """The same JSON value with its long texts cut, which each say so."""
    if isinstance(value, str):
        return value if len(value) <= most + len(note) else value[:most] + note

    if isinstance(value, dict):
        return {key: _shorter(inner, most, note) for key, inner in value.items()}

    if isinstance(value, list):
        return [_shorter(inner, most, note) for inner in value]

    return value


def span(seconds: float) -> str:
    """So many seconds, for people."""
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
