"""One bridge in front of one server that answers what it is told, for many examples."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.differential import generated, rewrites
from tests.differential.addressing import Addressing, Member, View
from tests.differential.compare import Difference, Pair, bridged
from tests.differential.requests import Request
from tests.differential.talk import ERAS, LISTS, Era, Talk
from tests.differential.told import CAPABILITIES, OWN_TOOLS
from tests.differential.wire import Command, Transport, Where, connected
from tests.waiting import eventually

Json: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Any], Coroutine[Any, Any, None]]

TOLD = Path(__file__).with_name("told.py")
MEMBER = Member("told", "")
VENDORS = st.dictionaries(st.sampled_from(["example.com/a", "x", "traceparent"]), generated.VALUES)
GREETING = {"result": {"capabilities": CAPABILITIES}}


class Rig:
    """Clients of both eras of one bridge, and what is expected of it."""

    def __init__(self, talks: Sequence[Talk], transport: Transport, upstream: Era) -> None:
        self._talks = {talk.era: talk for talk in talks}
        self._pairs = {talk.era: Pair("generated", upstream, transport, talk.era) for talk in talks}
        self._offers = 0

    @property
    def pairs(self) -> list[Pair]:
        """What has been compared so far."""
        return list(self._pairs.values())

    async def greet(self, era: Era) -> None:
        """Open a conversation."""
        expected = rewrites.greeting(era, [GREETING])
        self._compare(era, "greeting", expected, await self._talks[era].begin())

    async def check_offer(self, offer: Json) -> None:
        """The lists, and everything in them, are what the server was told."""
        offer = await self._become(offer)
        for era in ERAS:
            for method, key in LISTS.items():
                listed = [*OWN_TOOLS, *offer["tools"]] if key == "tools" else offer[key]
                expected = rewrites.merged([_view(era)], method, [{"result": {key: listed}}])
                self._compare(era, method, expected, await self._talks[era].whole_list(method))

            for name, reply in offer["get"].items():
                await self._asked(era, Request("prompts/get", {"name": name}), reply)

            for uri, reply in offer["read"].items():
                await self._asked(era, Request("resources/read", {"uri": uri}), reply)

            for one in offer["prompts"]:
                ref = {"type": "ref/prompt", "name": one["name"]}
                about = {"ref": ref, "argument": {"name": "a", "value": ""}}
                await self._asked(era, Request("completion/complete", about), offer["complete"])

    async def check_reply(self, reply: Json) -> None:
        """What a tool says reaches both clients."""
        for era in ERAS:
            call = {"name": "say", "arguments": {"say": json.dumps(reply)}}
            await self._asked(era, Request("tools/call", call), reply)

    async def check_params(self, params: tuple[Json, Json]) -> None:
        """What a client says reaches the server."""
        arguments, meta = params
        call = {"name": "say", "arguments": arguments, "_meta": meta}
        expected = {"result": {"content": [], "structuredContent": call}}
        for era in ERAS:
            await self._asked(era, Request("tools/call", call), expected)

    async def _become(self, offer: Json) -> Json:
        """Have the server offer something else, and wait until bridge has heard of all of it."""
        self._offers += 1
        mark = f"marker_{self._offers}"
        name = {"name": mark, "inputSchema": {"type": "object"}}
        marked = {
            **offer,
            "tools": [*offer["tools"], name],
            "prompts": [*offer["prompts"], {"name": mark}],
            "resources": [*offer["resources"], {"uri": f"marker://{mark}", "name": mark}],
            "resourceTemplates": [
                *offer["resourceTemplates"],
                {"uriTemplate": f"marker://{mark}/{{id}}", "name": mark},
            ],
        }
        talk = self._talks["legacy"]
        change = {"name": "become", "arguments": {"offer": json.dumps(marked)}}
        await talk.ask("tools/call", change)

        async def is_there() -> bool:
            for method, key in LISTS.items():
                page = await talk.ask(method, {})
                if not any(one["name"] == mark for one in page.get("result", {}).get(key, [])):
                    return False

            return True

        await eventually(is_there)
        return marked

    async def _asked(self, era: Era, request: Request, reply: Json) -> None:
        view = _view(era)
        came = await self._talks[era].ask(request.method, view.asked(request))
        self._compare(era, request.what, rewrites.expected(view, request, reply), came)

    def _compare(self, era: Era, what: str, expected: Any, actual: Any) -> None:
        tried = Pair("", "legacy", "stdio", era)
        tried.compare(what, expected, actual)
        self._pairs[era].compared += 1
        lines = [line for one in tried.differences for line in one.lines()]
        assert not lines, f"{era} client: " + "\n".join(lines)


def _view(era: Era) -> View:
    return View(MEMBER, era, Addressing())


CHECKS: Sequence[tuple[str, SearchStrategy[Any], Callable[[Rig], Check], int]] = (
    ("offers", generated.offers(), lambda rig: rig.check_offer, 10),
    ("replies", generated.REPLIES, lambda rig: rig.check_reply, 1),
    (
        "params",
        st.tuples(
            st.dictionaries(generated.KEYS.filter(lambda key: key != "say"), generated.VALUES),
            VENDORS,
        ),
        lambda rig: rig.check_params,
        1,
    ),
)
"""What is generated, how it is checked, and for how many examples one of it counts."""


@contextmanager
def rigged(
    place: Path, transport: Transport, upstream: Era, *, at_random: bool = True
) -> Iterator[Callable[[str, int], list[Pair]]]:
    """A rig; what is yielded tries `examples` of one kind: others each time, or the same ones.

    Raises (that):
        AssertionError: An answer differs; the smallest example found is shown.
    """
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_rig(place, transport, upstream)) as rig,
    ):

        def explore(kind: str, examples: int) -> list[Pair]:
            _, strategy, check, weight = next(one for one in CHECKS if one[0] == kind)

            @settings(
                max_examples=max(examples // weight, 1),
                deadline=None,
                phases=[Phase.generate] if weight > 1 else [Phase.generate, Phase.shrink],
                database=None,
                derandomize=not at_random,
                suppress_health_check=list(HealthCheck),
            )
            @given(strategy)
            def try_one(example: Any) -> None:
                portal.call(check(rig), example)

            try_one()
            return rig.pairs

        yield explore


def explored(place: Path, transport: Transport, upstream: Era, examples: int) -> list[Pair]:
    """Try examples of every kind; each kind that fails is one difference, of the first client."""
    failed: list[Difference] = []
    found: list[Pair] = []
    with rigged(place, transport, upstream) as explore:
        for kind, *_ in CHECKS:
            try:
                found = explore(kind, examples)
            except AssertionError as exc:
                failed.append(Difference(kind, "as it was told", str(exc)))

    found = found or [Pair("generated", upstream, transport, "legacy")]
    found[0].differences += failed
    return found


@asynccontextmanager
async def _rig(place: Path, transport: Transport, upstream: Era) -> AsyncIterator[Rig]:
    told: Where = Command((sys.executable, str(TOLD), upstream))
    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(bridged({MEMBER: told}, place, transport))
        first = await stack.enter_async_context(connected(where))
        # Over Streamable HTTP a session is of one era; elsewhere one wire carries both.
        second = first
        if transport == "http":
            second = await stack.enter_async_context(connected(where))

        talks = [Talk(first, "legacy"), Talk(second, "modern", numbers_from=1_000_000)]
        rig = Rig(talks, transport, upstream)
        for era in ERAS:
            await rig.greet(era)

        yield rig
