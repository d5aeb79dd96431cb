"""What one upstream has beside its tools: prompts, resources and resource templates, as listed.

Only kept upstreams have a library: whoever embeds a toolset asks for tools, and pays for no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import anyio

from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.upstream.channel import ChannelError, Params, RpcError
from bridge.upstream.connection import Connection
from bridge.upstream.failures import describe
from bridge.upstream.link import Link
from bridge.upstream.listing import LONGEST_NAME, PROMPTS, RESOURCES, TEMPLATES, Kind, list_all
from bridge.upstream.protocol import PROMPTS_CHANGED, RESOURCES_CHANGED

UNHEARD_SECONDS = 60.0
"""How long a listing holds where the server would not, or might not, be heard of changes."""

FIRST_RETRY, LONGEST_RETRY = 15.0, 600.0  # seconds after which a failed listing is tried again
DEBOUNCE_SECONDS = 0.5
LONGEST_URI = 8192

Definition = dict[str, Any]

Kinds: TypeAlias = Mapping[str, type | tuple[type, ...]]

TEXTS: Kinds = {"title": str, "description": str, "icons": list, "_meta": dict}
RESOURCE_KINDS: Kinds = {**TEXTS, "mimeType": str, "annotations": dict, "size": (int, float)}
TAKEN = {PROMPTS_CHANGED: (PROMPTS,), RESOURCES_CHANGED: (RESOURCES, TEMPLATES)}


@dataclass(frozen=True, slots=True)
class Shape:
    """What clients must find in one definition: a wrong one makes them refuse the whole list."""

    identity: str
    what: str
    kinds: Kinds


SHAPES = {
    PROMPTS: Shape("name", "prompt", {**TEXTS, "arguments": list}),
    RESOURCES: Shape("uri", "resource", RESOURCE_KINDS),
    TEMPLATES: Shape("uriTemplate", "resource template", RESOURCE_KINDS),
}


@dataclass(frozen=True, slots=True)
class Listed:
    """The last good listing of each kind, as the server wrote it, and what the server declared."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    prompts: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()


FIELDS = {PROMPTS: "prompts", RESOURCES: "resources", TEMPLATES: "templates"}


