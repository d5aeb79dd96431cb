"""Results that are too large to send: a part is shown, the whole is kept for the client to read.

Large is what has more than so many bytes of text, of pictures and sounds, and of structured
content. Only text and structured content are cut; media go through as they are. Whatever is cut
says so where it is cut, and `_meta` says which part of the result is found where.
"""

from __future__ import annotations

from typing import Any, Final

from bridge.core.content import Result
from bridge.core.declaration import Schema
from bridge.core.tool import Tool
from bridge.downstream.asker import Asker
from bridge.downstream.cuts import Cuts
from bridge.downstream.encoding import encoded
from bridge.downstream.listing import object_schema, server_definition
from bridge.downstream.spool import Spool

LONGEST_PREVIEW: Final = 4096
PREVIEWS: Final = 16
"""A preview has at most this part of the size that is allowed."""

HOLDS: Final = ("text", "data", "blob")
"""The keys under which a block has what it holds."""

UI: Final = "ui://"


class LargeResults:
    """What is done about results of more than `most` bytes."""

    def __init__(self, spool: Spool, most: int) -> None:
        self.spool = spool
        self.most = most
        self.preview = min(LONGEST_PREVIEW, most // PREVIEWS)

    def is_small(self, answer: Result, key: str = "content") -> bool:
        """Whether the result certainly needs nothing: every result pays for this, and no more.

        `key` is where its blocks are.
        """
        room = self.most
        blocks = answer.get(key)
        if isinstance(blocks, list):
            for block in blocks:
                if isinstance(block, dict):
                    room -= _most_bytes(block)
                    inner = block.get("resource")
                    if inner is not None and isinstance(inner, dict):
                        room -= _most_bytes(inner)

        structured = answer.get("structuredContent")
        if structured is None or room < 0:
            return room >= 0

        return len(encoded(structured)) <= room

    async def call(self, asker: Asker, tool: Tool | None, answer: Result) -> Result:
        """The answer to a tool's call, as the client is sent it."""
        cuts = Cuts(self.spool, asker.key, self.preview, self._excess(answer, "content"))
        promised = None if answer.get("isError") else _promised(tool)
        name = "result" if tool is None else tool.name
        return await cuts.of_call(answer, name, promised)

    async def read(self, asker: Asker, answer: Result) -> Result:
        """The answer to `resources/read`. The page of an app stays whole: half of it is none."""
        contents = answer.get("contents")
        if not isinstance(contents, list) or any(map(_is_app, contents)):
            return answer

        cuts = Cuts(self.spool, asker.key, self.preview, self._excess(answer, "contents"))
        return await cuts.of_read(answer)

    def _excess(self, answer: Result, key: str) -> int:
        """The bytes that are too many."""
        blocks = answer.get(key)
        total = sum(map(_bytes, blocks)) if isinstance(blocks, list) else 0
        structured = answer.get("structuredContent")
        return total - self.most + (0 if structured is None else len(encoded(structured)))


def _most_bytes(block: dict[str, Any]) -> int:
    """No fewer than the bytes of what it holds, found without looking at that."""
    most = 0
    for key in HOLDS:
        value = block.get(key)
        if isinstance(value, str):
            most += len(value) if value.isascii() else 4 * len(value)

    return most


def _bytes(block: Any) -> int:
    if not isinstance(block, dict):
        return 0

    inner = block.get("resource")
    return sum(
        len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        for holder in (block, inner if isinstance(inner, dict) else {})
        for key in HOLDS
        if isinstance(value := holder.get(key), str)
    )


def _is_app(content: Any) -> bool:
    uri = content.get("uri") if isinstance(content, dict) else None
    return isinstance(uri, str) and uri.startswith(UI)


def _promised(tool: Any) -> Schema | None:
    """What a client was told of the tool's structured content; it may insist on that."""
    definition = server_definition(tool)
    if definition is not None:
        schema = definition.get("outputSchema")
        return schema if isinstance(schema, dict) else None

    declaration = None if tool is None else tool.declaration()
    return None if declaration is None else object_schema(declaration.response_json_schema)
