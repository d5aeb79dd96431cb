"""The tool by which a model gets to see artifacts, over two requests (§12.4).

The model is told which artifacts there are and calls the tool with names; the call answers with
the names alone. The request after that, and only that one, brings the artifacts themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import anyio
from pydantic import Field

from bridge.core.artifacts import Artifacts
from bridge.core.content import Content, FunctionResponse, Part
from bridge.core.context import ToolContext
from bridge.core.instructions import append_instructions
from bridge.core.request import LLMRequest
from bridge.errors import ToolsetError
from bridge.tools.function import function_tool
from bridge.tools.preparing import preparing

MOST_WANTED: Final = 50
"""How many artifacts one call may ask for."""
MOST_TOLD: Final = 500
"""How many names a model is told; the others it can still ask for."""
AT_ONCE: Final = 8
"""How many artifacts are loaded side by side."""

_KEY: Final = "artifact_names"


async def _name(
    artifact_names: Annotated[list[str], Field(max_length=MOST_WANTED)] | None = None,
) -> dict[str, Any]:
    """Load artifacts, such as files and pictures, so that their contents can be seen next.

    Args:
        artifact_names: The names of the artifacts to load.
    """
    return {_KEY: artifact_names or []}


async def _offer(name: str, ctx: ToolContext, request: LLMRequest) -> None:
    """Tell of the artifacts, and bring those that were just asked for."""
    try:
        known = await ctx.artifacts.list()
    except Exception as exc:  # an artifact service is a stranger's code
        raise ToolsetError(f'"{name}" could not list the artifacts: {exc}') from exc

    if known:
        append_instructions(request, _instruction(name, known))

    wanted = list(dict.fromkeys(_wanted(name, request)))
    if wanted:
        request.contents += await _loaded(ctx.artifacts, wanted)


def _instruction(name: str, known: Sequence[str]) -> str:
    told = json.dumps(list(known[:MOST_TOLD]), ensure_ascii=False)
    more = f" and {len(known) - MOST_TOLD} more" if len(known) > MOST_TOLD else ""
    return (
        f"There are these artifacts:\n{told}{more}\n"
        f"You do not see what is in them. Before you say anything about one, call {name} with its "
        "name, and say nothing besides the call. What it loads is there for your next answer "
        "alone: to look again, load it again."
    )


def _wanted(name: str, request: LLMRequest) -> Iterator[str]:
    """The names in every answer of this tool that the conversation ends with, in order."""
    last = request.contents[-1].parts if request.contents else ()
    for answer in (part.function_response for part in last):
        if answer is not None and answer.name == name:
            yield from _names_in(answer)


def _names_in(answer: FunctionResponse) -> Sequence[str]:
    """The names that a call was answered with; none where it failed.

    Raises:
        ToolsetError: A hook has made something else of them.
    """
    names = (answer.response or {}).get(_KEY, ())
    if isinstance(names, list | tuple) and all(isinstance(each, str) for each in names):
        return names

    raise ToolsetError(f'"{_KEY}" in an answer of "{answer.name}" is no list of texts')


async def _loaded(artifacts: Artifacts, names: Sequence[str]) -> list[Content]:
    """One content of the user's side for each artifact, in the order of the names.

    Raises:
        ToolsetError: An artifact cannot be loaded; the first such name is told.
    """
    found: dict[str, Part] = {}
    failures: dict[str, Exception] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def load(name: str) -> None:
        async with limiter:
            try:
                found[name] = await artifacts.load(name)
            except Exception as exc:  # an artifact service is a stranger's code
                failures[name] = exc

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(load, name)

    for name in names:
        if name in failures:
            error = failures[name]
            raise ToolsetError(f'the artifact "{name}" could not be loaded: {error}') from error

    return [Content("user", (Part(text=f"Artifact {name} is:"), found[name])) for name in names]


load_artifacts = preparing(function_tool(_name, name="load_artifacts"), _offer)
