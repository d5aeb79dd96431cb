"""What the odd server says, and what a test reads of it: answers, definitions, the journal."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

JSON = dict[str, Any]

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

# A definition that a typed model would not give back as it came.
ECHO: JSON = {
    "name": "echo",
    "title": "Echo",
    "description": "Return the arguments.",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"word": {"type": "string", "minLength": 1, "x-unknown": [1, None]}},
        "properties": {
            "text": {"anyOf": [{"$ref": "#/$defs/word"}, {"type": "null"}], "default": None},
            "number": {"type": "integer", "maximum": 9007199254740993},
        },
        "additionalProperties": True,
    },
    "annotations": {"readOnlyHint": True, "example.com/hint": "kept"},
    "_meta": {"example.com/team": "odd"},
    "unknownField": {"nested": [1, {"two": None}]},
}
ODD: JSON = {
    "name": "odd",
    "description": "Do the odd thing.",
    "inputSchema": {"type": "object", "properties": {"way": {"type": "string"}}},
}


def png(shade: int = 128) -> bytes:
    """One grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = (1).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    pixels = zlib.compress(bytes([0, shade]))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


FIDELITY: JSON = {
    "content": [
        {
            "type": "text",
            "text": "naïve \u2028 text",
            "annotations": {"audience": ["user"]},
            "x": 1,
        },
        {
            "type": "image",
            "data": base64.b64encode(png()).decode(),
            "mimeType": "image/png",
            "future": {"kept": [None, True, 1.5]},
        },
    ],
    "structuredContent": 0,
    "isError": True,
    "_meta": {"example.com/trace": "t-1", "example.com/big": 2**63 + 1},
    "unknownField": {"nested": [{"two": None}], "empty": {}},
}
"""What `odd` answers in the way `fidelity`; in the modern era plus `resultType` "complete"."""


def read_journal(path: Path, method: str = "") -> list[JSON]:
    """The journal's lines, oldest first; only messages of one method where it is named."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    entries: list[JSON] = [json.loads(line) for line in lines]
    return [entry for entry in entries if not method or entry.get("method") == method]


class Wire:
    """The server's side of the conversation: what it was told to do, remembers and sends."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.way: str = options.way
        self.era: str = options.era
        self.size: int | None = options.size
        self.delay: float = options.delay
        self.journal_path: Path | None = options.journal
        self.lock = threading.Lock()
        self.tools: list[JSON] = [ECHO, ODD]
        self.listening: list[Any] = []
        self.asked: dict[Any, tuple[Any, bool]] = {}
        self.cancelled: set[Any] = set()

    def write(self, data: bytes) -> None:
        """Bytes on stdout, as they are."""
        with self.lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def send(self, message: JSON) -> None:
        """One well-formed message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n")

    def answer(self, request_id: Any, result: Any, *, modern: bool) -> None:
        """A result; in the modern era it says what kind it is."""
        if modern and isinstance(result, dict):
            result = {"resultType": "complete", **result}
        self.send({"id": request_id, "result": result})

    def refuse(self, request_id: Any, code: int, message: str, data: Any = None) -> None:
        """A JSON-RPC error."""
        error = {"code": code, "message": message}
        self.send({"id": request_id, "error": error if data is None else {**error, "data": data}})

    def journal(self, entry: JSON) -> None:
        """One line in the journal, whole even where processes share it."""
        if self.journal_path is not None:
            line = json.dumps({"pid": os.getpid(), **entry}).encode() + b"\n"
            fd = os.open(self.journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, line)
            os.close(fd)
