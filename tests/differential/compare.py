"""Asking servers directly and through bridge, and saying where the answers differ."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests import nursery
from tests.differential import rewrites
from tests.differential.addressing import Addressing, Member, View
from tests.differential.requests import PLACE, REFUSED, Request, replaced
from tests.differential.servers import ROOT, Server, settings
from tests.differential.talk import ERAS, LISTS, Era, Talk
from tests.differential.wire import Command, Message, Transport, Url, Where, connected
from tests.processes import started, unused_port

RUN = "{run}"
SOON = 10.0  # seconds in which a change that a server tells of has to be listed
STEP = 0.1
CLAIMING = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}


@dataclass(frozen=True, slots=True)
class Told:
    """All that a server said in one conversation: its greeting, its lists, its answers."""

    greeting: Message
    lists: Mapping[str, Message]
    answers: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer that is not what it has to be."""

    what: str
    expected: Any
    actual: Any

    def lines(self) -> list[str]:
        """Where the two part, a line each."""
        return [f"{self.what}: {line}" for line in parted(self.expected, self.actual)]


@dataclass(slots=True)
class Pair:
    """One cell of the table: who was asked, over which transport, in which eras."""

    server: str
    upstream: str
    transport: Transport
    client: Era
    compared: int = 0
    differences: list[Difference] = field(default_factory=list)

    def compare(self, what: str, expected: Any, actual: Any) -> None:
        """Hold what came against what had to come."""
        self.compared += 1
        if canonical(expected) != canonical(_unworded(expected, actual)):
            self.differences.append(Difference(what, expected, actual))


def _unworded(expected: Any, actual: Any) -> Any:
    """An answer with what bridge may word as it likes, or choose among, as it is expected."""
    error, came = expected.get("error"), actual.get("error")
    if not error or not came or error["message"] != rewrites.OWN:
        return actual

    is_one_of_them = came.get("code") in error["code"]
    code = error["code"] if is_one_of_them else came.get("code")
    return {**actual, "error": {**came, "message": rewrites.OWN, "code": code}}


def canonical(value: Any) -> str:
    """A JSON value as text, in which 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True)


def parted(expected: Any, actual: Any, path: str = "") -> Iterable[str]:
    """Where two JSON values differ, and how."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            here = f"{path}.{key}"
            if key not in actual:
                yield f"{here} is lost: {_short(expected[key])}"
            elif key not in expected:
                yield f"{here} is new: {_short(actual[key])}"
            else:
                yield from parted(expected[key], actual[key], here)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from parted(one, other, f"{path}[{index}]")
    elif canonical(expected) != canonical(actual):
        yield f"{path} is {_short(actual)}, not {_short(expected)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) < 300 else f"{text[:300]}…"


async def direct(server: Server, place: Path, *, anew: bool) -> list[Told]:
    """What the server says by itself, asked once for each era that clients of bridge have.

    `anew` begins a conversation for each, as a bridge does that is started for each client.
    """
    async with server.at(place) as where:
        if anew:
            return [(await _conversed(where, server, place, [run]))[0] for run in ERAS]

        return await _conversed(where, server, place, ERAS)


async def _conversed(where: Where, server: Server, place: Path, runs: Sequence[str]) -> list[Told]:
    async with connected(where) as wire:
        talk = Talk(wire, server.era)
        greeting = await talk.begin()
        return [await _told(talk, server, place, run, greeting) for run in runs]


async def _told(talk: Talk, server: Server, place: Path, run: str, greeting: Message) -> Told:
    lists = {method: await talk.whole_list(method) for method in LISTS}
    answers = []
    for request in (*server.requests, *REFUSED):
        asked = _filled(request, place, run)
        answers.append(_settled(server, request, place, await talk.ask(asked.method, asked.params)))

    return Told(greeting, _bare(lists, place), answers)


def _filled(request: Request, place: Path, run: str) -> Request:
    def fill(text: str) -> str:
        return text.replace(PLACE, str(place)).replace(RUN, run)

    return Request(request.method, replaced(dict(request.params), fill), request.ours)


def _bare(value: Any, place: Path) -> Any:
    return replaced(value, lambda text: text.replace(str(place), PLACE))


def _settled(server: Server, request: Request, place: Path, reply: Message) -> Message:
    """An answer without what differs from run to run."""
    settled = _bare(reply, place)
    for varying in server.varies:
        settled = varying.settled(request, settled)

    return settled


