"""Adding to what a model is told before the conversation (§4.9)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from bridge.core.content import Content, Part
from bridge.core.request import GenerateConfig, LLMRequest

PROTECTED: Final = "[PROTECTED]"
"""Stands where a text held the mark of the block that it is told in."""

_ROLE: Final = "user"


def append_instructions(request: LLMRequest, *texts: str) -> None:
    """Add paragraphs to the system instruction; empty ones add nothing."""
    told = "\n\n".join(text for text in texts if text)
    if not told:
        return

    if request.config is None:
        request.config = GenerateConfig()

    before = request.config.system_instruction
    request.config.system_instruction = (
        Content(_ROLE, (Part(text=told),)) if before is None else _continued(before, told)
    )


def without_marks(text: str, *marks: str) -> str:
    """The text with each of the marks, in whatever case, taken out, so that it ends no block."""
    return re.sub("|".join(map(re.escape, marks)), PROTECTED, text, flags=re.IGNORECASE)


def _continued(before: Content, told: str) -> Content:
    """`before` with one more paragraph: in its last part if that is text, else in a new one."""
    *parts, last = before.parts or (Part(),)
    if last.text:
        return replace(before, parts=(*parts, replace(last, text=f"{last.text}\n\n{told}")))

    return Content(before.role or _ROLE, (*before.parts, Part(text=told)))
