"""The contents that tools, prompts and resources hand out."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)


def _png() -> bytes:
    """One red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    chunks = b""
    for kind, body in ((b"IHDR", header), (b"IDAT", pixel), (b"IEND", b"")):
        chunks += struct.pack(">I", len(body)) + kind + body
        chunks += struct.pack(">I", zlib.crc32(kind + body))

    return b"\x89PNG\r\n\x1a\n" + chunks


def _wav() -> bytes:
    """A hundredth of a second of silence."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 80)

    return buffer.getvalue()


PNG = base64.b64encode(_png()).decode()
WAV = base64.b64encode(_wav()).decode()


def text(words: str) -> TextContent:
    """A piece of text."""
    return TextContent(text=words)


def picture() -> ImageContent:
    """A picture of one pixel."""
    return ImageContent(data=PNG, mime_type="image/png")


def sound() -> AudioContent:
    """A short silence."""
    return AudioContent(data=WAV, mime_type="audio/wav")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    """A resource inside a result."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=words))


def answer(*blocks: ContentBlock | str) -> CallToolResult:
    """A tool's result; a string is a piece of text."""
    return CallToolResult(
        content=[text(block) if isinstance(block, str) else block for block in blocks]
    )
