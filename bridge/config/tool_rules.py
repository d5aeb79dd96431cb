"""What may be said of an upstream's tools: globs, names, descriptions, media, and who is asked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from bridge.config.fields import Text, also, bad, fits, is_flag, wrong
from bridge.config.problems import shown

MEDIA = ("text", "parts", "artifacts")

_GLOB_SIGNS = re.compile(r"[*?\[]")


def _is_glob(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise bad('this is no glob. Write a text such as "read_*".')

    return value


def _is_some(globs: tuple[str, ...]) -> tuple[str, ...]:
    if not globs:
        raise bad(
            "an empty list would offer no tool at all. "
            'Remove it to offer every tool, or write "enabled: false" to offer none.'
        )

    return globs


def _is_own_name(text: str) -> str:
    if not text or _GLOB_SIGNS.search(text):
        raise wrong("is not the name of one tool. Write the upstream's own name, without * ? [.")

    return text


def _is_description(text: str) -> str:
    if not text.strip():
        raise bad("the description is empty. Write one, or remove the key to keep the tool's own.")

    return text


def _is_media(value: Any) -> str:
    if value in MEDIA:
        return str(value)

    near = difflib.get_close_matches(value.lower(), MEDIA, 1) if isinstance(value, str) else []
    raise wrong(
        f'is no way to pass media on. Did you mean "{near[0]}"?'
        if near
        else "is no way to pass media on. Write text, parts or artifacts."
    )


def _are_apart(rename: Any) -> None:
    """Two tools of one upstream must not be given one name."""
    taken: dict[Any, str] = {}
    for own, new in rename.items() if isinstance(rename, Mapping) else ():
        if isinstance(new, str) and new in taken:
            both = f"{shown(taken[new])} and {shown(own)}"
            raise bad(f"{both} would have one new name. Choose two names.")

        taken[str(new)] = own


def is_reference(text: Any) -> bool:
    """Whether a value is written as a function is named: `module:function`."""
    module, _, attribute = text.partition(":") if isinstance(text, str) else ("", "", "")
    return all(name.isidentifier() for name in (*module.split("."), *attribute.split(".")))


def _is_function(text: Any) -> str:
    if not is_reference(text):
        raise wrong('is no function. Write "module:function", such as "my_app.tools:lookup".')

    return str(text)


def _is_confirm(value: Any) -> bool | tuple[str, ...] | str:
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) and item.strip() for item in value):
            raise bad('the list holds what is no glob. Write texts such as "write_*".')

        return tuple(value)

    return _is_asked(value)


def _is_asked(value: Any) -> bool | str:
    if isinstance(value, bool) or value in ("true", "false"):
        return is_flag(value)

    if isinstance(value, list | tuple):
        raise bad('globs choose among many tools. Write true, false or "module:function".')

    if not isinstance(value, str):
        raise wrong('is no confirmation. Write true, false or the text "module:function".')

    if ":" not in value:
        raise wrong(
            'is no provider "module:function". Write that, true or false, '
            'or put globs into a list: ["write_*"].'
        )

    return _is_function(value)


Confirm: TypeAlias = bool | tuple[str, ...] | str

ToolName = Annotated[
    Text,
    fits(
        re.compile(r"[A-Za-z0-9_-]{1,64}"),
        wrong,
        'is no name for a tool. Use 1 to 64 letters, digits, "_" or "-".',
    ),
]
Prefix = Annotated[
    Text,
    fits(
        re.compile(r"[A-Za-z0-9_-]{0,48}"),
        wrong,
        'is no prefix. Use up to 48 letters, digits, "_" or "-", or "" for none.',
    ),
]
_Glob = Annotated[Text, BeforeValidator(_is_glob)]
_OwnName = Annotated[Text, AfterValidator(_is_own_name)]

Globs = tuple[_Glob, ...]
SomeGlobs = Annotated[Globs, AfterValidator(_is_some)]
Rename = Annotated[Mapping[_OwnName, ToolName], also(_are_apart)]
Describe = Mapping[_OwnName, Annotated[Text, AfterValidator(_is_description)]]
ConfirmRule = Annotated[Confirm, BeforeValidator(_is_confirm)]
Media = Annotated[Literal["text", "parts", "artifacts"], BeforeValidator(_is_media)]
LocalConfirm = Annotated[bool | str, BeforeValidator(_is_asked)]
Function = Annotated[str, BeforeValidator(_is_function)]
