"""`${VAR}` and `${VAR:-default}` in texts, filled in after a file is parsed.

What a variable holds can therefore never add a key, split an argument or name another variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from bridge.config.nodes import ListNode, MappingNode, Node, ScalarNode
from bridge.config.problems import Problems, shown

_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_NAME_AND_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-([^{]*))?")


def expanded(node: Node, environ: Mapping[str, str], problems: Problems) -> Node:
    """The same values with variables filled in, and marked as secret where one was.

    A variable that is not set, or is not written as one, goes into `problems`; its value is
    marked as broken.
    """
    if isinstance(node, MappingNode):
        entries = {key: expanded(child, environ, problems) for key, child in node.entries.items()}
        return replace(node, entries=entries)

    if isinstance(node, ListNode):
        return replace(node, items=tuple(expanded(item, environ, problems) for item in node.items))

    if isinstance(node.value, str) and "${" in node.value and not node.is_broken:
        return _expanded_scalar(node, environ, problems)

    return node


def escaped(text: str) -> str:
    """The text that expands to `text`."""
    return text.replace("${", "$${")


def _expanded_scalar(
    node: ScalarNode, environ: Mapping[str, str], problems: Problems
) -> ScalarNode:
    complaints: list[str] = []
    has_variable = False

    def fill(match: re.Match[str]) -> str:
        nonlocal has_variable
        if match[1] is None:
            return "${"

        has_variable = True
        value = _value(match, environ)
        if value is None:
            complaints.append(_complaint(match))

        return value or ""

    text = _VARIABLE.sub(fill, node.value)
    for complaint in complaints:
        problems.add(node.place, complaint)

    if complaints:
        return replace(node, is_secret=True, is_broken=True)

    return replace(node, value=text, is_secret=node.is_secret or has_variable)


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str | None:
    """What stands for one variable: as in a shell, a default also replaces an empty value."""
    parts = _NAME_AND_DEFAULT.fullmatch(match[1])
    if parts is None or not match[2]:
        return None

    name, default = parts.groups()
    value = environ.get(name)
    return default if default is not None and not value else value


def _complaint(match: re.Match[str]) -> str:
    inside, end = match.groups()
    if not end:
        return 'a "${" is never closed. Close it with "}", or write "$${" for the signs themselves.'

    if "{" in inside:
        return "a default may not hold braces or another variable. Write plain text after :-."

    if not _NAME_AND_DEFAULT.fullmatch(inside):
        beginning = re.split("[^A-Za-z0-9_]", inside)[0]
        return (
            f"{shown('${' + beginning + '…}')} is not written as a variable is. "
            'Write ${NAME} or ${NAME:-default}, or "$${" for the signs themselves.'
        )

    name = inside.partition(":")[0]
    return (
        f"the variable {shown(name)} is not set. "
        f"Set it, or give it a default: ${{{name}:-default}}."
    )
