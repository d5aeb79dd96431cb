"""Tools of a model's own provider: named in the request, run where the model runs (§12.5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.core.context import ToolContext
from bridge.core.declaration import ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.errors import ToolsetError


@dataclass(frozen=True, slots=True, eq=False)
class NativeTool:
    """One entry of `config.tools`, as the provider wants to read it; nothing of it runs here.

    Its name is taken in no table, so nobody can call it, and two of one name are both told. A
    model whose provider lacks it refuses the request with `CapabilityError`.
    """

    name: str
    description: str
    native: Mapping[str, Any]
    is_long_running: bool = False

    async def process_request(self, ctx: ToolContext, request: LLMRequest | None) -> None:
        """Append the entry.

        Raises:
            ToolsetError: There is no request.
        """
        if request is None:
            raise ToolsetError(f'there is no request that the tool "{self.name}" could enter')

        if request.config is None:
            request.config = GenerateConfig()

        request.config.tools.append(ModelTool(native=copy.deepcopy(dict(self.native))))


google_search = NativeTool(
    "google_search",
    "Google's search, used by Gemini models by themselves.",
    {"google_search": {}},
)
