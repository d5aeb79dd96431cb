"""What bridge asks of a model: one request in, answers out, streamed or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse


@runtime_checkable
class Model(Protocol):
    """Anything that answers a request.

    Without `stream` it yields one whole answer. With it, it may yield pieces first, marked
    `partial`; the last answer is whole again and repeats their text, so that who ignores the
    pieces loses nothing. A provider's failure is raised; what the provider itself reports as an
    error is an answer with `error_code`. A native tool that the provider lacks is refused with
    `CapabilityError` before anything is sent.
    """

    @property
    def name(self) -> str:
        """The model's name, as the provider knows it."""
        ...

    def generate(
        self, request: LLMRequest, *, stream: bool = False
    ) -> AsyncIterator[LLMResponse]: ...
