"""What a model answered: the part of an event that comes from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.core.content import Content


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMResponse:
    """One answer, or one piece of it.

    `partial` marks a piece of text that a later answer repeats whole. The fields typed as a
    dict are the provider's own records, untouched.
    """

    content: Content | None = None
    partial: bool = False
    turn_complete: bool = False
    interrupted: bool = False
    error_code: str = ""
    error_message: str = ""
    finish_reason: str = ""
    model_version: str = ""
    usage_metadata: dict[str, Any] | None = None
    custom_metadata: dict[str, Any] | None = None
    citation_metadata: dict[str, Any] | None = None
    grounding_metadata: dict[str, Any] | None = None
    logprobs_result: dict[str, Any] | None = None
    avg_logprobs: float | None = None
    input_transcription: dict[str, Any] | None = None
    output_transcription: dict[str, Any] | None = None
    session_resumption_handle: str = ""