class Library:
    """One upstream's snapshot, kept true while `run` runs, in that one event loop.

    `on_change` is called after each swap of a snapshot for a different one.
    """

    def __init__(self, connection: Connection, timeout: float | None) -> None:
        self._connection = connection
        self._timeout = timeout
        self._begin()

    def _begin(self) -> None:
        self.snapshot = Listed()
        self.version = 0
        self.on_change: list[Callable[[], None]] = []
        self._problems: dict[Kind, tuple[str, ...]] = {}
        self._link: Link | None = None
        self._stale: set[Kind] = set()
        self._failures = 0
        self._woken = anyio.Event()
        self._listed = anyio.Event()

    def __getstate__(self) -> dict[str, Any]:
        """What survives a copy to another process: nothing that is alive."""
        return {"_connection": self._connection, "_timeout": self._timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew from what survived."""
        self.__dict__.update(state)
        self._begin()

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be listed, or not be offered, one line each."""
        return tuple(problem for kind in SHAPES for problem in self._problems.get(kind, ()))

    async def run(self) -> None:
        """List whatever may have changed, until cancelled."""
        self._connection.on_news.append(self._heard)
        try:
            while True:
                with anyio.move_on_after(self._holds()):
                    await self._woken.wait()

                await self._round()
                await anyio.sleep(DEBOUNCE_SECONDS)
        finally:
            self._connection.on_news.remove(self._heard)

    async def listed(self, link: Link) -> None:
        """Wait until everything was listed on this link, or could not be."""
        if self._link is not link:
            self._link = link
            self._stale = set(SHAPES)
            self._failures = 0
            self._listed = anyio.Event()
            self._woken.set()

        await self._listed.wait()

    def _heard(self, method: str, params: Params) -> None:
        kinds = TAKEN.get(method)
        if kinds is not None:
            self._stale.update(kinds)
            self._woken.set()

    def _holds(self) -> float | None:
        """How many seconds the snapshot may be trusted; None: until something is heard."""
        link = self._link
        if link is None or not link.is_open:
            return None

        if self._stale:
            return min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** (self._failures - 1))

        is_heard = link.transport != "http" or (
            link.era == "modern"
            and all(map(link.announces, {kind.capability for kind in self._declared(link)}))
        )
        return None if is_heard else UNHEARD_SECONDS

    def _declared(self, link: Link) -> list[Kind]:
        return [kind for kind in SHAPES if isinstance(link.capabilities.get(kind.capability), dict)]

    async def _round(self) -> None:
        self._woken = anyio.Event()
        link, stale, self._stale = self._link, self._stale or set(SHAPES), set()
        if link is None:
            return

        declared = self._declared(link)
        found: dict[Kind, tuple[Definition, ...]] = {}
        async with anyio.create_task_group() as tasks:
            for kind in SHAPES:
                if kind not in declared:
                    found[kind] = self._problems[kind] = ()
                elif kind in stale:
                    tasks.start_soon(self._list, link, kind, found)

        if link is self._link:
            self._failures = min(self._failures + 1, 10) if self._stale else 0
            self._swap(link, found)
            self._listed.set()

    async def _list(
        self, link: Link, kind: Kind, found: dict[Kind, tuple[Definition, ...]]
    ) -> None:
        try:
            listed = await list_all(link, kind, self._timeout)
        except (RpcError, ChannelError) as exc:
            is_absent = isinstance(exc, RpcError) and exc.code == METHOD_NOT_FOUND
            if kind is TEMPLATES and is_absent:  # which may be, and nothing is wrong with it
                found[kind] = self._problems[kind] = ()
                return

            said = self._connection.target.without_secrets(describe(exc))
            self._problems[kind] = (f"its {kind.what} could not be listed: {said}",)
            if not is_absent:
                self._stale.add(kind)
        else:
            usable, problems = _usable(kind, listed)
            found[kind], self._problems[kind] = usable, problems

    def _swap(self, link: Link, found: Mapping[Kind, tuple[Definition, ...]]) -> None:
        lists = {FIELDS[kind]: listed for kind, listed in found.items()}
        snapshot = replace(self.snapshot, capabilities=link.capabilities, **lists)
        if snapshot == self.snapshot:
            return

        self.snapshot = snapshot
        self.version += 1
        for tell in list(self.on_change):
            tell()


def _usable(kind: Kind, listed: list[Any]) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """The definitions that clients can be shown, and for each other one why it is not."""
    shape, kept, problems = SHAPES[kind], dict[str, Definition](), list[str]()
    for definition in listed:
        problem = _problem(shape, definition)
        if not problem and definition[shape.identity] in kept:
            problem = f"{shape.what} {definition[shape.identity]!r} is listed twice"

        if problem:
            problems.append(problem)
        else:
            kept[definition[shape.identity]] = definition

    return tuple(kept.values()), tuple(problems)


def _problem(shape: Shape, definition: Any) -> str:
    """Why this one cannot be shown; empty if it can."""
    if not isinstance(definition, dict):
        return f"a {shape.what} that is not an object is left out"

    named = definition.get(shape.identity)
    longest = LONGEST_NAME if shape.identity == "name" else LONGEST_URI
    if not isinstance(named, str) or not 0 < len(named) <= longest:
        return f"a {shape.what} without a usable {shape.identity} is left out: {str(named)[:80]!r}"

    if not isinstance(definition.get("name"), str):
        return f"{shape.what} {named[:200]!r} is left out: it has no name"

    for key, kind in shape.kinds.items():
        if definition.get(key) is not None and not isinstance(definition[key], kind):
            return f"{shape.what} {named[:200]!r} is left out: its {key} is not what it has to be"

    arguments = definition.get("arguments") if shape.identity == "name" else None
    if arguments and not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in arguments
    ):
        return f"{shape.what} {named[:200]!r} is left out: an argument of it has no name"

    return ""