@asynccontextmanager
async def bridged(
    members: Mapping[Member, Where], place: Path, transport: Transport
) -> AsyncIterator[Where]:
    """`bridge serve` in front of these upstreams: how to start it, or where it listens."""
    config = _configured(members, place)
    argv = nursery.server("-m", "bridge", "serve", str(config), "--transport", transport)
    if transport == "stdio":
        yield Command(tuple(argv), cwd=ROOT)
        return

    port = unused_port()
    async with started([*argv, "--port", str(port)], port=port, cwd=ROOT):
        yield Url(f"http://127.0.0.1:{port}{'/mcp' if transport == 'http' else '/sse'}", transport)


def _configured(members: Mapping[Member, Where], place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    upstreams = {
        member.name: {**settings(where), "prefix": member.prefix}
        for member, where in members.items()
    }
    serve = {"name": rewrites.STAMP["name"], "startup_wait": "60s"}
    config = place / "bridge.yaml"
    config.write_text(json.dumps({"upstreams": upstreams, "serve": serve}), "utf-8")  # is YAML
    return config


async def compared(
    members: Mapping[Member, Server],
    told: Mapping[Member, Sequence[Told]],
    place: Path,
    transport: Transport,
) -> list[Pair]:
    """One bridge over these upstreams, asked by a client of each era."""
    addressing = addresses({member: told[member][0] for member in members})
    pairs: list[Pair] = []
    async with AsyncExitStack() as stack:
        places = {member: place / member.name for member in members}
        upstreams = {
            member: await stack.enter_async_context(server.at(places[member]))
            for member, server in members.items()
        }
        where = await stack.enter_async_context(bridged(upstreams, place, transport))
        for run, era in enumerate(ERAS):
            said = {member: told[member][run] for member in members}
            async with connected(where) as wire:
                asking = _Asking(Talk(wire, era), transport, addressing, members, said, places)
                pairs += await asking.all()

    return pairs


@dataclass(frozen=True, slots=True)
class _Asking:
    """One client's conversation with bridge."""

    talk: Talk
    transport: Transport
    addressing: Addressing
    members: Mapping[Member, Server]
    told: Mapping[Member, Told]
    places: Mapping[Member, Path]

    async def all(self) -> list[Pair]:
        """Greeting and lists, which are those of all members, then each one's answers."""
        views = {member: View(member, self.talk.era, self.addressing) for member in self.members}
        pairs = [self._pair(server.name, server.era) for server in self.members.values()]
        shared = pairs[0] if len(pairs) == 1 else self._pair("together", "-")
        await self._shared(shared, views)
        for pair, (member, view) in zip(pairs, views.items(), strict=True):
            await self._answers(pair, member, view)

        return pairs if len(pairs) == 1 else [shared, *pairs]

    def _pair(self, server: str, upstream: str) -> Pair:
        return Pair(server, upstream, self.transport, self.talk.era)

    async def _shared(self, pair: Pair, views: Mapping[Member, View]) -> None:
        came = await self.talk.begin()
        greetings = [one.greeting for one in self.told.values()]
        pair.compare("greeting", rewrites.greeting(self.talk.era, greetings), came)
        for method in LISTS:
            replies = [one.lists[method] for one in self.told.values()]
            expected = rewrites.merged(list(views.values()), method, replies)
            pair.compare(method, expected, await self._listed(method, expected))

    async def _listed(self, method: str, expected: Message) -> Message:
        """A list, once it is as it has to be: what changed is listed soon, not at once."""
        came: Message = {}
        with anyio.move_on_after(SOON):
            while canonical(came) != canonical(expected):
                if came:
                    await anyio.sleep(STEP)

                came = await self.talk.whole_list(method)
                for place in self.places.values():
                    came = _bare(came, place)

                if "error" in came:
                    break

        return came

    async def _answers(self, pair: Pair, member: Member, view: View) -> None:
        server, place = self.members[member], self.places[member]
        for request, told in zip(
            (*server.requests, *REFUSED), self.told[member].answers, strict=True
        ):
            asked = _filled(request, place, self.talk.era)
            came = await self.talk.ask(asked.method, view.asked(asked))
            expected = rewrites.expected(view, request, told)
            pair.compare(request.what, expected, _settled(server, request, place, came))


def addresses(told: Mapping[Member, Told]) -> Addressing:
    """What of the members' URIs is claimed twice."""
    listed: dict[str, list[str]] = {"uri": [], "uriTemplate": []}
    for one in told.values():
        for method, key in CLAIMING.items():
            found = one.lists[method].get("result", {}).get(LISTS[method], [])
            listed[key] += sorted({entry[key] for entry in found})

    twice = {
        key: frozenset(uri for uri in uris if uris.count(uri) > 1) for key, uris in listed.items()
    }
    having = [one for one in told.values() if "resources" in one.greeting["result"]["capabilities"]]
    return Addressing(
        twice["uri"],
        twice["uriTemplate"],
        frozenset(listed["uri"]),
        frozenset(listed["uriTemplate"]),
        len(having) < 2,
    )
