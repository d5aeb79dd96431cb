"""Requests and the answers they wait for, without a transport."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from bridge.core.content import Result
from bridge.upstream.channel import Limits, Options, RequestTimeout
from bridge.upstream.correlator import Correlator, Message
from bridge.upstream.desk import Desk
from tests.waiting import eventually


class Wire:
    """A correlator, and what it has sent."""

    def __init__(self) -> None:
        self.correlator = Correlator(Desk(lambda method, params: None), Limits())
        self.sent: list[Message] = []

    async def ask(self, method: str, seconds: float | None) -> Result:
        return await self.correlator.ask(method, {}, Options(seconds), self.sent.append)

    def answer(self, number: int) -> None:
        self.correlator.receive({"jsonrpc": "2.0", "id": number, "result": {}})

    @property
    def given_up(self) -> list[Any]:
        return [m["params"]["requestId"] for m in self.sent if m["method"].endswith("cancelled")]


async def test_the_shortest_time_is_up_first_whenever_it_began() -> None:
    wire, over = Wire(), list[str]()

    async def ask(method: str, seconds: float | None) -> None:
        try:
            await wire.ask(method, seconds)
            over.append(f"{method} is answered")
        except RequestTimeout as exc:
            over.append(str(exc))

    async with anyio.create_task_group() as tasks:
        for method, timeout in (("a", 60.0), ("b", 0.05), ("c", None), ("d", 0.01), ("e", 90.0)):
            tasks.start_soon(ask, method, timeout)

        await eventually(lambda: len(over) == 2)
        assert wire.given_up == [4, 2]
        assert len(wire.correlator) == 3
        for number in (1, 3, 5):
            wire.answer(number)

    assert over[:2] == ["d got no answer within 0.01 s", "b got no answer within 0.05 s"]
    assert sorted(over[2:]) == ["a is answered", "c is answered", "e is answered"]


async def test_time_that_stands_still_is_not_up_and_goes_on_where_it_stood() -> None:
    wire, over = Wire(), list[str]()

    async def ask(method: str, seconds: float) -> None:
        with pytest.raises(RequestTimeout):
            await wire.ask(method, seconds)

        over.append(method)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "paused", 0.05)
        tasks.start_soon(ask, "other", 0.1)
        await eventually(lambda: len(wire.sent) == 2)
        wire.correlator.pause(1)
        wire.correlator.pause(1)
        await eventually(lambda: over == ["other"])
        wire.correlator.resume(1)
        wire.correlator.resume(1)

    assert over == ["other", "paused"]


async def test_the_end_of_a_channel_ends_every_wait_and_the_timer() -> None:
    wire = Wire()
    failed: list[str] = []

    async def ask() -> None:
        with pytest.raises(Exception, match="gone") as raised:
            await wire.ask("m", 60.0)

        failed.append(str(raised.value))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)

        await eventually(lambda: len(wire.sent) == 3)
        wire.correlator.fail_all("gone")

    assert failed == ["gone"] * 3
    assert len(wire.correlator) == 0
