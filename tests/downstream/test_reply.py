"""One response, and what is left of it."""

from __future__ import annotations

import gc

import anyio
from starlette.types import Message

from bridge.downstream.client import Client
from bridge.downstream.reply import Reply


async def receive() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("nothing ends this wait")


async def send(message: Message) -> None:
    pass


async def test_finished_response_that_was_watched_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        reply = Reply({}, send)
        reply.watch(receive, Client(modern=True))
        await reply.finish({"jsonrpc": "2.0", "id": 1, "result": {}}, 200)
        del reply

        assert not [one for one in gc.get_objects() if isinstance(one, Reply)]
    finally:
        gc.enable()
