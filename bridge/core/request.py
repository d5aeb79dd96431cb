"""One question to a model, while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.core.content import Content
from bridge.core.declaration import ModelTool


@dataclass(slots=True)
class GenerateConfig:
    """How the model is to answer: its instruction, and the tools it reads of."""

    system_instruction: Content | None = None
    tools: list[ModelTool | None] = field(default_factory=list)
    response_schema: dict[str, Any] | None = None


@dataclass(slots=True)
class LLMRequest:
    """Built up by processors and tools, read once by the model.

    `tools` is where a call is looked up; `config.tools` is what the model reads. `pack_tool`
    enters a tool in both.
    """

    model: str = ""
    contents: list[Content] = field(default_factory=list)
    config: GenerateConfig | None = None
    tools: dict[str, Any] | None = None
