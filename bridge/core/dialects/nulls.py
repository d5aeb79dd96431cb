"""The nulls that stand for what is missing, taken out of a call's arguments again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.core.dialects.inline import Cut, inlined
from bridge.core.dialects.merge import rooted
from bridge.core.dialects.narrow import Choice, Narrow, items_of
from bridge.core.dialects.shape import Schema


def without_nulls(schema: Schema, args: Mapping[str, Any]) -> dict[str, Any]:
    """`args` without those nulls that only the dialect "openai-strict" made possible.

    `schema` is the tool's own. A null is taken out where the property may be missing and may not
    be null; all else stays as the model sent it.

    Raises:
        InvalidSchema: The schema is broken.
    """
    return _object(rooted(inlined(schema)), args)


def _value(node: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        found = _fitting(_choice(node), "object", value)
        return value if found is None else _object(found, value)

    if isinstance(value, list):
        found = _fitting(_choice(node), "array", {})
        return value if found is None else [_value(items_of(found), item) for item in value]

    return value


def _object(node: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    named, required = node.get("properties", {}), node.get("required", ())
    return {
        name: _value(named[name], one) if name in named else one
        for name, one in value.items()
        if one is not None or name not in named or name in required or _takes_null(named[name])
    }


def _takes_null(node: Any) -> bool:
    found = _choice(node)
    is_any = any("type" not in one and not isinstance(one, Cut) for one in found.alternatives)
    return found.is_nullable or is_any


def _fitting(choice: Choice, kind: str, value: Mapping[str, Any]) -> Schema | None:
    """The first alternative of this type that knows all the names in the value."""
    for one in choice.alternatives:
        if one.get("type") == kind and value.keys() <= one.get("properties", value).keys():
            return one

    return None


def _choice(node: Any) -> Choice:
    return Narrow().choice(True if node is None else node, "")
