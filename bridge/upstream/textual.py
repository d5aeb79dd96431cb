"""Which bytes are text that a model may read, by their media type (RFC 9110 §8.3, RFC 6838)."""

from __future__ import annotations

import re

TEXTUAL_TYPES = {
    "application/json",
    "application/javascript",
    "application/toml",
    "application/x-www-form-urlencoded",
    "application/xml",
    "application/x-yaml",
    "application/yaml",
}
TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
MEDIA_TYPE = re.compile(rf"\s*({TOKEN}/{TOKEN})\s*(?:;(.*))?", re.DOTALL)
PARAMETER = re.compile(rf'\s*({TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^";]*))\s*', re.DOTALL)


def decoded_text(data: bytes, media_type: str) -> str | None:
    """The bytes as text, or None where they are not text, or not surely so."""
    found = MEDIA_TYPE.fullmatch(media_type)
    if found is None or not _is_textual(found[1].lower()):
        return None

    charset = _charset(found[2] or "")
    try:
        if charset in {"", "utf-8", "utf8"}:
            return data.decode("utf-8")

        if charset in {"us-ascii", "ascii"}:
            return data.decode("ascii")
    except UnicodeDecodeError:
        return None

    return None


def _is_textual(essence: str) -> bool:
    return (
        essence.startswith("text/")
        or essence.endswith(("+json", "+xml"))
        or essence in TEXTUAL_TYPES
    )


def _charset(parameters: str) -> str | None:
    """The declared charset, "" for none, None where one may be declared but cannot be read.

    A broken parameter of another name does no harm; broken quotes could hide a charset.
    """
    if parameters.count('"') % 2 or re.search(r'[^\s=;"]"[^;]*"|"[^;\s]+"[^\s;]', parameters):
        return None

    charset = ""
    for piece in _split(parameters):
        found = PARAMETER.fullmatch(piece)
        if found is not None and found[1].lower() == "charset":
            value = found[2] if found[2] is not None else found[3]
            charset = re.sub(r"\\(.)", r"\1", value).strip().lower()
            if not re.fullmatch(TOKEN, charset):
                return None
        elif found is None and piece.strip().lower().startswith("charset"):
            return None

    return charset


def _split(parameters: str) -> list[str]:
    """The pieces between semicolons that are not inside quotes."""
    return re.findall(r'(?:[^;"]|"(?:[^"\\]|\\.)*")+', parameters)
