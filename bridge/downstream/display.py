"""A call as a person reads it before saying yes: everything visible, nothing cut in silence.

Whoever wrote the arguments may want the person to see something else. So characters that hide,
reorder or imitate are shown as the escapes JSON has for them, and what is shown of the
arguments is itself the JSON that will be sent.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

SHOWN_CHARACTERS = 4000
NAME_CHARACTERS = 200

# Letters, marks and symbols that draw nothing, beside the categories that never draw.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
UNDRAWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with every character that a screen would hide or obey written as its escape."""
    if text.isascii() and text.isprintable():
        return text

    return "".join(_escaped(char) if _is_hidden(char) else char for char in text)


def one_line(text: str) -> str:
    """A name or hint on one line, visible, shortened where it is longer than a name should be."""
    if len(text) > NAME_CHARACTERS:
        return f"{visible(text[:NAME_CHARACTERS])}… (cut, {len(text)} characters)"

    return visible(text)


def value_text(value: Any, fingerprint: str) -> str:
    """A JSON value laid out and visible. What does not fit is said to be cut, and by how much,
    beside the `fingerprint` of the whole.
    """
    shown = _json(value)
    if len(shown) <= SHOWN_CHARACTERS:
        return shown

    return (
        f"{shown[:SHOWN_CHARACTERS]}\n"
        f"CUT HERE: {SHOWN_CHARACTERS} of {len(shown)} characters are shown. "
        "Say yes only if you know the rest.\n"
        f"SHA-256 of the whole: {fingerprint}"
    )


def _json(value: Any) -> str:
    # Strings hold no raw newline in JSON, so the only ones here are the layout's own.
    laid_out = json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    return "\n".join(visible(line) for line in laid_out.split("\n"))


def _is_hidden(char: str) -> bool:
    category = unicodedata.category(char)
    if category in UNDRAWN or char in BLANKS or (category == "Zs" and char != " "):
        return True

    return any(ord(char) in selectors for selectors in SELECTORS)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if char.isascii() else json.dumps(char)[1:-1]
