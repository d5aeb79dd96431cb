"""What a model is told of a tool, in the dialect of JSON Schema that its provider takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal, TypeAlias, get_args

from bridge.core.declaration import Declaration
from bridge.core.dialects.gemini import to_gemini
from bridge.core.dialects.inline import inlined
from bridge.core.dialects.plain import to_anthropic, to_openai
from bridge.core.dialects.shape import Schema
from bridge.core.dialects.strict import to_strict
from bridge.errors import InvalidSchema

Dialect: TypeAlias = Literal["openai", "openai-strict", "gemini", "anthropic"]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

_WRITE: Final[dict[Dialect, Callable[[Schema], Schema]]] = {
    "openai": to_openai,
    "openai-strict": to_strict,
    "gemini": to_gemini,
    "anthropic": to_anthropic,
}

_NULL_IF_MISSING: Final[frozenset[Dialect]] = frozenset({"openai-strict"})


def to_dialect(schema: Schema, dialect: Dialect) -> Schema:
    """The schema of a tool's arguments as a provider takes it; `schema` itself is untouched.

    References are written out and nothing is fetched. What the dialect has no word for is left
    out or said otherwise; the module of each dialect says what, and where its rules stand.

    Raises:
        InvalidSchema: The schema is broken, or cannot be said in this dialect, and why.
        ValueError: There is no such dialect.
    """
    write = _WRITE.get(dialect)
    if write is None:
        raise ValueError(f'there is no dialect "{dialect}"; use one of {", ".join(DIALECTS)}')

    return write(inlined(schema))


def in_dialect(declaration: Declaration, dialect: Dialect | None) -> Declaration:
    """The declaration with its parameters as a provider takes them; itself where that is None.

    Parameters that are absent stand for an empty object. The schema of the answers is left out: no
    provider needs it, and a broken one would cost the tool. What a model sends that has read it
    goes through the declaration's `arguments`.

    Raises:
        InvalidSchema: The parameters cannot be said in this dialect; the text names the tool.
    """
    if dialect is None:
        return declaration

    own = declaration.parameters_json_schema or {"type": "object"}
    try:
        made = to_dialect(own, dialect)
    except InvalidSchema as exc:
        raise InvalidSchema(
            f'the schema of tool "{declaration.name}" cannot be used as {dialect}: {exc}'
        ) from exc

    return replace(
        declaration,
        parameters_json_schema=made,
        response_json_schema=None,
        own_parameters=own if dialect in _NULL_IF_MISSING else None,
    )
