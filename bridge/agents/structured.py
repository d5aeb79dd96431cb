"""Answers in the form of a schema, for agents that also have tools (§20)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bridge.agents.events import MODEL, own_event, text_content
from bridge.calls.call import Outcome
from bridge.core.content import Args, Result
from bridge.core.context import Context, ToolContext
from bridge.core.declaration import Declaration, Schema
from bridge.core.event import Event
from bridge.core.instructions import append_instructions
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import ConfigError, InvalidArguments, InvalidSchema
from bridge.tools.problems import describe
from bridge.tools.schema import Checker

SET_MODEL_RESPONSE: Final = "set_model_response"

_INSTRUCTION = (
    f"Give your final answer by calling {SET_MODEL_RESPONSE}, in the form that it asks for, and "
    "not as text. Use your other tools first, as far as you need them."
)


@dataclass(frozen=True, slots=True)
class SetModelResponse:
    """The tool by which a model that has other tools, too, gives a structured answer."""

    schema: Schema
    name: str = SET_MODEL_RESPONSE
    description: str = "Give the final answer, in the form that is asked for. Call it last."
    is_long_running: bool = False

    def declaration(self) -> Declaration:
        """The answer's schema is the schema of the arguments."""
        return Declaration(self.name, self.description, self.schema)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Take the arguments for the answer.

        Raises:
            InvalidArguments: They do not fit the schema.
        """
        problems = Checker(self.schema).problems(args)
        if problems:
            raise InvalidArguments(f"the answer does not fit its schema: {describe(problems)}")

        return dict(args)


def offer_structured_answer(request: LLMRequest, schema: Schema) -> None:
    """Give the model the tool for its final answer.

    Raises:
        DuplicateTool: Another tool has that name.
    """
    pack_tool(request, SetModelResponse(schema))
    append_instructions(request, _INSTRUCTION)


def structured_event(ctx: Context, outcomes: Sequence[Outcome]) -> Event | None:
    """The final answer that one of the calls gave, as text; None where none did."""
    for outcome in outcomes:
        if isinstance(outcome.tool, SetModelResponse) and outcome.error is None:
            text = json.dumps(outcome.response, ensure_ascii=False)
            return own_event(ctx, content=text_content(text, MODEL))

    return None


def schema_of(given: Any, what: str) -> Schema | None:
    """A JSON Schema: given as it is, or by a class that can tell its own, as pydantic models do.

    Raises:
        ConfigError: It is neither, or it is broken; `what` names it.
    """
    if given is None:
        return None

    tell = getattr(given, "model_json_schema", None)
    schema = given if tell is None else tell()
    try:
        return Checker(schema).schema
    except InvalidSchema as exc:
        raise ConfigError(f"{what} is no JSON Schema and no pydantic model: {exc}") from exc
