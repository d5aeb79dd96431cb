"""Pictures, sounds and files of an MCP server: described, sent along, or kept under a name."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from bridge.agents.llm_agent import Agent
from bridge.calls.hooks import Hook
from bridge.config.load import load
from bridge.core.content import Args, Blob, Part, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.session import SessionKey
from bridge.core.tool import Tool
from bridge.demo.radar import radar_png
from bridge.downstream.handlers import Handlers
from bridge.gateway.assembly import assemble
from bridge.models.chat_request import MEDIA as ALL_MEDIA
from bridge.models.chat_request import to_messages
from bridge.models.scripted import ScriptedModel
from bridge.stores.database import open_database
from bridge.stores.memory import InMemoryArtifactService
from bridge.stores.sql import SqlSessionService
from bridge.tools.artifacts import load_artifacts
from bridge.tools.catalog import Catalog
from bridge.upstream.media import (
    LARGEST_SHOWN,
    MOST_MEDIA,
    artifact_name,
    keep_media,
    shown_media,
)
from bridge.upstream.results import to_response
from bridge.upstream.toolset import MCPToolset
from tests.agents.talk import Talk, asked, brief, call, told
from tests.agents.tools import Probe
from tests.downstream.fronts import serving

KEY = SessionKey("bridge", "local", "default")
TOKYO = Blob("image/png", radar_png("Tokyo"))
LIMA = Blob("image/png", radar_png("Lima"))
SIZE = len(TOKYO.data)
DESCRIBED = f'Rain around Tokyo now.\n[MCP image: mimeType="image/png", size={SIZE} bytes]'


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def block(kind: str, mime_type: Any, data: Any) -> dict[str, Any]:
    found = {"type": kind, "data": b64(data) if isinstance(data, bytes) else data}
    return found if mime_type is None else {**found, "mimeType": mime_type}


def embedded(**resource: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "f:/x", **resource}}


PNG = block("image", "image/png", b"png")
WAV = block("audio", "audio/wav", b"wav")
PDF = embedded(mimeType="application/pdf", blob=b64(b"%PDF"))
NOTES = embedded(mimeType="text/plain", blob=b64(b"notes"))
ANSWER: Result = {
    "content": [{"type": "text", "text": "See:"}, PNG, None, WAV, PDF, NOTES, "?"],
    "_meta": {"kept": True},
}


class Shelf:
    """Artifacts that notes what is saved; full, it takes no more."""

    def __init__(self, room: int = 100) -> None:
        self.saved: list[tuple[str, Part]] = []
        self.room = room

    async def save(self, name: str, part: Part) -> int:
        if len(self.saved) == self.room:
            raise OSError("no space left")

        self.saved.append((name, part))
        return len(self.saved)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def test_pictures_and_sounds_are_shown_in_their_order() -> None:
    resource = embedded(mimeType="IMAGE/JPEG; q=1", blob=b64(b"jpg"))
    answer = {"content": [WAV, PDF, resource, NOTES, PNG]}

    assert shown_media(answer) == (
        Blob("audio/wav", b"wav"),
        Blob("image/jpeg", b"jpg"),
        Blob("image/png", b"png"),
    )


@pytest.mark.parametrize(
    "content",
    [
        None,
        "text",
        [{"type": "text", "text": "x"}],
        [block("image", "image/png", "not base64!")],
        [block("image", "image/png", None)],
        [block("image", "image/png", b"")],
        [block("image", None, b"png")],
        [block("image", "picture", b"png")],
        [block("image", 'image/png"\n', b"png")],
        [block("image", "image/svg+xml", b"<svg/>")],
        [embedded(mimeType="image/png", text="no blob")],
        [{"type": "resource", "resource": None}],
        [{"type": "resource_link", "uri": "f:/x.png", "mimeType": "image/png"}],
        [{"type": "hologram", "mimeType": "image/png", "data": b64(b"png")}],
    ],
)
def test_what_no_model_takes_for_a_picture_is_not_shown(content: Any) -> None:
    assert shown_media({"content": content}) == ()


def test_media_that_would_be_too_much_are_not_shown() -> None:
    half, more = bytes(LARGEST_SHOWN // 2), bytes(LARGEST_SHOWN // 2 + 1)
    large = [block("image", "image/png", data) for data in (half, more, half, b"x")]
    many = [block("image", "image/png", b"x")] * (MOST_MEDIA + 1)

    assert [len(blob.data) for blob in shown_media({"content": large})] == [len(half)] * 2
    assert len(shown_media({"content": many})) == MOST_MEDIA


async def test_all_that_the_text_only_describes_is_kept_and_named_in_it() -> None:
    shelf, before = Shelf(), copy.deepcopy(ANSWER)
    kept = await keep_media(ANSWER, "look", shelf)

    png, wav, pdf = (f"look_{digest(data)}" for data in (b"png", b"wav", b"%PDF"))
    assert shelf.saved == [
        (f"{png}.png", Part(inline_data=Blob("image/png", b"png"))),
        (f"{wav}.wav", Part(inline_data=Blob("audio/wav", b"wav"))),
        (f"{pdf}.pdf", Part(inline_data=Blob("application/pdf", b"%PDF"))),
    ]
    assert to_response(ANSWER, kept)["output"].split("\n") == [
        "See:",
        f'[MCP image: mimeType="image/png", size=3 bytes, artifact="{png}.png"]',
        "[MCP content: unavailable]",
        f'[MCP audio: mimeType="audio/wav", size=3 bytes, artifact="{wav}.wav"]',
        '[MCP embedded resource: uri="f:/x", mimeType="application/pdf", size=4 bytes, '
        f'artifact="{pdf}.pdf"]',
        '[MCP embedded resource: uri="f:/x", mimeType="text/plain"]',
        "notes",
        "[MCP content: unsupported]",
    ]
    assert before == ANSWER


async def test_the_names_stand_beside_a_structured_value() -> None:
    answer = {"content": [PNG, PNG, WAV], "structuredContent": {"rain": True}}
    kept = await keep_media(answer, "look", Shelf())

    assert to_response(answer, kept) == {
        "output": {"rain": True},
        "artifacts": [f"look_{digest(b'png')}.png", f"look_{digest(b'wav')}.wav"],
    }
    assert to_response(answer) == {"output": {"rain": True}}


async def test_the_same_picture_twice_is_saved_once_and_named_twice() -> None:
    shelf = Shelf()
    kept = await keep_media({"content": [PNG, WAV, PNG]}, "look", shelf)

    assert [name for name, _ in shelf.saved] == [kept[0], kept[1]]
    assert kept[2] == kept[0]


async def test_what_cannot_be_saved_is_described_and_the_answer_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = await keep_media(ANSWER, "look", Shelf(room=1))

    assert list(kept) == [1]
    assert f'"look_{digest(b"wav")}.wav" could not be saved' in caplog.text
    assert '[MCP audio: mimeType="audio/wav", size=3 bytes]' in to_response(ANSWER, kept)["output"]


async def test_of_very_many_files_some_are_kept() -> None:
    many = [block("image", "image/png", bytes([n])) for n in range(MOST_MEDIA + 1)]

    assert list(await keep_media({"content": many}, "look", Shelf())) == list(range(MOST_MEDIA))


@pytest.mark.parametrize(
    ("mime_type", "suffix"),
    [
        ("image/png", "png"),
        ("audio/x-wav", "wav"),
        ("image/svg+xml", "svg"),
        ("application/vnd.ms-excel", "bin"),
        ("application/../../etc", "bin"),
        ("", "bin"),
    ],
)
def test_the_suffix_says_what_it_is_where_that_is_short(mime_type: str, suffix: str) -> None:
    assert artifact_name("a", Blob(mime_type, b"x")) == f"a_{digest(b'x')}.{suffix}"


def test_a_server_cannot_name_its_tool_so_that_the_user_gets_its_file_everywhere() -> None:
    name = artifact_name("user:../x", Blob("image/png", b"x"))

    assert name.startswith("user____x_")
    assert name.endswith(f"_{digest(b'x')}.png")


@asynccontextmanager
async def demo(command: list[str], **options: Any) -> AsyncIterator[MCPToolset]:
    async with MCPToolset(command, connect_timeout=60, **options) as toolset:
        yield toolset


RADAR = call("c", "radar", city="Tokyo")


@pytest.mark.spec("system-45")
async def test_by_default_a_model_reads_of_a_picture_that_a_client_gets(
    demo_command: list[str],
) -> None:
    model = ScriptedModel([RADAR, "It rains."])
    async with demo(demo_command) as toolset:
        await Talk(Agent("w", model, tools=[toolset])).say()

    assert told(model.requests[1])[-1] == [("answer", "c", "radar", {"output": DESCRIBED})]


@pytest.mark.spec("system-45")
@pytest.mark.parametrize("media", ["text", "parts", "artifacts"])
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_gets_the_picture_whatever_a_model_would_get(
    demo_command: list[str], media: Any, era: str
) -> None:
    async with demo(demo_command, media=media) as toolset:
        catalog = Catalog(toolset)
        await catalog.refresh(local_context())
        async with serving(Handlers(catalog)) as url, Client(url, mode=era) as client:
            result = await client.call_tool("radar", {"city": "Tokyo"})

    text, image = result.content
    assert text.text == "Rain around Tokyo now."
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", TOKYO.data)


async def test_parts_reach_the_model_beside_the_answer_and_stay_in_the_history(
    demo_command: list[str], tmp_path: Path
) -> None:
    model = ScriptedModel([RADAR, "It rains.", "As I said."])
    async with (
        demo(demo_command, media="parts") as toolset,
        open_database(f"sqlite:///{tmp_path / 'x.db'}") as database,
    ):
        agent = Agent("w", model, tools=[toolset])
        talk = Talk(agent, sessions=SqlSessionService(database))
        events = await talk.say("Does it rain?")
        await talk.say("Really?")

    shown = [("answer", "c", "radar", {"output": DESCRIBED}), TOKYO]
    assert brief(events[1]) == shown
    assert told(model.requests[1])[-1] == shown
    assert told(model.requests[2])[2] == shown
    # What a chat-completions API gets: the answer as text, then the picture in a message.
    said = to_messages(model.requests[1], ALL_MEDIA)[-2:]
    assert json.loads(said[0]["content"]) == {"output": DESCRIBED}
    assert [item["type"] for item in said[1]["content"]] == ["text", "image_url"]
    assert said[1]["content"][1]["image_url"]["url"].endswith(b64(TOKYO.data))


async def test_parts_stay_with_their_own_answer_when_another_call_is_resumed(
    demo_command: list[str],
) -> None:
    calls = [call("a", "radar", city="Tokyo"), call("w", "work"), call("b", "radar", city="Lima")]
    model = ScriptedModel([asked(*calls), "Both.", "Still both."])

    async def needs_yes(name: str, args: Args) -> bool:
        return args == {"city": "Tokyo"}

    async with demo(demo_command, media="parts", require_confirmation=needs_yes) as toolset:
        talk = Talk(Agent("w", model, tools=[toolset, Probe("work")]))
        await talk.say("Compare.")
        await talk.decide(radar=True)
        await talk.say("Again.")

    for request in model.requests[1:]:
        (answers,) = [parts for parts in told(request) if isinstance(parts[0], tuple)][1:2]
        assert [part if isinstance(part, Blob) else part[1] for part in answers] == [
            *("a", TOKYO, "w", "b", LIMA)
        ]


class Redacting(Hook):
    """Lets no answer of a server through as it is."""

    async def after_tool(
        self,
        ctx: ToolContext,
        tool: Tool,
        args: Args,
        result: Result | None,
        error: Exception | None,
    ) -> Result | None:
        return {"output": "redacted"}


async def test_a_hook_that_replaces_an_answer_replaces_its_media(demo_command: list[str]) -> None:
    model = ScriptedModel([RADAR, "No."])
    async with demo(demo_command, media="parts") as toolset:
        events = await Talk(Agent("w", model, tools=[toolset], hooks=[Redacting()])).say()

    assert brief(events[1]) == [("answer", "c", "radar", {"output": "redacted"})]


async def test_a_failed_call_has_no_media(demo_command: list[str]) -> None:
    model = ScriptedModel([call("c", "storm_alert", city="Tokyo"), "No."])
    async with demo(demo_command, media="parts") as toolset:
        events = await Talk(Agent("w", model, tools=[toolset])).say()

    ((_, _, _, response),) = brief(events[1])
    assert response["error"].startswith("Tool execution failed.")


@pytest.mark.spec("system-47")
async def test_artifacts_are_named_in_the_answer_and_seen_when_they_are_loaded(
    demo_command: list[str],
) -> None:
    name = f"w__radar_{digest(TOKYO.data)}.png"
    load = call("l", "load_artifacts", artifact_names=[name])
    model = ScriptedModel([call("c", "w__radar", city="Tokyo"), load, "It rains."])
    artifacts = InMemoryArtifactService()
    async with demo(demo_command, media="artifacts", tool_name_prefix="w__") as toolset:
        talk = Talk(Agent("w", model, tools=[toolset, load_artifacts]), artifacts=artifacts)
        events = await talk.say()

    output = f'{DESCRIBED.removesuffix("]")}, artifact="{name}"]'
    assert brief(events[1]) == [("answer", "c", "w__radar", {"output": output})]
    assert events[1].actions.artifact_delta == {name: 1}
    assert await artifacts.load(KEY, name) == Part(inline_data=TOKYO)
    assert told(model.requests[2])[-1] == [f"Artifact {name} is:", TOKYO]


async def test_without_an_artifact_service_a_picture_is_described(
    demo_command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([RADAR, "It rains."])
    async with demo(demo_command, media="artifacts") as toolset:
        events = await Talk(Agent("w", model, tools=[toolset])).say()

    assert brief(events[1]) == [("answer", "c", "radar", {"output": DESCRIBED})]
    assert events[1].actions.artifact_delta == {}
    assert "could not be saved" not in caplog.text, "nothing is wrong: there is nowhere to save"


async def test_a_file_says_what_a_model_gets(demo_command: list[str], tmp_path: Path) -> None:
    upstreams = {"weather": {"command": demo_command, "media": "parts", "connect_timeout": "60s"}}
    (tmp_path / "bridge.yaml").write_text(json.dumps({"upstreams": upstreams}), "utf-8")
    assembly = assemble(load([tmp_path / "bridge.yaml"]))
    model = ScriptedModel([call("c", "weather__radar", city="Tokyo"), "It rains."])
    try:
        events = await Talk(Agent("w", model, tools=[assembly.toolset])).say()
    finally:
        await assembly.aclose()

    assert brief(events[1])[1] == TOKYO
