"""What a server says and asks of its own accord reaches the client it belongs to, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.core.content import Result
from bridge.core.rpc import RpcError, rpc_error
from bridge.upstream.channel import Channel, ChannelError, Limits, Options, RequestTimeout
from bridge.upstream.command import Command
from bridge.upstream.desk import MOST_ELICITED, Desk
from bridge.upstream.questions import MOST_ASKED
from bridge.upstream.stdio import StdioChannel, open_stdio
from tests import nursery
from tests.upstream.clients import FORM, Client, Json

ASKING = str(Path(__file__).parent.parent / "servers" / "asking.py")
ELICIT = "elicitation/create"
QUESTION: Json = {"message": "Really?", "requestedSchema": {"type": "object"}, "unknown": [None]}
ASK = ["ask", ELICIT, QUESTION]
LOG = "notifications/message"
UNDECLARED = {"code": -32601, "message": "bridge offers no client capabilities"}
Notes = list[tuple[str, Json]]


@asynccontextmanager
async def talking(
    default: Client | None = None, notes: Notes | None = None
) -> AsyncIterator[StdioChannel]:
    """A channel to a legacy server that asks and tells as each call wants it to."""
    heard: Notes = [] if notes is None else notes
    command = Command(tuple(nursery.server(ASKING, "legacy")))
    limits = Limits(close_grace=0.5)
    async with open_stdio(command, lambda m, p: heard.append((m, p)), limits, default) as channel:
        yield channel


async def do(
    channel: Channel, *steps: list[Any], caller: Client | None = None, seconds: float = 60
) -> list[Json]:
    """Have the server take these steps; the replies that it got."""
    params = {"name": "do", "arguments": {"do": list(steps)}}
    answer = await channel.request("tools/call", params, Options(seconds, caller=caller))
    replies: list[Json] = answer["structuredContent"]["replies"]
    return replies


async def go(channel: Channel, word: str) -> None:
    """Let steps go on that wait for a word."""
    await channel.notify("test/go", {"word": word})


class Slow:
    """An answer that comes when it is let, and knows whether it was given up."""

    def __init__(self) -> None:
        self.began = anyio.Event()
        self.let = anyio.Event()
        self.was_cancelled = anyio.Event()

    async def __call__(self, method: str, params: Json) -> Result:
        self.began.set()
        try:
            await self.let.wait()
        except anyio.get_cancelled_exc_class():
            self.was_cancelled.set()
            raise

        return {"action": "accept"}


async def test_request_of_the_server_is_answered_by_the_client_whose_call_it_is() -> None:
    client = Client()
    async with talking() as channel:
        replies = await do(channel, ASK, caller=client)

    assert client.asked == [(ELICIT, QUESTION)]
    assert replies == [{"result": {"action": "accept", "content": {"method": ELICIT}}}]


async def test_error_of_the_client_goes_back_as_it_is() -> None:
    error = {"code": -1, "message": "no", "data": {"kept": [1, None]}, "unknown": True}

    async def refuses(method: str, params: Json) -> Result:
        raise RpcError(error)

    async with talking() as channel:
        replies = await do(channel, ASK, caller=Client(answer=refuses))

    assert replies == [{"error": error}]


async def test_failure_to_ask_the_client_goes_back_without_its_text() -> None:
    async def fails(method: str, params: Json) -> Result:
        raise ValueError("s3cret")

    async with talking() as channel:
        replies = await do(channel, ASK, caller=Client(answer=fails))

    assert replies == [{"error": {"code": -32603, "message": "the client could not be asked"}}]


async def test_ping_is_answered_here() -> None:
    client = Client()
    async with talking() as channel:
        replies = await do(channel, ["ask", "ping", {}], caller=client)

    assert (replies, client.asked) == ([{"result": {}}], [])


async def test_nobody_is_asked_where_nobody_waits() -> None:
    async with talking() as channel:
        assert await do(channel, ASK) == [{"error": UNDECLARED}]


URL: Json = {"mode": "url", "url": "https://x.example/", "message": "?", "elicitationId": "e1"}
TOOLS: Json = {"messages": [], "tools": []}


@pytest.mark.parametrize(
    ("declared", "method", "params", "code"),
    [
        ({}, ELICIT, QUESTION, -32601),
        ({"roots": {}}, ELICIT, QUESTION, -32601),
        ({"elicitation": {}}, ELICIT, QUESTION, None),
        ({"elicitation": {}}, ELICIT, URL, -32602),
        ({"elicitation": {"url": {}}}, ELICIT, URL, None),
        ({"elicitation": {"url": {}}}, ELICIT, QUESTION, -32602),
        ({"elicitation": {"form": {}, "url": {}}}, ELICIT, QUESTION, None),
        ({"sampling": {}}, "sampling/createMessage", {"messages": []}, None),
        ({"sampling": {}}, "sampling/createMessage", TOOLS, -32602),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", TOOLS, None),
        ({"roots": {"listChanged": True}}, "roots/list", {}, None),
        ({**FORM, "sampling": {}}, "roots/list", {}, -32601),
        ({**FORM, "sampling": {}, "roots": {}}, "surprise/me", {}, -32601),
    ],
)
async def test_client_is_asked_only_what_it_declared(
    declared: Json, method: str, params: Json, code: int | None
) -> None:
    client = Client(capabilities=declared)
    async with talking() as channel:
        (reply,) = await do(channel, ["ask", method, params], caller=client)

    assert reply.get("error", {}).get("code") == code
    assert client.asked == ([] if code else [(method, params)])


async def test_calls_of_one_client_are_told_apart_by_their_age() -> None:
    older, younger = Client(), Client()
    async with talking() as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: do(channel, ["wait", "end"], caller=older))
        await anyio.wait_all_tasks_blocked()
        await do(channel, ASK, caller=younger)
        await go(channel, "end")

    assert (older.asked, younger.asked) == ([], [(ELICIT, QUESTION)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Client("a"), Client("b")),
        (Client("a", modern=True), Client("a", modern=True)),
        (Client("a"), Client("a", modern=True)),
    ],
    ids=["two-keys", "two-modern", "one-modern"],
)
async def test_question_that_may_be_another_clients_is_put_to_nobody(
    one: Client, other: Client
) -> None:
    notes: Notes = []
    one.log_level = other.log_level = "debug"
    log = ["tell", LOG, {"level": "error", "data": "whose?"}]
    async with talking(notes=notes) as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: do(channel, ["wait", "end"], caller=one))
        await anyio.wait_all_tasks_blocked()
        replies = await do(channel, ASK, log, caller=other)
        await go(channel, "end")

    why = "calls of several clients are under way: it cannot be told whom this is for"
    assert replies == [{"error": {"code": -32603, "message": why}}]
    assert (one.asked, other.asked, one.told, other.told, notes) == ([], [], [], [], [])


async def test_question_outside_requests_is_the_default_clients() -> None:
    default = Client()
    async with talking(default) as channel:
        assert await do(channel, ASK) == [{"result": await default.answer(ELICIT, {})}]

    assert default.asked == [(ELICIT, QUESTION)]


async def test_server_may_call_its_question_off() -> None:
    slow = Slow()
    client = Client(answer=slow)
    steps = [["send", ELICIT, QUESTION], ["wait", "asked"], ["off", 0], ["ask", "ping", {}]]
    async with talking() as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: do(channel, *steps, caller=client))
        await slow.began.wait()
        await go(channel, "asked")
        await slow.was_cancelled.wait()


async def test_question_ends_with_its_channel() -> None:
    slow = Slow()

    async def call(channel: Channel) -> None:
        with pytest.raises(ChannelError):
            await do(channel, ASK, caller=Client(answer=slow))

    async with anyio.create_task_group() as tasks, talking() as channel:
        tasks.start_soon(call, channel)
        await slow.began.wait()

    assert slow.was_cancelled.is_set()


async def test_no_more_questions_wait_than_the_bound() -> None:
    slow = Slow()
    steps = [["send", ELICIT, QUESTION]] * MOST_ASKED
    async with talking() as channel:
        replies = await do(channel, *steps, ASK, caller=Client(answer=slow))

    said = f"{MOST_ASKED} requests wait for clients already"
    assert replies == [{"error": {"code": -32603, "message": said}}]


async def test_time_of_a_call_stands_still_while_its_client_thinks() -> None:
    async def thinks(method: str, params: Json) -> Result:
        await anyio.sleep(1.0)
        return {}

    async with talking() as channel:
        await do(channel)
        replies = await do(channel, ASK, ASK, caller=Client(answer=thinks), seconds=0.8)
        with pytest.raises(RequestTimeout, match=r"within 0\.8 s"):
            await do(channel, ASK, ["wait", "ever"], caller=Client(), seconds=0.8)

    assert replies == [{"result": {}}, {"result": {}}]


@pytest.mark.parametrize(
    ("wanted", "heard"),
    [
        (None, []),
        ("debug", ["debug", "notice", "error", "emergency"]),
        ("notice", ["notice", "error", "emergency"]),
        ("emergency", ["emergency"]),
    ],
)
async def test_log_messages_reach_the_client_from_the_level_it_wants(
    wanted: str | None, heard: list[str]
) -> None:
    client, notes = Client(log_level=wanted), []
    levels = ["debug", "notice", "error", "emergency", "loud", None]
    steps = [["tell", LOG, {"level": level, "data": {"x": [None]}}] for level in levels]
    async with talking(notes=notes) as channel:
        await do(channel, *steps, caller=client)

    assert client.told == [(LOG, {"level": level, "data": {"x": [None]}}) for level in heard]
    assert notes == []


async def test_other_notifications_of_a_call_reach_its_client_as_they_came() -> None:
    client, notes = Client(), []
    custom = ("notifications/custom/thing", {"unknown": [{"kept": None}]})
    async with talking(notes=notes) as channel:
        await do(channel, ["tell", *custom], caller=client)

    assert (client.told, notes) == ([custom], [])


async def test_news_for_everybody_reach_no_client_of_a_call() -> None:
    client, notes = Client(log_level="debug"), []
    news = [
        ("notifications/tools/list_changed", {}),
        ("notifications/prompts/list_changed", {}),
        ("notifications/resources/list_changed", {}),
        ("notifications/resources/updated", {"uri": "x:y"}),
        ("notifications/tasks/status", {"taskId": "t", "status": "working"}),
        ("notifications/custom", {"_meta": {"io.modelcontextprotocol/subscriptionId": 7}}),
        ("notifications/cancelled", {"requestId": "unknown"}),
    ]
    async with talking(notes=notes) as channel:
        steps = [["tell", *one] for one in news]
        await do(channel, *steps, caller=client)

    assert (client.told, notes) == ([], news)


async def test_end_of_a_visit_to_a_url_is_told_to_the_client_that_was_sent_there() -> None:
    sent, other = Client("a", capabilities={"elicitation": {"url": {}}}), Client("b")
    done = ("notifications/elicitation/complete", {"elicitationId": "e1"})
    async with talking() as channel:
        await do(channel, ["ask", ELICIT, URL], caller=sent)
        await do(channel, ["tell", *done], caller=other)
        await do(channel, ["tell", *done], caller=other)  # known no more: it is the call's

    assert (sent.told, other.told) == ([done], [done])


async def test_visits_to_urls_are_remembered_up_to_a_bound() -> None:
    desk, client = (
        Desk(lambda method, params: None),
        Client(capabilities={"elicitation": {"url": {}}}),
    )
    async with anyio.create_task_group() as tasks:
        desk.open(tasks, lambda message: anyio.lowlevel.checkpoint(), NoClock())
        desk.callers[1] = client
        for number in range(MOST_ELICITED + 1):
            params = {**URL, "elicitationId": str(number)}
            assert desk.asked({"id": number, "method": ELICIT, "params": params}) is None
            while len(client.asked) == number:
                await anyio.lowlevel.checkpoint()

        del desk.callers[1]
        for number in range(MOST_ELICITED + 1):
            desk.told("notifications/elicitation/complete", {"elicitationId": str(number)})

    told = [params["elicitationId"] for _, params in client.told]
    assert told == [str(number) for number in range(1, MOST_ELICITED + 1)]


class NoClock:
    """Nothing has a time here."""

    def pause(self, number: int) -> None: ...
    def resume(self, number: int) -> None: ...


@pytest.mark.parametrize("request_id", [None, True, 1.5, [1], {"a": 1}])
async def test_question_without_a_usable_id_is_refused(request_id: Any) -> None:
    desk = Desk(lambda method, params: None)
    async with anyio.create_task_group() as tasks:
        desk.open(tasks, lambda message: anyio.lowlevel.checkpoint(), NoClock())
        desk.callers[1] = Client()
        reply = desk.asked({"id": request_id, "method": ELICIT, "params": QUESTION})

    error = rpc_error(-32600, "a request needs a string or an integer of its own").error
    assert reply == {"jsonrpc": "2.0", "id": request_id, "error": error}


async def test_question_to_a_channel_that_is_closing_is_refused() -> None:
    desk = Desk(lambda method, params: None, Client())
    async with anyio.create_task_group() as tasks:
        desk.open(tasks, lambda message: anyio.lowlevel.checkpoint(), NoClock())
        desk.close()

    reply = desk.asked({"id": 1, "method": ELICIT, "params": QUESTION})
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": UNDECLARED}


async def test_modern_server_that_sends_a_request_is_refused() -> None:
    client = Client()
    async with talking() as channel:
        channel.protocol_version = "2026-07-28"
        replies = await do(channel, ASK, caller=client)

    assert (replies, client.asked) == ([{"error": UNDECLARED}], [])
