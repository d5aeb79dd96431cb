"""What a request offers to a model besides the conversation: tools, and what to refuse at once."""

from __future__ import annotations

from functools import lru_cache

from bridge.core.declaration import Declaration, Schema
from bridge.core.dialects.dialect import Dialect, in_dialect
from bridge.core.request import LLMRequest
from bridge.core.wire import dumps, loads
from bridge.errors import CapabilityError, InvalidSchema
from bridge.telemetry import log

MOST_REMEMBERED = 2048


def declarations(
    request: LLMRequest, backend: str, dialect: Dialect
) -> list[tuple[Declaration, Schema]]:
    """Every function that the model may call, with its parameters in this dialect.

    One whose schema cannot be used is left out and logged, because a provider refuses the whole
    request for it. The schemas are shared with later requests: do not change them.

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

    asked = [found for entry in entries for found in entry.function_declarations or ()]
    usable = ((found, _parameters(found, dialect)) for found in asked)
    return [(found, schema) for found, schema in usable if schema is not None]


def _parameters(declaration: Declaration, dialect: Dialect) -> Schema | None:
    schema = declaration.parameters_json_schema or {}
    try:
        return _written(declaration.name, dumps(schema), dialect)
    except ValueError as exc:
        log.warning('tool "%s" is left out: its schema is not JSON: %s', declaration.name, exc)
        return None


@lru_cache(MOST_REMEMBERED)
def _written(name: str, schema: bytes, dialect: Dialect) -> Schema | None:
    """The schema in a dialect, None if that has no words for it.

    Every request of a conversation has the same tools: each schema is written, and a tool that
    cannot be used is logged, once as long as it is remembered.
    """
    try:
        return in_dialect(Declaration(name, "", loads(schema)), dialect).parameters_json_schema
    except InvalidSchema as exc:
        log.warning("%s; it is left out of what the model is offered", exc)
        return None


def system_text(request: LLMRequest) -> str:
    """The system instruction as one text; empty where there is none."""
    instruction = request.config.system_instruction if request.config else None
    return "\n\n".join(part.text for part in instruction.parts if part.text) if instruction else ""
