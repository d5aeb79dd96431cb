"""What an upstream lists, page by page, and what of it can be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.core.confirmation import json_hash
from bridge.core.content import Result
from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.upstream.channel import Options, RpcError
from bridge.upstream.link import Link, WrongAnswer
from bridge.upstream.routing import mirrored

MOST_PAGES = 1000
MOST_LISTED = 10_000
LONGEST_NAME = 1024


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing that servers list.

    `capability` is where a server declares that it has such; `key` is where a page holds them,
    and `what` is their name for a person.
    """

    capability: str
    method: str
    key: str
    what: str


TOOLS = Kind("tools", "tools/list", "tools", "tools")
PROMPTS = Kind("prompts", "prompts/list", "prompts", "prompts")
RESOURCES = Kind("resources", "resources/list", "resources", "resources")
TEMPLATES = Kind("resources", "resources/templates/list", "resourceTemplates", "resource templates")


async def list_tools(link: Link, seconds: float | None) -> list[Any]:
    """Every page of `tools/list`, on this one link; a server without tools has none.

    Raises:
        RpcError: The server refused a page.
        ChannelError: The link was lost, or the pages do not end.
    """
    try:
        return await list_all(link, TOOLS, seconds)
    except RpcError as exc:
        # Some servers serve what they forgot to declare, so that all are asked.
        if exc.code == METHOD_NOT_FOUND and TOOLS.capability not in link.capabilities:
            return []

        raise


async def list_all(link: Link, kind: Kind, seconds: float | None) -> list[Any]:
    """Every page of one kind, on this one link; `seconds` bounds each page.

    Raises:
        RpcError: The server refused a page.
        ChannelError: The link was lost, or the pages do not end.
    """
    found: list[Any] = []
    seen: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = await link.request(kind.method, params, Options(timeout=seconds))
        found += _listed(page, kind)
        if len(found) > MOST_LISTED:
            raise WrongAnswer(f"the server lists more than {MOST_LISTED} {kind.what}")

        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return found

        if cursor in seen:
            raise WrongAnswer(f"the server repeats the list cursor {cursor[:80]!r}")

        seen.add(cursor)
        params = {"cursor": cursor}

    raise WrongAnswer(f"the server lists more than {MOST_PAGES} pages of {kind.what}")


def _listed(page: Result, kind: Kind) -> list[Any]:
    listed = page.get(kind.key)
    if not isinstance(listed, list):
        raise WrongAnswer(f"the answer to {kind.method} has no list of {kind.what}")

    return listed


def usable(definitions: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The definitions a caller can be offered, and for each other one why it is not."""
    kept: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for definition in definitions:
        problem = _problem(definition)
        if not problem and definition["name"] in kept:
            problem = f'tool "{definition["name"]}" is listed twice; the first is offered'

        if problem:
            problems.append(problem)
        else:
            kept[definition["name"]] = definition

    return list(kept.values()), problems


KINDS: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "description": str,
    "inputSchema": dict,
    "outputSchema": dict,
    "annotations": dict,
    "execution": dict,
    "icons": list,
    "_meta": dict,
}
"""What clients must find under these keys: one that reads a wrong kind refuses the whole list."""


def _fault(definition: dict[str, Any]) -> str | None:
    for key, kind in KINDS.items():
        if definition.get(key) is not None and not isinstance(definition[key], kind):
            return f"its {key} is not what it has to be"

    schema = definition.get("inputSchema")
    if schema is None:
        return None

    if schema.get("type") != "object":
        return 'its inputSchema is not of type "object"'

    if not isinstance(schema.get("properties", {}), dict):
        return "the properties of its inputSchema are not an object"

    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "the required of its inputSchema is not a list of names"

    return None


def _problem(definition: Any) -> str:
    """Why this one tool cannot be offered; empty if it can."""
    if not isinstance(definition, dict):
        return "a tool that is not an object is left out"

    name = definition.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return f"a tool without a usable name is left out: {str(name)[:80]!r}"

    if (fault := _fault(definition)) is not None:
        return f"tool {name!r} is left out: {fault}"

    try:
        json_hash(definition)
    except (ValueError, RecursionError) as exc:
        return f"tool {name!r} is left out: its definition has no canonical JSON ({exc})"

    try:
        mirrored(definition.get("inputSchema"))
    except ValueError as exc:
        return f"tool {name!r} is left out: {exc}"

    return ""
