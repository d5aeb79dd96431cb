"""Asking the model once, with everything that may step in around it (§15.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from bridge.agents.callbacks import Stages, first
from bridge.agents.events import with_call_ids
from bridge.calls.streams import closing
from bridge.core.actions import EventActions
from bridge.core.context import CallbackContext, Context
from bridge.core.model import Model
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse


@dataclass(slots=True)
class Asking:
    """One question to the model.

    What the hooks around it file is collected, and goes out with the answer.
    """

    ctx: Context
    model: Model
    request: LLMRequest
    stages: Stages
    stream: bool = False
    _state_delta: dict[str, Any] = field(default_factory=dict)
    _artifact_delta: dict[str, int] = field(default_factory=dict)

    async def responses(self) -> AsyncIterator[LLMResponse]:
        """What the model answers, or what is answered in its place.

        Raises:
            Exception: What the model or a hook raises, unless a hook answers for the model.
        """
        instead = await first(
            self.stages.before_model, LLMResponse, self._hook_context(), self.request
        )
        if instead is not None:
            yield instead
            return

        async with closing(self._from_model()) as answers:
            async for answer in answers:
                named = with_call_ids(self.ctx, answer)
                changed = await first(
                    self.stages.after_model, LLMResponse, self._hook_context(), named
                )
                yield named if changed is None else changed

    def filed(self, *, partial: bool) -> EventActions:
        """What the hooks have filed so far; a piece of an answer shows it, the whole takes it."""
        actions = EventActions(dict(self._state_delta), dict(self._artifact_delta))
        if not partial:
            self._state_delta.clear()
            self._artifact_delta.clear()

        return actions

    async def _from_model(self) -> AsyncIterator[LLMResponse]:
        try:
            async with closing(self.model.generate(self.request, stream=self.stream)) as answers:
                async for answer in answers:
                    yield answer
        except Exception as exc:
            instead = await first(
                self.stages.on_model_error, LLMResponse, self._hook_context(), self.request, exc
            )
            if instead is None:
                raise

            yield instead

    def _hook_context(self) -> CallbackContext:
        return CallbackContext.over(self.ctx, self._state_delta, self._artifact_delta)
