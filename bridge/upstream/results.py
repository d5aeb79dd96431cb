"""An MCP server's answer to `tools/call`, as a model reads it.

The exact forms of text are fixed: a model sees media described, never as raw bytes, and readable
resources in full. Who wants the answer itself has it untouched beside this.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from bridge.core.content import Result
from bridge.upstream.textual import decoded_text

Block = dict[str, Any]
Kept = Mapping[int, str]
"""The names of the artifacts that blocks are kept as, by the index of the block."""

NONE_KEPT: Final[Kept] = MappingProxyType({})


def to_response(raw: Result, kept: Kept = NONE_KEPT) -> Result:
    """`{"output": …}`: the structured value if the answer has one, else its content as text.

    Any JSON value counts as a structured value, also `{}`, `[]`, `0`, `false` and null. Beside
    it, which has no place for them, stand the names of what is kept, under "artifacts".
    """
    if "structuredContent" not in raw:
        return {"output": to_text(raw.get("content"), kept)}

    named = {"artifacts": list(dict.fromkeys(kept.values()))} if kept else {}
    return {"output": raw["structuredContent"], **named}


def error_text(raw: Result) -> str:
    """What an answer with `isError` says went wrong."""
    details = to_text(raw.get("content"))
    return f"Tool execution failed. Details: {details}" if details else "Tool execution failed."


def to_text(content: Any, kept: Kept = NONE_KEPT) -> str:
    """The content blocks in order; described blocks stand on lines of their own."""
    blocks = content if isinstance(content, list) else ()
    if len(blocks) == 1 and (only := _own_text(blocks[0])) is not None:  # as in most answers
        return only

    pieces: list[tuple[str, bool]] = []
    for index, block in enumerate(blocks):
        text, is_plain = _piece(block, kept.get(index, ""))
        if text:
            pieces.append((text, is_plain))

    written: list[str] = []
    for index, (text, is_plain) in enumerate(pieces):
        if index and not (is_plain and pieces[index - 1][1]):
            touching = pieces[index - 1][0].endswith("\n") or text.startswith("\n")
            written.append("" if touching else "\n")

        written.append(text)

    return "".join(written)


def _piece(block: Any, artifact: str) -> tuple[str, bool]:
    """A block's text, and whether it is the block's own plain text."""
    if (text := _own_text(block)) is not None:
        return text, True

    if block is None:
        return "[MCP content: unavailable]", False

    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return "[MCP text content: unavailable]", False

    if kind in {"image", "audio"}:
        return _media(kind, block, artifact), False

    if kind == "resource_link":
        return _resource_link(block), False

    if kind == "resource":
        return _embedded(block.get("resource"), artifact), False

    return "[MCP content: unsupported]", False


def _own_text(block: Any) -> str | None:
    """What a block of plain text says; None if it is none, or says nothing that is text."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return None

    text = block.get("text")
    return text if isinstance(text, str) else None


def _media(kind: str, block: Block, artifact: str) -> str:
    data = block.get("data")
    if not isinstance(data, str):
        return f"[MCP {kind}: unavailable]"

    sized = [_attribute("mimeType", block), f"size={_size(data)} bytes"]
    return _label(f"MCP {kind}", [*sized, _kept_as(artifact)])


def _resource_link(block: Block) -> str:
    names = ("uri", "mimeType", "name", "title", "description")
    size = block.get("size")
    has_size = isinstance(size, int) and not isinstance(size, bool)
    attributes = [*(_attribute(n, block) for n in names), f"size={size} bytes" if has_size else ""]
    return _label("MCP resource link", attributes)


def _embedded(resource: Any, artifact: str) -> str:
    if not isinstance(resource, dict):
        return "[MCP embedded resource: unavailable]"

    named = [_attribute("uri", resource), _attribute("mimeType", resource)]
    blob, text = resource.get("blob"), resource.get("text")
    data = _bytes(blob) if isinstance(blob, str) else b""
    sized = [*named, f"size={len(data)} bytes" if data else "", _kept_as(artifact)]
    if isinstance(text, str) and text:
        return f"{_label('MCP embedded resource', sized)}\n{text}"

    readable = decoded_text(data, str(resource.get("mimeType") or "")) if data else None
    if readable is not None:
        return f"{_label('MCP embedded resource', named)}\n{readable}"

    return _label("MCP embedded resource", sized)


def _label(what: str, attributes: list[str]) -> str:
    present = ", ".join(attribute for attribute in attributes if attribute)
    return f"[{what}: {present}]" if present else f"[{what}]"


def _kept_as(artifact: str) -> str:
    return f"artifact={json.dumps(artifact, ensure_ascii=False)}" if artifact else ""


def _attribute(name: str, block: Block) -> str:
    value = block.get(name)
    return (
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        if value and isinstance(value, str)
        else ""
    )


def _size(data: str) -> int:
    """How many bytes base64 text stands for, without decoding what may be megabytes."""
    return len(data) * 3 // 4 - data[-2:].count("=") if len(data) % 4 == 0 else len(_bytes(data))


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return b""
