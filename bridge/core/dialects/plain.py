"""JSON Schema as it is, with what providers stumble over put right: OpenAI and Anthropic.

OpenAI reads the schema of a function that is not strict as JSON Schema, but its root has to be an
object without alternatives, and an array has to say what its items are ("Function calling" and
"Structured model outputs" in OpenAI's API guides, and what the API answers: "schema must have type
'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"). Servers after it are
fed the same.

Anthropic reads draft 2020-12 ("Define tools" and "Strict tool use" in the guides of the Claude
API); its API answers "input_schema does not support oneOf, allOf, or anyOf at the top level" and
"Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", which it asks of the root alone.
"""

from __future__ import annotations

import re
from typing import Any, Final

from bridge.core.dialects.merge import rooted, types_of
from bridge.core.dialects.shape import NAMED, Schema, mapped, refused, step

_ANTHROPIC_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAY_BE_BOOLEAN: Final = {"additionalProperties", "unevaluatedProperties", "unevaluatedItems"}


def to_openai(schema: Schema) -> Schema:
    """The schema as OpenAI takes it without `strict`; it is written out already."""
    return mapped(rooted(schema), _tidy, "")


def to_anthropic(schema: Schema) -> Schema:
    """The schema as Anthropic takes it. An optional property whose name it refuses is left out.

    Raises:
        InvalidSchema: It refuses the name of a property that is required.
    """
    made = to_openai(schema)
    kept = {}
    for name, node in made["properties"].items():
        if _ANTHROPIC_NAME.fullmatch(name):
            kept[name] = node
        elif name in made.get("required", ()):
            raise refused(
                step("", "properties", name),
                "the name is required, and Anthropic takes 1 to 64 letters, digits, and _ . - only",
            )

    return {**made, "properties": kept}


def _tidy(node: Any, path: str) -> Any:
    if isinstance(node, bool):
        *_, holder, key = path.split("/")
        if key in _MAY_BE_BOOLEAN and holder not in NAMED:
            return node

        return {} if node else {"not": {}}

    made = mapped(node, _tidy, path)
    kinds = types_of(made)
    if made.pop("nullable", False) and kinds and "null" not in kinds:
        made["type"] = [*kinds, "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]

    if "array" in kinds and "items" not in made:
        made["items"] = {}

    return made
