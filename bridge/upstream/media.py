"""Pictures, sounds and files in an MCP server's answer, for a model that is to have them.

By default a model reads of them, and no more. They can be sent along with the answer's text, or
be kept as artifacts, which the text then names. The answer itself stays as it came.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from bridge.core.artifacts import Artifacts, NoArtifacts
from bridge.core.content import Blob, Part, Result
from bridge.core.content_json import bytes_from_json
from bridge.telemetry import log
from bridge.tools.names import offered_name
from bridge.upstream.results import Block
from bridge.upstream.textual import MEDIA_TYPE, decoded_text

Media: TypeAlias = Literal["text", "parts", "artifacts"]
"""What a model gets of media: a description, the description and the media, or a name."""

MOST_MEDIA: Final = 20
"""How many blobs of one answer are sent along or kept; the others are only described."""
LARGEST_SHOWN: Final = 4 * 1024 * 1024
"""Bytes of one answer's media that are sent along, since they stay in the session's history."""
UNKNOWN_TYPE: Final = "application/octet-stream"

# What is written as text, such as image/svg+xml, is no picture to any model.
_SHOWN: Final = re.compile(r"(image|audio)/[^+]+")
_SUFFIX: Final = re.compile(r"[a-z0-9]{1,12}")
_DIGEST_LENGTH: Final = 12


def shown_media(raw: Result) -> tuple[Blob, ...]:
    """The pictures and sounds of an answer, in its order; none that would be too much."""
    shown: list[Blob] = []
    left = LARGEST_SHOWN
    for _, blob in _blobs(raw):
        if _SHOWN.fullmatch(blob.mime_type) and len(blob.data) <= left:
            shown.append(blob)
            left -= len(blob.data)

    return tuple(shown[:MOST_MEDIA])


async def keep_media(raw: Result, tool_name: str, artifacts: Artifacts) -> dict[int, str]:
    """Save every blob that the answer's text only describes; gives the names, by block.

    A name is made of the tool's and of what is in the blob, so the same picture always has the
    same one. What cannot be saved is left out: the call has run, and its answer still counts.
    """
    kept: dict[int, str] = {}
    if isinstance(artifacts, NoArtifacts):
        return kept

    for index, blob in itertools.islice(_blobs(raw), MOST_MEDIA):
        name = artifact_name(tool_name, blob)
        if name not in kept.values() and not await _is_saved(artifacts, name, blob):
            continue

        kept[index] = name

    return kept


def artifact_name(tool_name: str, blob: Blob) -> str:
    """`<tool>_<digest>.<suffix>`; no tool can give it a meaning of its own, such as `user:`."""
    subtype = blob.mime_type.partition("/")[2].partition("+")[0].removeprefix("x-")
    suffix = subtype if _SUFFIX.fullmatch(subtype) else "bin"
    digest = hashlib.sha256(blob.data).hexdigest()[:_DIGEST_LENGTH]
    return f"{offered_name('', tool_name)}_{digest}.{suffix}"


async def _is_saved(artifacts: Artifacts, name: str, blob: Blob) -> bool:
    try:
        await artifacts.save(name, Part(inline_data=blob))
    except Exception:  # an artifact service is a stranger's code
        log.warning('the artifact "%s" could not be saved', name, exc_info=True)
        return False

    return True


def _blobs(raw: Result) -> Iterator[tuple[int, Blob]]:
    """What of the content is no text, with the index of its block; nothing that is broken."""
    content = raw.get("content")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        blob = _blob(block) if isinstance(block, dict) else None
        if blob is not None and blob.data:
            yield index, blob


def _blob(block: Block) -> Blob | None:
    if block.get("type") in ("image", "audio"):
        return _decoded(block.get("data"), block.get("mimeType"))

    resource = block.get("resource")
    if block.get("type") != "resource" or not isinstance(resource, dict):
        return None

    blob = _decoded(resource.get("blob"), resource.get("mimeType"))
    return None if blob is None or _is_read(resource, blob) else blob


def _is_read(resource: Block, blob: Blob) -> bool:
    """Whether the answer's text holds the blob itself."""
    if resource.get("text"):
        return False

    return decoded_text(blob.data, str(resource.get("mimeType") or "")) is not None


def _decoded(data: Any, mime_type: Any) -> Blob | None:
    """The blob, under its bare media type; None where the data is broken."""
    if not isinstance(data, str):
        return None

    try:
        content = bytes_from_json(data)
    except ValueError:
        return None

    found = MEDIA_TYPE.fullmatch(mime_type) if isinstance(mime_type, str) else None
    return Blob(UNKNOWN_TYPE if found is None else found[1].lower(), content)
