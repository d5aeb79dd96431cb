"""Requests whose head is that of the one before: read once, and treated like any other."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from bridge.downstream.guard import Bounds
from bridge.downstream.repeated import MOST_HEADS, NOT_PLAIN, PATIENCE, Head, HttpProtocol, head_of
from bridge.downstream.reply import LONGEST_WHOLE
from tests.downstream import fronts
from tests.downstream.fronts import Transport, handlers_of, serving
from tests.downstream.offer import Runs
from tests.waiting import eventually

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
LINES = (
    "Host: localhost",
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    f"MCP-Protocol-Version: {MODERN}",
    "Mcp-Method: tools/call",
)
LATER = b"(later)"
PLAIN = "httptools"
"""Uvicorn's own name for its protocol, which reads every head."""


def body_of(number: int, name: str = "counts", padding: int = 0) -> bytes:
    params: dict[str, Any] = {"name": name, "arguments": {}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(body).encode() + b" " * padding


def post(
    body: bytes, *more: str, name: str = "counts", length: str | None = None, path: str = "/mcp"
) -> bytes:
    size = f"Content-Length: {len(body) if length is None else length}"
    head = [f"POST {path} HTTP/1.1", *LINES, f"Mcp-Name: {name}", size, *more, "", ""]
    return "\r\n".join(head).encode() + body


async def answer(stream: SocketStream) -> tuple[int, dict[str, str], bytes]:
    """One response, which may be followed by more only if it was asked for."""
    data = b""
    with anyio.fail_after(30):
        while b"\r\n\r\n" not in data:
            data += await stream.receive()

        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        while len(body) < int(headers["content-length"]):
            body += await stream.receive()

    assert len(body) == int(headers["content-length"])
    return int(first.split()[1]), headers, body


@asynccontextmanager
async def connected(
    runs: Runs | None = None, transport: Transport = "http", **options: Any
) -> AsyncIterator[SocketStream]:
    async with (
        serving(await handlers_of(runs or Runs()), transport, **options) as url,
        await fronts.dialled(url) as stream,
    ):
        yield stream


@pytest.fixture
def repeats(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies of the requests whose heads were not read again, where they came at once."""
    found: list[bytes] = []
    begin = HttpProtocol._begin

    def noted(self: HttpProtocol, head: Head, body: bytes | None) -> None:
        found.append(LATER if body is None else body)
        begin(self, head, body)

    monkeypatch.setattr(HttpProtocol, "_begin", noted)
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[HttpProtocol]:
    """Every connection at the server, in the order in which they came."""
    found: list[HttpProtocol] = []
    init = HttpProtocol.__init__

    def noted(self: HttpProtocol, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        found.append(self)

    monkeypatch.setattr(HttpProtocol, "__init__", noted)
    return found


async def ask(stream: SocketStream, data: bytes) -> tuple[int, dict[str, str], bytes]:
    await stream.send(data)
    return await answer(stream)


async def in_pieces(stream: SocketStream, data: bytes, *cuts: int) -> None:
    """Send it cut at these places, each piece once the one before has most probably arrived."""
    for start, end in itertools.pairwise([0, *cuts, len(data)]):
        await stream.send(data[start:end])
        await anyio.sleep(0.01)


async def until(stream: SocketStream, sign: bytes) -> bytes:
    """Everything up to the end of the piece that this comes in."""
    found = b""
    with anyio.fail_after(30):
        while sign not in found:
            found += await stream.receive()

    return found


async def test_a_head_is_read_once_and_answered_as_often_as_it_comes(repeats: list[bytes]) -> None:
    async with connected() as stream:
        for number in (7, 8, 9, 10, 1000):
            status, headers, body = await ask(stream, post(body_of(number)))
            assert (status, json.loads(body)["id"]) == (200, number)
            assert headers["content-type"] == "application/json"
            assert headers["date"]

    assert repeats == [body_of(number) for number in (8, 9, 10, 1000)]


async def test_a_head_that_differs_is_read(repeats: list[bytes]) -> None:
    async with connected(token="s3cret") as stream:
        right, wrong = "Authorization: Bearer s3cret", "Authorization: Bearer s3creT"
        assert (await ask(stream, post(body_of(1), right)))[0] == 200
        assert (await ask(stream, post(body_of(2), wrong)))[0] == 401
        assert (await ask(stream, post(body_of(3))))[0] == 401
        assert (await ask(stream, post(body_of(4), right)))[0] == 200
        assert (await ask(stream, post(body_of(5), right)))[0] == 200
        assert (await ask(stream, post(body_of(6), right, path="/elsewhere")))[0] == 404

    assert repeats == [body_of(4), body_of(5)]


async def test_a_head_that_was_refused_is_refused_again(repeats: list[bytes]) -> None:
    async with connected(token="s3cret") as stream:
        for number in range(3):
            wrong = "Authorization: Bearer nope"
            status, headers, _ = await ask(stream, post(body_of(number), wrong))
            assert status == 401
            assert headers["www-authenticate"].startswith("Bearer")

    assert len(repeats) == 2


async def test_what_a_head_says_of_the_body_is_compared_each_time(repeats: list[bytes]) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        status, _, body = await ask(stream, post(body_of(2, name="fails")))  # the head says counts
        assert status == 400
        assert json.loads(body)["error"]["code"] == -32020
        assert (await ask(stream, post(b"no JSON")))[0] == 400

    assert len(repeats) == 2


async def test_the_bound_of_bodies_holds_for_each(repeats: list[bytes]) -> None:
    async with connected(bounds=Bounds(body_bytes=1000)) as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        assert (await ask(stream, post(body_of(2, padding=1000))))[0] == 413
        assert (await ask(stream, post(body_of(3))))[0] == 200

    assert len(repeats) == 2


@pytest.mark.parametrize(
    "more",
    [
        "Connection: close",
        "Transfer-Encoding: chunked",
        "Content-Length: 3",
        "Expect: 100-continue",
    ],
)
async def test_a_head_that_says_more_of_its_message_is_never_taken_as_known(
    repeats: list[bytes], more: str
) -> None:
    async with connected() as stream:
        with anyio.move_on_after(30), pytest.raises((anyio.EndOfStream, ConnectionError)):
            for number in range(3):
                await stream.send(post(body_of(number), more))
                assert await stream.receive()

            await stream.send_eof()
            while await stream.receive():
                pass

    assert repeats == []


@pytest.mark.parametrize("length", ["+{}", "0x{}", " {} ", "{},{}", "-{}", "{}\t"])
async def test_a_length_is_plain_digits_or_left_to_the_parser(
    repeats: list[bytes], length: str
) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        size = len(body_of(2))
        await stream.send(post(body_of(2), length=length.replace("{}", str(size))))
        with anyio.move_on_after(0.2):
            await stream.receive()

    assert repeats == []


async def test_a_body_may_follow_its_head(repeats: list[bytes]) -> None:
    async with connected() as stream:
        whole = post(body_of(2), "Connection: keep-alive")
        assert (await ask(stream, whole))[0] == 200
        length = len(body_of(2))
        for cuts in ((length,), (length - 1,), (1,), (length, 7, 3)):
            await in_pieces(stream, whole, *(len(whole) - cut for cut in cuts))
            status, _, body = await answer(stream)
            assert (status, json.loads(body)["id"]) == (200, 2)

        await in_pieces(stream, whole + post(body_of(3)), len(whole) - length)
        found = await until(stream, b'"id":3')
        assert re.findall(rb'"id":(\d+)', found) == [b"2", b"3"]

    assert repeats == [LATER] * 5


async def test_a_body_that_does_not_follow_is_not_waited_for(repeats: list[bytes]) -> None:
    async with connected(bounds=Bounds(body_seconds=0.2)) as stream:
        whole = post(body_of(1))
        assert (await ask(stream, whole))[0] == 200
        assert (await ask(stream, whole[:-3]))[0] == 408
        with anyio.fail_after(30), pytest.raises(anyio.EndOfStream):
            await stream.receive()

    assert repeats == [LATER]


async def test_the_rest_of_a_body_that_nobody_wants_is_no_request(repeats: list[bytes]) -> None:
    async with connected(bounds=Bounds(body_bytes=1000)) as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        whole = post(body_of(2, padding=2000) + post(body_of(3)))
        await in_pieces(stream, whole, 1800, len(whole) - len(post(body_of(3))))
        assert (await answer(stream))[0] == 413
        status, _, body = await ask(stream, post(body_of(4)))
        assert (status, json.loads(body)["id"]) == (200, 4)

    assert repeats == [LATER, body_of(4)]


async def test_a_long_body_that_follows_is_left_to_the_parser(repeats: list[bytes]) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        whole = post(body_of(2, padding=LONGEST_WHOLE))
        await in_pieces(stream, whole, 500)
        assert (await answer(stream))[0] == 200

    assert repeats == []


@pytest.mark.parametrize("era", ["legacy", MODERN])
async def test_the_stock_client_says_the_same_head_again(repeats: list[bytes], era: str) -> None:
    async with (
        serving(await handlers_of(Runs())) as url,
        fronts.connected("http", url, era) as client,
    ):
        for _ in range(5):
            assert (await client.call_tool("counts", {})).structured_content == {}

    assert len(repeats) >= 3


async def test_pieces_of_heads_and_pairs_are_put_together_by_the_parser(
    repeats: list[bytes],
) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        whole = post(body_of(2))
        for cut in (1, 30, len(whole) - len(body_of(2)) - 1):
            await in_pieces(stream, whole, cut)
            status, _, body = await answer(stream)
            assert (status, json.loads(body)["id"]) == (200, 2)

        await stream.send(post(body_of(3)) + post(body_of(4)))
        found = await until(stream, b'"id":4')
        assert [int(one) for one in re.findall(rb'"id":(\d+)', found)] == [3, 4]
        assert (await ask(stream, post(body_of(5))))[0] == 200

    assert repeats == [body_of(5)]


async def test_a_body_that_reads_like_a_request_is_a_body(repeats: list[bytes]) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        inner = post(body_of(2))
        await stream.send(post(b"", length=str(len(inner))))
        await anyio.sleep(0.05)
        assert (await ask(stream, inner))[0] == 400  # it is no JSON
        assert (await ask(stream, post(body_of(3))))[0] == 200

    assert repeats == [LATER, body_of(3)]


async def test_the_body_of_an_unknown_head_may_read_like_a_known_request(
    repeats: list[bytes],
) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        outer = post(inner := post(body_of(2)), "X-More: 1")
        await in_pieces(stream, outer, len(outer) - len(inner))
        assert (await answer(stream))[0] == 400  # it is no JSON
        assert (await ask(stream, post(body_of(3))))[0] == 200

    assert repeats == [body_of(3)]


async def test_a_known_request_inside_of_another_head_is_none(repeats: list[bytes]) -> None:
    async with connected() as stream:
        assert (await ask(stream, post(body_of(1))))[0] == 200
        outer = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-More: "
        await in_pieces(stream, outer + post(body_of(2)), len(outer))
        assert (await answer(stream))[0] == 421  # as the parser reads it, Host came twice

    assert repeats == []


async def test_a_known_request_in_a_body_that_nobody_reads_is_none(repeats: list[bytes]) -> None:
    async with connected(token="s3cret") as stream:
        right = "Authorization: Bearer s3cret"
        assert (await ask(stream, post(body_of(1), right)))[0] == 200
        outer = post(inner := post(body_of(2), right))  # without the token
        await stream.send(outer[: -len(inner)])
        assert (await answer(stream))[0] == 401
        await stream.send(inner)
        await anyio.sleep(0.05)
        status, _, body = await ask(stream, post(body_of(3), right))
        assert (status, json.loads(body)["id"]) == (200, 3)

    assert repeats == [body_of(3)]


async def test_heads_that_never_come_again_are_learnt_no_more(
    made: list[HttpProtocol], repeats: list[bytes]
) -> None:
    async with connected() as stream:
        for number in range(PATIENCE + 3):
            assert (await ask(stream, post(body_of(number), f"X-More: {number}")))[0] == 200

        assert made[0]._heads == []
        for number in range(2):
            assert (await ask(stream, post(body_of(number))))[0] == 200

    assert repeats == []


async def test_several_heads_are_known_at_once_and_not_too_many(repeats: list[bytes]) -> None:
    async with connected() as stream:
        for number in range(MOST_HEADS + 2):
            more = f"X-More: {number % (MOST_HEADS + 1)}"  # the last is the first, and forgotten
            assert (await ask(stream, post(body_of(number), more)))[0] == 200

        assert repeats == []
        assert (await ask(stream, post(body_of(0), "X-More: 0")))[0] == 200
        for number in range(2 * MOST_HEADS):
            more = f"X-Less: {number % MOST_HEADS}"
            assert (await ask(stream, post(body_of(number), more)))[0] == 200

    assert repeats == [body_of(0), *map(body_of, range(MOST_HEADS, 2 * MOST_HEADS))]


async def test_what_comes_while_a_known_head_is_served_waits_for_it(repeats: list[bytes]) -> None:
    runs = Runs()
    async with connected(runs) as stream:
        await ask(stream, post(body_of(1, "fails"), name="until"))  # refused: this is its head
        await stream.send(post(body_of(2, "until"), name="until"))
        with anyio.fail_after(30):
            await runs.started.wait()

        await stream.send(post(body_of(3, "until"), name="until"))
        await anyio.sleep(0.05)
        await stream.send(post(body_of(4)))
        runs.go_on.set()
        found = await until(stream, b'"id":4')

    assert [int(one) for one in re.findall(rb'"id":(\d+)', found)] == [2, 3, 4]
    assert repeats == [body_of(2, "until")]


async def test_no_body_is_taken_for_that_of_another_request(repeats: list[bytes]) -> None:
    runs = Runs()
    async with connected(runs) as stream:
        await stream.send(post(body_of(1, "until"), name="until"))
        with anyio.fail_after(30):
            await runs.started.wait()

        await stream.send(post(body_of(2)))  # it waits for the one before
        await anyio.sleep(0.05)
        runs.go_on.set()
        await until(stream, b'"id":2')
        whole = post(body_of(3, "until"), name="until")
        await in_pieces(stream, whole, len(whole) - len(body_of(3, "until")))
        assert json.loads((await answer(stream))[2])["id"] == 3

    assert repeats == [LATER]


async def test_a_client_that_leaves_ends_its_call(repeats: list[bytes]) -> None:
    runs = Runs()
    async with serving(await handlers_of(runs)) as url:
        async with await fronts.dialled(url) as stream:
            await ask(stream, post(body_of(1, "fails"), name="slow"))
            await stream.send(post(body_of(2, "slow"), name="slow"))
            with anyio.fail_after(30):
                await runs.started.wait()

        await eventually(runs.cancelled.is_set)

    assert repeats


async def test_a_connection_that_only_waits_is_closed_in_time(
    made: list[HttpProtocol], repeats: list[bytes]
) -> None:
    runs = Runs()
    async with connected(runs) as stream:
        await eventually(lambda: bool(made))
        made[0].timeout_keep_alive = 1
        for number in range(3):
            assert (await ask(stream, post(body_of(number))))[0] == 200

        await ask(stream, post(body_of(3, "fails"), name="until"))
        await stream.send(post(body_of(4, "until"), name="until"))
        await eventually(lambda: made[0].timeout_keep_alive_task is None)  # it rang: a call runs
        runs.go_on.set()
        assert (await answer(stream))[0] == 200
        with anyio.fail_after(30), pytest.raises(anyio.EndOfStream):
            await stream.receive()

    assert len(repeats) == 3


async def test_the_same_bytes_are_answered_as_by_the_plain_protocol(
    monkeypatch: pytest.MonkeyPatch, repeats: list[bytes]
) -> None:
    """Whatever is sent, cut anywhere: what was learnt of a head changes no answer."""
    chance = random.Random(20260728)
    kinds = [
        lambda n: post(body_of(n)),
        lambda n: post(body_of(n)),
        lambda n: post(body_of(n)),
        lambda n: post(body_of(n, padding=n)),
        lambda n: post(body_of(n, "fails"), name="fails"),
        lambda n: post(b"{"),
        lambda n: post(body_of(n), "X-More: 1"),
        lambda n: post(body_of(n), "Connection: keep-alive"),
        lambda n: post(body_of(n), "Connection: keep-alive"),
        lambda n: post(body_of(n), path=f"/mcp?{n}"),
        lambda n: post(body_of(n), "Origin: http://evil.example"),
        lambda n: b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    scripts = []
    for _ in range(30):
        sent = [chance.choice(kinds)(number) for number in range(8)]
        sent.append(post(body_of(8), "Connection: close"))
        pieces = [
            piece
            for data in sent
            for body in [data.index(b"\r\n\r\n") + 4]
            for cut in [chance.choice([0, 0, body, chance.randrange(len(data))])]
            for piece in (data[:cut], data[cut:])
            if piece
        ]
        scripts.append(pieces)

    async def talk(pieces: list[bytes]) -> bytes:
        async with connected() as stream:
            for piece in pieces:
                await stream.send(piece)
                await anyio.sleep(0.002)

            found = b""
            with anyio.fail_after(30), suppress(anyio.EndOfStream):
                while True:
                    found += await stream.receive()

        return re.sub(rb"date: [^\r]*\r\n", b"", found)

    ours = [await talk(pieces) for pieces in scripts]
    assert repeats
    monkeypatch.setattr("bridge.downstream.web.PARSER", PLAIN)
    for pieces, answers in zip(scripts, ours, strict=True):
        assert answers == await talk(pieces), pieces


def test_only_a_plain_whole_head_is_kept() -> None:
    scope = {"headers": [(b"host", b"h"), (b"content-length", b"2")], "http_version": "1.1"}
    plain = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
    head = head_of(plain, scope)
    assert head is not None
    assert head.headers == [(b"host", b"h")]
    assert head.split(plain.replace(b"2\r", b"3\r") + b"}") == (3, b"{}}")
    assert head.split(plain[:-1]) == (2, b"{")
    assert head.split(plain[:-2]) == (2, b"")
    assert head.split(plain + b"}") is None
    assert head.split(plain[:-3]) is None
    assert head.split(b"GET" + plain[4:]) is None
    assert head_of(plain.replace(b"POST", b"GET"), scope) is None
    assert head_of(plain[:-6], scope) is None
    for name in (*NOT_PLAIN, b"connection"):
        assert head_of(plain, {**scope, "headers": [(name, b"x"), scope["headers"][1]]}) is None

    kept = [(b"connection", b"Keep-Alive"), scope["headers"][1]]
    assert head_of(plain, {**scope, "headers": kept}) is not None

    assert head_of(plain, {**scope, "http_version": "1.0"}) is None
    assert head_of(plain.replace(b"\r\nHost", b"\r\n Host"), {**scope, "headers": []}) is None
