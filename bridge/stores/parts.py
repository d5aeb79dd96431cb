"""Artifacts as they rest: whose they are, a line that says what they are, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bridge.core.content import Blob, Part
from bridge.core.content_json import part_from_json, part_to_json
from bridge.core.session import SessionKey
from bridge.errors import StoreError
from bridge.stores.records import LONGEST_KEY, check_key, check_text, pack, unpack

USER_PREFIX: Final = "user:"
"""Artifacts whose names begin so are the user's own, in whatever session."""

LARGEST_ARTIFACT: Final = 64 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A part in two pieces, so that its bytes or its text need no encoding."""

    header: str
    data: bytes


def pack_part(name: str, part: Part) -> PackedPart:
    """Take a part apart.

    Raises:
        StoreError: It is too large, or a call or response in it is not JSON.
    """
    data, bare = b"", part
    if part.inline_data is not None:
        data = part.inline_data.data
        bare = replace(part, inline_data=Blob(part.inline_data.mime_type, b""))
    elif part.text is not None:
        data = part.text.encode("utf-8", "surrogatepass")
        bare = replace(part, text="")

    if len(data) > LARGEST_ARTIFACT:
        raise StoreError(f'artifact "{name}" has {len(data)} bytes, over {LARGEST_ARTIFACT}')

    header = {"name": name, "part": part_to_json(bare)}
    return PackedPart(pack(header, f'artifact "{name}"'), data)


def unpack_part(packed: PackedPart) -> Part:
    """Put a part together again."""
    part = part_from_json(unpack(packed.header)["part"])
    if part.inline_data is not None:
        return replace(part, inline_data=replace(part.inline_data, data=packed.data))

    if part.text is not None:
        return replace(part, text=packed.data.decode("utf-8", "surrogatepass"))

    return part


def packed_name(header: str) -> str:
    """The name of the artifact that a header belongs to."""
    name: str = unpack(header)["name"]
    return name


def artifact_owner(key: SessionKey, name: str) -> SessionKey:
    """Under which key an artifact rests: the session's, or the user's with no session.

    Raises:
        StoreError: The key or the name is missing, too long, or no text a store can hold.
    """
    check_key(key)
    check_text(name, "artifact name", LONGEST_KEY)
    return replace(key, session_id="") if name.startswith(USER_PREFIX) else key


def artifact_owners(key: SessionKey) -> tuple[SessionKey, SessionKey]:
    """The two keys whose artifacts a session sees."""
    check_key(key)
    return key, replace(key, session_id="")
