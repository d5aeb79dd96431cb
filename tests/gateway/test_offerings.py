"""Prompts, resources, completions and news through a whole gateway: both eras on both sides."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
)

from bridge.config.load import load
from bridge.gateway.assembly import assemble
from bridge.gateway.live import running
from bridge.gateway.offerings import problems_beside, to_handlers
from tests import nursery
from tests.conftest import Everything
from tests.downstream.fronts import (
    ERAS,
    Piped,
    Transport,
    Where,
    answering,
    connected,
    serving,
)
from tests.processes import started, unused_port
from tests.waiting import eventually

# Subscribing as legacy clients do is deprecated in the SDK, and asked for here.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

TRANSPORTS: tuple[Transport, ...] = ("http", "stdio")
BACKS = ("modern", "legacy")
SHARED = "shared://text"
ROOT = Path(__file__).resolve().parent.parent.parent


def server(name: str, era: str, *options: str) -> dict[str, Any]:
    argv = nursery.server("-m", "tests.servers.library", "--name", name, "--era", era, *options)
    return {"command": argv, "cwd": str(ROOT), "connect_timeout": "60s"}


@asynccontextmanager
async def gateway(
    place: Path, front: Transport, upstreams: dict[str, Any], **more: Any
) -> AsyncIterator[Where]:
    """A gateway over these upstreams, behind a front."""
    config = place / "bridge.yaml"
    config.write_text(json.dumps({"upstreams": upstreams, **more}), "utf-8")
    async with running(assemble(load([config]))) as live:
        handlers = to_handlers(live.assembly, partial(live.gathered, 60.0))
        if front == "stdio":
            yield Piped(handlers)
        else:
            async with serving(handlers, front) as url:
                yield url


@pytest.fixture
def two(tmp_path: Path) -> Callable[..., Any]:
    """A gateway over two servers of one era that claim the same resource."""

    def make(front: Transport, era: str) -> Any:
        return gateway(tmp_path, front, {"a": server("a", era), "b": server("b", era)})

    return make


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_all_that_is_beside_the_tools_reaches_its_server(
    two: Callable[..., Any], front: Transport, era: str, back: str
) -> None:
    async with two(front, back) as where, connected(front, where, era) as client:
        prompts = [one.name for one in (await client.list_prompts()).prompts]
        resources = [one.uri for one in (await client.list_resources()).resources]
        listed = (await client.list_resource_templates()).resource_templates
        templates = [one.uri_template for one in listed]
        got = await client.get_prompt("b__prompt_1", {"word": "hello"})
        read = await client.read_resource("b+shared://text")
        made = await client.read_resource("a+shared://made/x")
        own = await client.read_resource("b://0")
        linked = await client.call_tool("b__link", {})
        about_prompt = await _completed(client, PromptReference(name="a__prompt_0"))
        template = ResourceTemplateReference(uri="b+shared://made/{word}")
        about_template = await _completed(client, template)

    assert prompts == ["a__prompt_0", "a__prompt_1", "b__prompt_0", "b__prompt_1"]
    assert resources == ["a+shared://text", "a://0", "b+shared://text", "b://0"]
    assert templates == ["a+shared://made/{word}", "b+shared://made/{word}"]
    said, embedded = (message.content for message in got.messages)
    assert said.text == "prompt_1 of b: hello"  # type: ignore[union-attr]
    assert embedded.resource.uri == "b+shared://text"  # type: ignore[union-attr]
    assert _read(read) == ("b+shared://text", "shared://text of b")
    assert _read(made) == ("a+shared://made/x", "shared://made/x of a")
    assert _read(own) == ("b://0", "b://0 of b")
    uris = [getattr(one, "uri", None) or one.resource.uri for one in linked.content]  # type: ignore[union-attr]
    assert uris == ["b+shared://text", "b://0", "b+shared://text"]
    assert (about_prompt, about_template) == (["prompt_0 w"], ["shared://made/{word} w"])


async def _completed(client: Client, ref: Any) -> list[str]:
    return (await client.complete(ref, {"name": "word", "value": "w"})).completion.values


def _read(result: Any) -> tuple[str, str]:
    [content] = result.contents
    return content.uri, content.text


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("era", ERAS)
async def test_missing_resource_is_missing_in_the_words_of_the_clients_era(
    two: Callable[..., Any], era: str, back: str
) -> None:
    async with two("http", back) as where, connected("http", where, era) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("gone://x")

    code = -32002 if era == "legacy" else -32602
    assert (caught.value.error.code, caught.value.error.data) == (code, {"uri": "gone://x"})


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_legacy_client_hears_of_its_resource_and_of_changed_lists(
    two: Callable[..., Any], front: Transport, back: str
) -> None:
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    def methods() -> list[str]:
        return [getattr(one, "method", "") for one in heard]

    async with (
        two(front, back) as where,
        connected(front, where, "legacy", message_handler=hear) as client,
    ):
        await client.subscribe_resource("b+shared://text")
        await client.call_tool("a__touch", {})
        await client.call_tool("b__touch", {})
        await eventually(lambda: "notifications/resources/updated" in methods())
        updated = [one for one in heard if isinstance(one, ResourceUpdatedNotification)]
        assert [one.params.uri for one in updated] == ["b+shared://text"]

        await client.call_tool("a__grow", {})
        await eventually(partial(_has_grown, client))
        await eventually(lambda: "notifications/prompts/list_changed" in methods())
        await eventually(lambda: "notifications/resources/list_changed" in methods())

        await client.unsubscribe_resource("b+shared://text")
        await eventually(partial(_follows_nothing, client))


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_modern_client_hears_what_its_subscription_asks_for(
    two: Callable[..., Any], front: Transport, back: str
) -> None:
    async with two(front, back) as where, connected(front, where, ERAS[1]) as client:
        wanted = client.listen(
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=["b+shared://text"],
        )
        async with wanted as subscription:
            await client.call_tool("a__touch", {})
            await client.call_tool("b__touch", {})
            await client.call_tool("a__grow", {})
            events: set[ServerEvent] = set()
            with anyio.fail_after(30):
                while len(events) < 3:
                    events.add(await anext(subscription))

        assert events == {
            ResourceUpdated(uri="b+shared://text"),
            PromptsListChanged(),
            ResourcesListChanged(),
        }
        await eventually(partial(_follows_nothing, client))


async def _has_grown(client: Client) -> bool:
    listed = await client.list_prompts(cache_mode="bypass")
    return "a__prompt_2" in [one.name for one in listed.prompts]


async def _follows_nothing(client: Client) -> bool:
    return (await client.call_tool("b__followed", {})).structured_content == {}


async def test_client_that_leaves_follows_nothing_any_more(two: Callable[..., Any]) -> None:
    async with two("http", "legacy") as where, connected("http", where, "legacy") as other:
        async with connected("http", where, "legacy") as client:
            await client.subscribe_resource("b+shared://text")
            assert not await _follows_nothing(other)

        await eventually(partial(_follows_nothing, other))


@pytest.mark.parametrize("era", ERAS)
async def test_only_what_a_server_has_is_declared(
    tmp_path: Path, era: str, odd_server: Callable[..., list[str]]
) -> None:
    upstreams = {"odd": {"command": odd_server("noise"), "connect_timeout": "60s"}}
    mode = era if era == "legacy" else "auto"  # which asks the server what it has
    async with (
        gateway(tmp_path, "http", upstreams) as where,
        connected("http", where, mode) as client,
    ):
        declared = client.server_capabilities.model_dump(exclude_none=True)
        with pytest.raises(MCPError, match="no method"):
            await client.list_prompts()

    assert declared == {"tools": {"list_changed": True}}


@pytest.mark.parametrize("era", ERAS)
async def test_what_the_servers_have_is_declared_as_one(two: Callable[..., Any], era: str) -> None:
    mode = era if era == "legacy" else "auto"  # which asks the server what it has
    async with two("http", "legacy") as where, connected("http", where, mode) as client:
        declared = client.server_capabilities.model_dump(exclude_none=True)

    assert declared == {
        "tools": {"list_changed": True},
        "prompts": {"list_changed": True},
        "resources": {"list_changed": True, "subscribe": True},
        "completions": {},
    }


async def test_upstreams_of_both_eras_stand_side_by_side(tmp_path: Path) -> None:
    upstreams = {"old": server("old", "legacy"), "new": server("new", "modern")}
    async with gateway(tmp_path, "http", upstreams) as where:
        for era in ERAS:
            async with connected("http", where, era) as client:
                read = [await client.read_resource(f"{name}+{SHARED}") for name in upstreams]
                assert [text for _, text in map(_read, read)] == [
                    "shared://text of old",
                    "shared://text of new",
                ]


@pytest.mark.parametrize("era", ERAS)
async def test_http_upstream_tells_of_its_changes(tmp_path: Path, era: str) -> None:
    port = unused_port()
    argv = server("a", "legacy", "--http", str(port))["command"]
    upstreams = {"a": {"url": f"http://127.0.0.1:{port}/mcp"}}
    async with (
        started(argv, port=port),
        gateway(tmp_path, "http", upstreams) as where,
        connected("http", where, era) as client,
    ):
        assert _read(await client.read_resource(SHARED)) == (SHARED, "shared://text of a")
        await client.call_tool("a__grow", {})
        await eventually(partial(_has_grown, client))


@pytest.mark.parametrize("era", ERAS)
async def test_reference_server_is_served_whole(
    tmp_path: Path, everything: Everything, era: str
) -> None:
    upstreams = {"all": {"command": everything.stdio, "connect_timeout": "60s"}}
    async with (
        gateway(tmp_path, "http", upstreams) as where,
        connected("http", where, era) as client,
    ):
        prompts = {one.name for one in (await client.list_prompts()).prompts}
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        read = [await client.read_resource(one.uri) for one in resources]
        got = await client.get_prompt("all__simple-prompt")

    assert "all__args-prompt" in prompts
    assert len(templates) > 0
    assert [_read(one)[0] for one in read] == [one.uri for one in resources]
    assert len(got.messages) == 1


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_person_is_asked_for_a_prompt(
    tmp_path: Path, front: Transport, era: str, back: str
) -> None:
    argv = nursery.server("-m", "tests.servers.everything", "stdio", "--era", back)
    upstreams = {"all": {"command": argv, "cwd": str(ROOT), "connect_timeout": "60s"}}
    person = answering("accept", context="a rainy day")
    async with (
        gateway(tmp_path, front, upstreams) as where,
        connected(front, where, era, person) as client,
    ):
        await client.list_prompts()
        got = await client.get_prompt("all__test_input_required_result_prompt")

    [message] = got.messages
    assert "a rainy day" in message.content.text  # type: ignore[union-attr]


async def test_clients_own_session_hears_of_its_roots_and_ends_with_it(tmp_path: Path) -> None:
    config = tmp_path / "bridge.yaml"
    config.write_text(json.dumps({"upstreams": {"a": server("a", "legacy")}}), "utf-8")

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    async with running(assemble(load([config]))) as live:
        handlers = to_handlers(live.assembly, partial(live.gathered, 60.0))
        sessions = live.assembly.upstreams["a"].sessions
        async with serving(handlers) as url:
            async with connected("http", url, "legacy", list_roots_callback=roots) as client:
                before = await client.call_tool("a__roots", {})
                await client.send_roots_list_changed()

                async def changed() -> bool:
                    answer = await client.call_tool("a__roots", {})
                    return answer.structured_content == {"changed": 1}

                await eventually(changed)
                assert (before.structured_content, len(sessions)) == ({"changed": 0}, 1)

            await eventually(lambda: len(sessions) == 0)


async def test_names_that_two_prompts_would_have_and_chosen_sessions_are_told(
    tmp_path: Path,
) -> None:
    config = tmp_path / "bridge.yaml"
    upstreams = {
        "a": {**server("a", "legacy"), "prefix": ""},
        "b": {**server("b", "modern", "--no-tools"), "prefix": ""},
        "c": {**server("c", "legacy"), "session": "shared"},
        "d": {**server("d", "modern"), "session": "per-client", "most_sessions": 7},
    }
    config.write_text(json.dumps({"upstreams": upstreams}), "utf-8")
    async with running(assemble(load([config]))) as live:
        await live.settled()
        problems = problems_beside(live.assembly)
        chosen = {one.name: one.session for one in live.statuses()}
        most = {name: one.sessions.most for name, one in live.assembly.upstreams.items()}

    assert [problem.partition(":")[0] for problem in problems] == [
        'two prompts are named "prompt_0"',
        'two prompts are named "prompt_1"',
    ]
    assert chosen == {"a": "per-client", "b": "shared", "c": "shared", "d": "per-client"}
    assert most == {"a": 100, "b": 100, "c": 100, "d": 7}


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("era", ERAS)
async def test_log_messages_reach_the_client_that_wants_them(
    tmp_path: Path, era: str, back: str
) -> None:
    argv = nursery.server("-m", "tests.servers.everything", "stdio", "--era", back)
    upstreams = {"all": {"command": argv, "cwd": str(ROOT), "connect_timeout": "60s"}}
    heard: list[Any] = []

    async def hear(params: Any) -> None:
        heard.append(params.data)

    more = {"log_level": "info"} if era != "legacy" else {}
    async with (
        gateway(tmp_path, "http", upstreams) as where,
        connected("http", where, era, logging_callback=hear, **more) as client,
    ):
        if era == "legacy":
            await client.set_logging_level("info")

        await client.call_tool("all__test_logging_tool", {})
        await eventually(lambda: heard)
