"""Resources of several servers behind one, among them those that two servers claim."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.rpc import RpcError
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import settled
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.prompts import Prompts
from bridge.downstream.resources import Resources
from bridge.downstream.uris import labels
from bridge.upstream.protocol import RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED
from tests.downstream.sources import MODERN, STAMP, StandIn, addressed, refused

LEGACY = Asker(modern=False)
NEW = Asker()
NO_SUBSCRIPTIONS = {"resources": {}}


def resources_of(*servers: StandIn) -> Resources:
    return Resources(addressed(*servers), STAMP, settled)


async def uris(resources: Resources) -> list[str]:
    return [one["uri"] for one in (await resources.list_resources(LEGACY, {}))["resources"]]


async def templates(resources: Resources) -> list[str]:
    listed = await resources.list_templates(LEGACY, {})
    return [one["uriTemplate"] for one in listed["resourceTemplates"]]


async def read(resources: Resources, uri: str, asker: Asker = LEGACY) -> Any:
    answer = await resources.read_resource(asker, {"uri": uri})
    return [(one["uri"], one["text"]) for one in answer["contents"]]


async def test_uris_of_different_servers_stay_as_they_are() -> None:
    one, two = StandIn("one", resources=["x://b", "x://a"]), StandIn("two", resources=["y://a"])
    resources = resources_of(one, two)

    listed = await resources.list_resources(LEGACY, {})

    assert listed["resources"][0] == {"uri": "x://a", "name": "X://A", "unknown": 1}
    assert await uris(resources) == ["x://a", "x://b", "y://a"]
    assert await read(resources, "y://a") == [("y://a", "y://a of two")]
    assert one.asked == []


async def test_uri_that_two_claim_is_rewritten_for_both_and_back() -> None:
    one, two = StandIn("one", resources=["x://a", "x://b"]), StandIn("two", resources=["x://a"])
    resources = resources_of(one, two)

    assert await uris(resources) == ["one+x://a", "two+x://a", "x://b"]
    assert await read(resources, "two+x://a") == [("two+x://a", "x://a of two")]
    assert await read(resources, "one+x://a") == [("one+x://a", "x://a of one")]
    assert await read(resources, "x://b") == [("x://b", "x://b of one")]


async def test_app_that_two_claim_stays_under_its_scheme() -> None:
    one, two = StandIn("one", resources=["ui://clock"]), StandIn("two", resources=["ui://clock"])
    resources = resources_of(one, two)

    assert await uris(resources) == ["ui://one+clock", "ui://two+clock"]
    assert await read(resources, "ui://two+clock") == [("ui://two+clock", "ui://clock of two")]


async def test_template_that_two_claim_is_rewritten_for_both_whatever_its_variables() -> None:
    one = StandIn("one", templates=["x://{id}/data", "y://{id}"], stands={"x://1/data": "1 of one"})
    two = StandIn("two", templates=["x://{name}/data"], stands={"x://1/data": "1 of two"})
    resources = resources_of(one, two)

    assert await templates(resources) == ["one+x://{id}/data", "two+x://{name}/data", "y://{id}"]
    assert await read(resources, "two+x://1/data") == [("two+x://1/data", "1 of two")]
    assert await read(resources, "one+x://1/data") == [("one+x://1/data", "1 of one")]


async def test_resource_that_a_template_of_another_makes_is_claimed_by_both() -> None:
    one = StandIn("one", resources=["x://a", "z://a"])
    two = StandIn("two", templates=["x://{name}"], stands={"x://a": "a of two", "x://b": "b"})
    resources = resources_of(one, two)

    assert await uris(resources) == ["one+x://a", "z://a"]
    assert await templates(resources) == ["two+x://{name}"]
    assert await read(resources, "two+x://a") == [("two+x://a", "a of two")]
    assert await read(resources, "two+x://b") == [("two+x://b", "b")]
    assert await read(resources, "one+x://a") == [("one+x://a", "x://a of one")]


async def test_what_a_template_makes_is_read_from_its_server_alone() -> None:
    one, two = StandIn("one"), StandIn("two", templates=["x://{name}"], stands={"x://a": "here"})

    assert await read(resources_of(one, two), "x://a") == [("x://a", "here")]
    assert one.asked == []


async def test_what_nobody_lists_is_asked_for_in_order_until_one_knows_it() -> None:
    one, two, three = (StandIn(name, stands={"x://a": name}) for name in ("one", "two", "three"))
    one.stands.clear()

    assert await read(resources_of(one, two, three), "x://a") == [("x://a", "two")]
    assert [len(server.asked) for server in (one, two, three)] == [1, 1, 0]


async def test_what_was_seen_lately_is_read_from_the_server_that_sent_it() -> None:
    one, two = (StandIn(name, stands={"x://a": name}) for name in ("one", "two"))
    addresses = addressed(one, two)
    resources = Resources(addresses, STAMP, settled)
    link = {"type": "resource_link", "uri": "x://a", "name": "a"}

    sent = addresses.answer("two", {"content": [link]})
    again = addresses.answer("one", {"content": [link]})

    assert sent == {"content": [link]}
    assert again == {"content": [{**link, "uri": "one+x://a"}]}, "it is not the same resource"
    assert await read(resources, "x://a") == [("x://a", "two")]
    assert await read(resources, "one+x://a") == [("one+x://a", "one")]


@pytest.mark.parametrize("number", [1, 2])
async def test_missing_resource_is_not_found_in_words_that_name_it(number: int) -> None:
    servers = [StandIn(f"s{n}") for n in range(number)]

    with pytest.raises(RpcError) as caught:
        await read(resources_of(*servers), "x://gone")

    assert (caught.value.code, caught.value.error["data"]) == (-32002, {"uri": "x://gone"})


async def test_modern_servers_word_for_missing_is_understood_and_other_words_pass() -> None:
    server = StandIn("one")
    resources = resources_of(server)

    async def refusal(code: int, data: Any) -> Any:
        server.request = refusing(code, data)  # type: ignore[method-assign]
        with pytest.raises(RpcError) as caught:
            await read(resources, "x://a")

        return caught.value.error

    missing = await refusal(-32602, {"uri": "x://a"})
    assert missing == {"code": -32002, "message": "no", "data": {"uri": "x://a"}}
    assert await refusal(-32602, None) == {"code": -32602, "message": "no"}
    assert await refusal(-32042, {"k": 1}) == {"code": -32042, "message": "no", "data": {"k": 1}}


def refusing(code: int, data: Any) -> Any:
    async def request(*request: Any) -> Any:
        raise refused(code, "no", data)

    return request


async def test_fault_of_one_server_is_told_when_no_other_has_the_resource() -> None:
    one, two = StandIn("one"), StandIn("two")
    one.is_away = True

    with pytest.raises(RpcError, match='upstream "one" is not available'):
        await read(resources_of(one, two), "x://gone")

    two.stands["x://gone"] = "there"
    assert await read(resources_of(one, two), "x://gone") == [("x://gone", "there")]


async def test_hints_for_caches_are_the_servers_where_it_gave_some() -> None:
    server = StandIn("one", resources=["x://a"])
    resources = resources_of(server)

    plain = await resources.read_resource(NEW, {"uri": "x://a"})
    server.answers["resources/read"] = {"contents": [], "ttlMs": 500, "cacheScope": "public"}
    hinted = await resources.read_resource(NEW, {"uri": "x://a"})
    legacy = await resources.read_resource(LEGACY, {"uri": "x://a"})

    assert plain == {
        "contents": [{"uri": "x://a", "text": "x://a of one", "unknown": 2}],
        "unknown": 3,
        "ttlMs": 0,
        "cacheScope": "private",
        **MODERN,
    }
    assert hinted == {"contents": [], "ttlMs": 500, "cacheScope": "public", **MODERN}
    assert legacy == {"contents": []}


async def test_following_goes_to_the_owner_by_its_own_words_and_news_come_back_in_ours() -> None:
    one, two = StandIn("one", resources=["x://a"]), StandIn("two", resources=["x://a", "y://b"])
    resources, told = resources_of(one, two), list[Any]()
    resources.on_news.append(lambda *news: told.append(news))

    await resources.subscribe(LEGACY, "two+x://a")
    await resources.subscribe(NEW, "two+x://a")
    await resources.subscribe(LEGACY, "y://b")
    two.tell(RESOURCE_UPDATED, uri="x://a", title="T")
    one.tell(RESOURCE_UPDATED, uri="x://a")
    two.tell(RESOURCE_UPDATED, uri="y://b")
    await resources.unsubscribe(LEGACY, "two+x://a")

    assert (one.followed, two.followed) == ({}, {"x://a": 1, "y://b": 1})
    assert told == [
        (RESOURCE_UPDATED, {"uri": "two+x://a", "title": "T"}),
        (RESOURCE_UPDATED, {"uri": "one+x://a"}),
        (RESOURCE_UPDATED, {"uri": "y://b"}),
    ]


async def test_who_follows_no_more_is_counted_and_unknown_ones_are_not() -> None:
    one = StandIn("one", resources=["x://a"])
    resources = resources_of(one)
    await resources.subscribe(LEGACY, "x://a")

    for _ in range(3):
        await resources.unsubscribe(LEGACY, "x://a")

    assert one.followed == {"x://a": 0}


async def test_news_come_under_the_uri_that_was_followed_though_it_reads_otherwise_now() -> None:
    one, two = StandIn("one", resources=["x://a"]), StandIn("two")
    resources, told = resources_of(one, two), list[Any]()
    await resources.subscribe(LEGACY, "x://a")
    two.relist(resources=[{"uri": "x://a", "name": "a"}])
    resources.on_news.append(lambda *news: told.append(news))

    one.tell(RESOURCE_UPDATED, uri="x://a")

    assert told == [(RESOURCE_UPDATED, {"uri": "x://a"})]


async def test_link_to_what_another_server_lists_leads_to_the_one_that_sent_it() -> None:
    one = StandIn("one", resources=["x://a"])
    two = StandIn("two", stands={"x://a": "a of two"})
    addresses = addressed(one, two)
    resources = Resources(addresses, STAMP, settled)

    sent = addresses.answer("two", {"content": [{"type": "resource_link", "uri": "x://a"}]})

    assert sent == {"content": [{"type": "resource_link", "uri": "two+x://a"}]}
    assert await read(resources, "two+x://a") == [("two+x://a", "a of two")]
    assert await read(resources, "x://a") == [("x://a", "x://a of one")]


async def test_following_what_nobody_has_or_tells_of_is_refused() -> None:
    mute = StandIn("mute", resources=["x://a"], capabilities=NO_SUBSCRIPTIONS)
    resources = resources_of(mute, StandIn("able"))

    for uri in ("x://a", "x://gone"):
        with pytest.raises(JsonRpcError, match="cannot be followed"):
            await resources.subscribe(LEGACY, uri)

    with pytest.raises(JsonRpcError, match="there is no method") as found:
        await resources_of(mute).subscribe(LEGACY, "x://a")

    assert found.value.code == -32601
    assert resources_of(mute).capabilities() == {"resources": {"listChanged": True}}
    assert resources.capabilities() == {"resources": {"listChanged": True, "subscribe": True}}


async def test_clients_hear_when_they_read_something_else() -> None:
    one, two = StandIn("one", resources=["x://a"]), StandIn("two")
    resources, told = resources_of(one, two), list[Any]()
    resources.on_news.append(lambda *news: told.append(news))

    two.relist(prompts=[])
    assert told == []

    two.relist(resources=[{"uri": "x://a", "name": "a"}])
    assert told == [(RESOURCES_CHANGED, {}), (TOOLS_CHANGED, {})], (
        "and tools name their apps' resources"
    )
    assert await uris(resources) == ["one+x://a", "two+x://a"]


async def test_uri_is_rewritten_wherever_it_appears_and_nothing_else_is_touched() -> None:
    one, two = StandIn("one", resources=["x://a", "x://b"]), StandIn("two", resources=["x://a"])
    addresses = addressed(one, two)
    answer = {
        "content": [
            {"type": "text", "text": "x://a"},
            {"type": "resource_link", "uri": "x://a", "name": "a", "odd": [1]},
            {"type": "resource_link", "uri": "z://b", "name": "b"},
            {"type": "resource", "resource": {"uri": "x://a", "text": "t"}, "odd": 2},
            "no block",
        ],
        "structuredContent": {"uri": "x://a"},
        "_meta": {"ui": {"resourceUri": "x://a", "odd": 3}, "odd": 4},
    }

    shown = addresses.answer("two", answer)

    content = answer["content"]
    assert shown == {
        **answer,
        "content": [
            content[0],
            {"type": "resource_link", "uri": "two+x://a", "name": "a", "odd": [1]},
            content[2],
            {"type": "resource", "resource": {"uri": "two+x://a", "text": "t"}, "odd": 2},
            "no block",
        ],
        "_meta": {"ui": {"resourceUri": "two+x://a", "odd": 3}, "odd": 4},
    }
    assert addresses.definition("one", {"name": "t", "_meta": {"ui/resourceUri": "x://a"}}) == {
        "name": "t",
        "_meta": {"ui/resourceUri": "one+x://a"},
    }
    assert addresses.answer("local", answer) is answer


async def test_where_one_server_has_resources_answers_go_through_untouched() -> None:
    one, two = StandIn("one", resources=["x://a"]), StandIn("two", capabilities={})
    answer = {"content": [{"type": "resource_link", "uri": "x://q", "name": "q"}]}

    assert addressed(one, two).answer("one", answer) is answer


async def test_prompt_messages_are_rewritten_like_results() -> None:
    one = StandIn("one", resources=["x://a"], prompts=["p"])
    two = StandIn("two", resources=["x://a"])
    embedded = {"type": "resource", "resource": {"uri": "x://a", "text": "t"}}
    one.answers["prompts/get"] = {"messages": [{"role": "user", "content": embedded}, 7]}

    answer = await Prompts(addressed(one, two), STAMP, settled).get_prompt(
        LEGACY, {"name": "one__p"}
    )

    resource = {"uri": "one+x://a", "text": "t"}
    message = {"role": "user", "content": {"type": "resource", "resource": resource}}
    assert answer == {"messages": [message, 7]}


async def test_uri_that_only_looks_labelled_is_still_asked_for_as_it_is() -> None:
    git, other = StandIn("git", stands={"git+ssh://h": "as it is"}), StandIn("other")

    assert await read(resources_of(other, git), "git+ssh://h") == [("git+ssh://h", "as it is")]


def test_labels_are_legal_in_a_scheme_and_no_two_are_the_same() -> None:
    assert labels(["my_files", "My-Files", "7", "a"]) == {
        "my_files": "my-files",
        "My-Files": "my-files.2",
        "7": "s7",
        "a": "a",
    }
