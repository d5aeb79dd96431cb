"""What a docstring says of a function and of each parameter: Google, numpy and Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

_PARAMETERS = {"args", "arguments", "parameters", "params", "other parameters"}
_SECTIONS = _PARAMETERS | {"returns", "return", "yields", "raises", "warns"}
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX_PARAMETER = re.compile(
    r":(?:param|parameter|arg|argument|key)\s+(?:[^:]*\s)?(?P<name>\w+)\s*:\s*(?P<text>.*)"
)
_SPHINX_FIELD = re.compile(r":(?:[a-z]+)(?:\s[^:]*)?:")


@dataclass(frozen=True, slots=True)
class Docstring:
    """`description` for a model to read, without the sections that `parameters` is made from."""

    description: str
    parameters: dict[str, str]


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring; what it does not say is empty.

    Sections on parameters, results and errors are left out of the description, all others
    (examples, notes) stay.
    """
    description: list[str] = []
    parameters: dict[str, str] = {}
    lines = inspect.cleandoc(text or "").splitlines()
    while lines:
        title = lines[0].strip().lower().removesuffix(":")
        if _begins_google_section(lines):
            _, body = lines.pop(0), _take_indented(lines)
            if title in _PARAMETERS:
                parameters |= _google_entries(body)
        elif _begins_numpy_section(lines):
            body = _take_numpy_section(lines)
            if title in _PARAMETERS:
                parameters |= _numpy_entries(body)
        elif _SPHINX_FIELD.match(lines[0]):
            parameters |= _sphinx_entry(lines.pop(0), _take_indented(lines))
        else:
            description.append(lines.pop(0).rstrip())

    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(description))
    return Docstring(joined.strip(), parameters)


def _begins_google_section(lines: list[str]) -> bool:
    title = lines[0].strip().lower()
    return title.endswith(":") and title[:-1] in _SECTIONS and not lines[0].startswith(" ")


def _begins_numpy_section(lines: list[str]) -> bool:
    return lines[0].strip().lower() in _SECTIONS and _is_underlined(lines)


def _is_underlined(lines: list[str]) -> bool:
    return len(lines) > 1 and re.fullmatch(r"-{3,}\s*", lines[1]) is not None


def _take_indented(lines: list[str]) -> list[str]:
    """Take the lines off the front that are indented or empty."""
    taken: list[str] = []
    while lines and (not lines[0].strip() or lines[0].startswith((" ", "\t"))):
        taken.append(lines.pop(0))

    return taken


def _take_numpy_section(lines: list[str]) -> list[str]:
    """Take a title, its underline, and everything up to the next underlined title."""
    del lines[:2]
    taken: list[str] = []
    while lines and not _is_underlined(lines):
        taken.append(lines.pop(0))

    return taken


def _google_entries(body: list[str]) -> dict[str, str]:
    """`name (type): text`, where deeper lines continue the text."""
    return {
        found["name"]: _joined([found["text"], *rest])
        for head, rest in _grouped(inspect.cleandoc("\n" + "\n".join(body)).splitlines())
        if (found := _GOOGLE_ENTRY.fullmatch(head))
    }


def _numpy_entries(body: list[str]) -> dict[str, str]:
    """`name, name : type`, and the text of it below, indented."""
    return {
        name.strip(" *"): _joined(rest)
        for head, rest in _grouped(body)
        if (found := _NUMPY_ENTRY.fullmatch(head))
        for name in found["names"].split(",")
    }


def _sphinx_entry(head: str, rest: list[str]) -> dict[str, str]:
    """`:param type name: text`; any other field says nothing of a parameter."""
    found = _SPHINX_PARAMETER.fullmatch(head)
    return {found["name"]: _joined([found["text"], *rest])} if found else {}


def _grouped(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each line that is not indented, with the indented lines below it."""
    rest = [line for line in lines if line.strip()]
    while rest:
        head = rest.pop(0)
        yield head.rstrip(), _take_indented(rest)


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
