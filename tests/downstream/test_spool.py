"""Large texts that are kept for one client, and the results they were cut out of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.rpc import RpcError
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import Handlers, settled
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.kept import TEMPLATE, KeptResources
from bridge.downstream.large import LargeResults
from bridge.downstream.resources import Resources
from bridge.downstream.spool import MOST_KEPT, PREFIX, Spool, open_spool
from bridge.errors import ConfigError
from bridge.tools.function import function_tool
from tests.downstream.offer import Shelf, servers_tool
from tests.downstream.sources import STAMP, StandIn, addressed

KIB = 1024
LONG = "".join(f"{number:>7}\n" for number in range(8 * KIB))
ME, OTHER = Asker("me"), Asker("other")
SESSION = Asker("me", "session", modern=False)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(tmp_path: Path, clock: Clock) -> Spool:
    return Spool(tmp_path, seconds=60, total=256 * KIB, clock=clock)


@pytest.fixture
def large(spool: Spool) -> LargeResults:
    return LargeResults(spool, 16 * KIB)


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def names(directory: Path) -> list[str]:
    return [path.name for path in files(directory)]


def text(words: str, **more: Any) -> Result:
    return {"content": [{"type": "text", "text": words}], **more}


def kept_beside(large: LargeResults, *servers: StandIn) -> KeptResources:
    addresses = addressed(*servers)
    return KeptResources(Resources(addresses, STAMP, settled), addresses, large, STAMP)


async def handlers(large: LargeResults, *tools: Any) -> Handlers:
    return Handlers(await Shelf(*tools).offered(), name="tests", version="1", large=large)


async def test_what_is_kept_is_its_owners_alone(spool: Spool) -> None:
    kept = await spool.keep(ME.key, LONG, "text/plain")

    assert kept is not None
    assert (kept.length, kept.size) == (len(LONG), len(LONG))
    assert await spool.read(ME.key, kept.id, 8, 16) == (kept, LONG[8:24])
    assert await spool.read(OTHER.key, kept.id, 8, 16) is None
    assert await spool.read(SESSION.key, kept.id, 8, 16) is None
    assert await spool.read(ME.key, f"../{kept.id}", 8, 16) is None


async def test_only_the_user_can_look_into_the_files(spool: Spool, tmp_path: Path) -> None:
    await spool.keep(ME.key, LONG, "text/plain")

    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]


async def test_what_has_expired_is_gone(spool: Spool, clock: Clock, tmp_path: Path) -> None:
    kept = await spool.keep(ME.key, "old", "text/plain")
    assert kept is not None
    clock.now += 59
    before = await spool.read(ME.key, kept.id, 0, 9)
    clock.now += 1
    after = await spool.read(ME.key, kept.id, 0, 9)
    await spool.keep(ME.key, "new", "text/plain")

    assert (before, after) == ((kept, "old"), None)
    assert len(files(tmp_path)) == 1


async def test_oldest_goes_first_where_the_room_ends(spool: Spool, clock: Clock) -> None:
    kept = []
    for _ in range(5):  # 64 KiB each, and 256 KiB in all
        clock.now += 1
        kept.append(await spool.keep(ME.key, LONG, "text/plain"))

    found = [one is not None and await spool.read(ME.key, one.id, 0, 8) for one in kept]
    assert [one is not None for one in found] == [False, False, True, True, True]


async def test_no_more_than_so_many_are_kept(spool: Spool, tmp_path: Path) -> None:
    for number in range(MOST_KEPT + 3):
        await spool.keep(ME.key, str(number), "text/plain")

    assert len(files(tmp_path)) == MOST_KEPT


async def test_what_is_larger_than_all_room_goes_out_whole(
    large: LargeResults, caplog: pytest.LogCaptureFixture
) -> None:
    answer = text(LONG * 5)

    assert await large.call(ME, None, answer) is answer
    assert caplog.messages == ["a result is larger than all that may be kept, and goes out whole"]


async def test_what_cannot_be_written_goes_out_whole(
    large: LargeResults, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(tmp_path)
    answer = text(LONG)

    assert await large.call(ME, None, answer) is answer
    assert caplog.messages == [
        "a large result cannot be kept and goes out whole: No such file or directory"
    ]


@pytest.mark.parametrize("words", ["é" * 9999, "日本" * 9999, "😀x" * 9999, "\ud83d cut" * 999])
async def test_any_text_is_read_as_it_was(spool: Spool, words: str) -> None:
    kept = await spool.keep(ME.key, words, "text/plain")

    assert kept is not None
    assert await spool.read(ME.key, kept.id, 0, 10**6) == (kept, words)
    assert await spool.read(ME.key, kept.id, 777, 7) == (kept, words[777:784])


async def test_directory_is_private_and_ends_with_its_last_user(tmp_path: Path) -> None:
    with open_spool(tmp_path, "group", seconds=1, total=9):
        with open_spool(tmp_path, "group", seconds=1, total=9):
            [directory] = files(tmp_path)
            mode = directory.stat().st_mode & 0o777

        assert directory.is_dir()

    assert mode == 0o700
    assert files(tmp_path) == []


async def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    left, young = tmp_path / f"{PREFIX}left", tmp_path / f"{PREFIX}young"
    with open_spool(tmp_path, "running", seconds=1, total=9):
        for path in (left, young):
            path.mkdir()
            (path / "secret").write_text("x", "utf-8")

        for path in (left, tmp_path / f"{PREFIX}running"):
            os.utime(path, (1, 1))

        with open_spool(tmp_path, "next", seconds=1, total=9):
            found = names(tmp_path)

    assert found == [f"{PREFIX}{name}" for name in ("next", "running", "young")]


def test_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"results.directory: .*nowhere.*: No such file"),
        open_spool(tmp_path / "nowhere", seconds=1, total=9),
    ):
        pass


@pytest.mark.parametrize(
    ("answer", "is_small"),
    [
        (text("x" * (16 * KIB + 1)), False),
        (text("x" * 16 * KIB), True),
        (text("é" * 5 * KIB), False),  # perhaps; call() looks
        (text("", structuredContent={"a": "x" * 16 * KIB}), False),
        (text("", structuredContent={"a": [None] * 3 * KIB}), True),
        ({"content": [{"type": "resource", "resource": {"text": "x" * 17 * KIB}}]}, False),
        ({"content": "no list", "_meta": {"a": "x" * 16 * KIB}}, True),
        ({}, True),
    ],
)
def test_small_results_are_told_from_the_rest(
    large: LargeResults, answer: Result, is_small: bool
) -> None:
    assert large.is_small(answer) is is_small


@pytest.mark.parametrize(
    "answer",
    [
        text("é" * 8000),
        {"content": [{"type": "image", "data": "x" * 64 * KIB}, {"type": "text", "text": "it"}]},
        {"content": [{"type": "resource", "resource": {"uri": "x:", "blob": "x" * 64 * KIB}}]},
        text("", structuredContent=None, unknown="x" * 64 * KIB),
    ],
)
async def test_what_is_not_too_large_or_media_alone_is_the_very_same(
    large: LargeResults, answer: Result
) -> None:
    assert await large.call(ME, None, answer) is answer


async def test_embedded_text_keeps_its_place_and_type(large: LargeResults) -> None:
    resource = {"uri": "x://a", "mimeType": "text/csv", "text": LONG, "_meta": {"own": 1}}
    block = {"type": "resource", "resource": resource, "annotations": {"priority": 1}}
    result = await large.call(ME, None, {"content": [block]})

    [cut, link] = result["content"]
    assert {**cut, "resource": {**cut["resource"], "text": LONG}} == block
    assert cut["resource"]["text"].startswith(LONG[:1024] + "\n\n[bridge: this is cut. ")
    assert link["mimeType"] == "text/csv"
    assert result["_meta"] == {"bridge/kept": {"/content/0/resource/text": link["uri"]}}


async def test_result_is_cut_no_more_than_is_needed(large: LargeResults) -> None:
    blocks = [{"type": "text", "text": "x" * size * KIB} for size in (3, 4, 5, 7)]
    result = await large.call(ME, None, {"content": blocks})

    assert result["content"][:3] == blocks[:3]
    assert list(result["_meta"]["bridge/kept"]) == ["/content/3/text"]


async def test_local_tool_keeps_what_its_schema_promises(large: LargeResults) -> None:
    def lines(count: int) -> str:
        """Lines."""
        return LONG[: count * 8]

    handled = await handlers(large, function_tool(lines))
    answer = await handled.call_tool(ME, {"name": "lines", "arguments": {"count": 5000}})

    assert answer["structuredContent"]["result"].startswith(LONG[:1024] + "\n\n[bridge: this is ")
    assert set(answer["_meta"]["bridge/kept"]) == {"/content/0/text", "/structuredContent"}


async def test_text_that_may_not_be_shortened_stays(large: LargeResults) -> None:
    async def run(ctx: ToolContext, args: Args) -> Result:
        return text("x", structuredContent={"data": LONG})

    schema = {"type": "object", "properties": {"data": {"type": "string", "minLength": 9999}}}
    definition = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    handled = await handlers(large, servers_tool("t", run, definition=definition))
    answer = await handled.call_tool(SESSION, {"name": "t"})

    assert answer == text("x", structuredContent={"data": LONG})


async def test_results_are_read_where_no_server_has_resources(large: LargeResults) -> None:
    resources = kept_beside(large, StandIn("one", capabilities={"tools": {}}))
    uri = (await large.call(SESSION, None, text(LONG)))["content"][1]["uri"]

    assert resources.capabilities() == {"resources": {}}
    assert await resources.list_resources(SESSION, {}) == {"resources": []}
    assert await resources.list_templates(SESSION, {}) == {"resourceTemplates": [TEMPLATE]}
    read = await resources.read_resource(SESSION, {"uri": f"{uri}?offset=65528"})
    assert [one["text"] for one in read["contents"]] == [LONG[65528:]]


async def test_results_that_are_kept_are_not_followed_at_any_server(large: LargeResults) -> None:
    uri = (await large.call(SESSION, None, text(LONG)))["content"][1]["uri"]
    able = StandIn("able", resources=["x://a"], stands={uri: "of another"})
    mute = StandIn("mute", resources=["x://b"], capabilities={"resources": {}})

    with pytest.raises(JsonRpcError, match="never changes"):
        await kept_beside(large, able).subscribe(SESSION, uri)
    with pytest.raises(JsonRpcError, match='there is no method "resources/subscribe" here'):
        await kept_beside(large, mute).subscribe(SESSION, uri)

    assert not able.followed
    assert kept_beside(large, mute).capabilities() == {"resources": {"listChanged": True}}


async def test_range_that_does_not_fit_says_where_it_goes_on(large: LargeResults) -> None:
    resources = kept_beside(large)
    uri = (await large.call(SESSION, None, text(LONG)))["content"][1]["uri"]
    read = await resources.read_resource(SESSION, {"uri": f"{uri}?offset=8&length=20000"})
    exact = await resources.read_resource(SESSION, {"uri": f"{uri}?offset=8&length=15360"})

    part, note = read["contents"]
    assert part["text"] == LONG[8 : 8 + 15 * KIB]
    assert note == {
        "uri": f"{uri}?offset=15368",
        "mimeType": "text/plain",
        "text": "[bridge: characters 8 to 15368 of 65536, which is as much as fits into one "
        f"answer. Read on with {uri}?offset=15368]",
    }
    assert [one["text"] for one in exact["contents"]] == [part["text"]]


@pytest.mark.parametrize("query", ["?", "?offset", "?offset=-1", "?size=1", "?offset=1;length=2"])
async def test_range_that_cannot_be_read_is_refused(large: LargeResults, query: str) -> None:
    with pytest.raises(InvalidParams, match="unreadable"):
        await kept_beside(large).read_resource(ME, {"uri": f"bridge://results/x{query}"})


async def test_kept_results_of_a_server_like_this_one_are_read_there(large: LargeResults) -> None:
    there = "bridge://results/there"
    server = StandIn("one", templates=[TEMPLATE["uriTemplate"]], stands={there: "of that server"})
    resources = kept_beside(large, server)
    mine = (await large.call(SESSION, None, text(LONG)))["content"][1]["uri"]

    assert len((await resources.list_templates(SESSION, {}))["resourceTemplates"]) == 1
    read = await resources.read_resource(SESSION, {"uri": there})
    assert read["contents"][0]["text"] == "of that server"
    assert server.asked == [("resources/read", {"uri": there})]
    own = await resources.read_resource(SESSION, {"uri": f"{mine}?length=8"})
    assert own["contents"][0]["text"] == LONG[:8]
    with pytest.raises(RpcError):
        await resources.read_resource(SESSION, {"uri": "bridge://results/nowhere"})


async def test_servers_are_not_asked_for_results_that_are_not_kept(large: LargeResults) -> None:
    server = StandIn("one", resources=["x://a"])
    with pytest.raises(JsonRpcError, match="kept for 1 min, for the client that got it"):
        await kept_beside(large, server).read_resource(ME, {"uri": "bridge://results/none"})

    assert server.asked == []
