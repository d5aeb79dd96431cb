"""Type hints as a tool reads them: stripped to what is meant, and fit for pydantic."""

from __future__ import annotations

import collections.abc
import dataclasses
import operator
import sys
import types
import typing
from typing import Annotated, Any, NotRequired, Required, Union

from pydantic import BaseModel, RootModel
from typing_extensions import TypedDict

_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_PLAIN = (str, int, float, bool, list, tuple)
_PYDANTIC_READS_TYPED_DICTS = sys.version_info >= (3, 12)


def bare(hint: Any) -> Any:
    """The hint without metadata and without "or None"."""
    if typing.get_origin(hint) is Annotated:
        return bare(typing.get_args(hint)[0])

    if typing.get_origin(hint) in (Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        if len(members) == 1:
            return bare(members[0])

    return hint


def members(hint: Any) -> list[Any]:
    """The types that a hint allows, without metadata: those of a union, or the one it is."""
    if typing.get_origin(hint) is Annotated:
        return members(typing.get_args(hint)[0])

    if typing.get_origin(hint) in (Union, types.UnionType):
        return [inner for member in typing.get_args(hint) for inner in members(member)]

    return [hint]


def is_plain(hint: Any) -> bool:
    """Whether its values are JSON: texts, numbers, truth values, lists or objects of its own."""
    return (typing.get_origin(hint) or hint) in _PLAIN or is_object_type(hint)


def is_object_type(hint: Any) -> bool:
    """Whether its values are JSON objects: a model, dataclass, TypedDict or string-keyed dict."""
    origin = typing.get_origin(hint) or hint
    if origin in _MAPPINGS:
        keys = typing.get_args(hint)[:1]
        return keys in ((), (str,), (Any,))

    if not isinstance(origin, type):
        return False

    if issubclass(origin, BaseModel):
        return not issubclass(origin, RootModel)

    return dataclasses.is_dataclass(origin) or _is_typed_dict(origin)


def annotated(hint: Any, *metadata: Any) -> Any:
    """`Annotated[hint, …]`, whose own metadata stay last, because there the last one wins."""
    if typing.get_origin(hint) is Annotated:
        hint, *own = typing.get_args(hint)
        metadata = (*metadata, *own)

    return operator.getitem(Annotated, (hint, *metadata))


def readable(hint: Any, inside: tuple[Any, ...] = ()) -> Any:
    """The hint with every `typing.TypedDict` made anew where pydantic cannot read it.

    Before Python 3.12, pydantic reads those of `typing_extensions` only.
    """
    if _PYDANTIC_READS_TYPED_DICTS or any(hint is old for old in inside):
        return hint

    if _is_typed_dict(hint) and type(hint).__module__ == "typing":
        return _renewed(hint, (*inside, hint))

    own = typing.get_args(hint)
    made = tuple(readable(arg, inside) for arg in own)
    if all(new is old for new, old in zip(made, own, strict=True)):
        return hint

    origin = typing.get_origin(hint)
    return operator.getitem(Union if origin is types.UnionType else origin, made)


def _renewed(old: Any, inside: tuple[Any, ...]) -> Any:
    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(old, include_extras=True).items():
        made = readable(hint, inside)
        if typing.get_origin(hint) not in (Required, NotRequired):
            presence: Any = Required if name in old.__required_keys__ else NotRequired
            made = operator.getitem(presence, made)

        fields[name] = made

    return types.new_class(
        old.__name__, (TypedDict,), exec_body=lambda space: space.update(__annotations__=fields)
    )


def _is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")
