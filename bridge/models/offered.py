"""What a request offers to a model besides the conversation: tools, and what to refuse at once."""

from __future__ import annotations

from bridge.core.declaration import Declaration, Schema
from bridge.core.request import LLMRequest
from bridge.errors import CapabilityError


def declarations(request: LLMRequest, backend: str) -> list[Declaration]:
    """Every function that the model may call.

    Raises:
        CapabilityError: The request holds one of a provider's own tools, which `backend` lacks.
    """
    entries = [entry for entry in (request.config.tools if request.config else []) if entry]
    native = [f'"{name}"' for entry in entries for name in entry.native]
    if native:
        raise CapabilityError(
            f"{backend} has no tool of its own named {', '.join(native)}; take the tool off this "
            "agent, or give the agent a model that has it"
        )

    return [found for entry in entries for found in entry.function_declarations or ()]


def parameters(declaration: Declaration) -> Schema:
    """The schema of a function's arguments; one that is absent stands for an empty object.

    The schema is untouched, but that `type` and `properties` are there: some providers refuse a
    function without them, and they change nothing about which arguments fit.
    """
    return {"type": "object", "properties": {}, **(declaration.parameters_json_schema or {})}


def system_text(request: LLMRequest) -> str:
    """The system instruction as one text; empty where there is none."""
    instruction = request.config.system_instruction if request.config else None
    return "\n\n".join(part.text for part in instruction.parts if part.text) if instruction else ""
