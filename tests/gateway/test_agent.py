"""From settings to an agent that runs: its model, its tools, where its sessions rest."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.questions import decision, questions_in
from bridge.agents.runner import Message
from bridge.config.agent import AgentSettings, ModelSettings, OpenAICompatibleSettings
from bridge.config.load import from_mapping, load
from bridge.config.settings import Settings
from bridge.core.event import Event
from bridge.core.session import SessionKey
from bridge.errors import ConfigError, SessionNotFound, StoreError
from bridge.gateway.agent import RunningAgent, open_agent, open_stores, state_directory, to_model
from bridge.models.openai_compatible import OpenAICompatible
from tests import nursery
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
ADD = ["tests.gateway.functions:add"]


def demo() -> dict[str, Any]:
    return {"command": nursery.server("-m", "bridge.demo"), "env": {"PACE": "0"}}


def settings_of(place: Path, **given: Any) -> Settings:
    """Settings whose sessions rest in `place`, with one local tool unless others are given."""
    agent = {"name": "clerk", "store": str(place / "agent.db"), **given.pop("agent", {})}
    return from_mapping({"tools": ADD, "agent": agent, **given}, place)


async def said(agent: RunningAgent, message: Message, session: str = "s") -> list[Event]:
    """One turn; the session is made where there is none."""
    try:
        await agent.runner.session("local", session)
    except SessionNotFound:
        await agent.runner.sessions.create(SessionKey("clerk", "local", session))

    async with aclosing(agent.runner.run(message, session_id=session)) as events:
        return [event async for event in events]


def text_of(event: Event) -> str:
    return "".join(part.text or "" for part in event.parts)


async def test_agent_of_the_settings_calls_the_configured_tools(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, upstreams={"weather": demo()})
    async with open_agent(settings) as agent:
        remote = await said(agent, "What is the weather in Lima?")
        local = await said(agent, 'add {"a": 2, "b": 3}')

    assert agent.model == "scripted-demo"
    assert text_of(remote[-1]) == "(scripted) In Lima it is 19.0 °C, fog."
    assert text_of(local[-1]) == "(scripted) add says: 5"


async def test_what_was_said_is_there_when_the_agent_runs_again(tmp_path: Path) -> None:
    async with open_agent(settings_of(tmp_path)) as agent:
        first = await said(agent, "Hello")

    async with open_agent(settings_of(tmp_path)) as agent:
        await said(agent, "Hello again")
        session = await agent.runner.session("local", "s")

    assert session.events[1] == first[-1]
    assert [text_of(event) for event in session.events[::2]] == ["Hello", "Hello again"]


async def test_decision_rests_where_the_sessions_rest(tmp_path: Path) -> None:
    guarded = [{"function": "tests.gateway.functions:add", "confirm": True}]
    settings = settings_of(tmp_path, tools=guarded)
    async with open_agent(settings) as agent:
        asked = await said(agent, 'add {"a": 2, "b": 3}')
        (question,) = questions_in(asked[-1])

    async with open_agent(settings) as agent:
        told = await said(agent, decision(question.id, True))

    async with open_stores(settings.agent) as stores:
        kept = await stores.approvals.find(SessionKey("clerk", "local", "s"), question.id)

    assert text_of(told[-1]) == "(scripted) add says: 5"
    assert kept is not None
    assert (kept.confirmed, kept.call, kept.response) == (True, question.call, {"result": 5})


async def test_progress_of_a_call_is_told_with_the_tools_name(tmp_path: Path) -> None:
    heard: list[tuple[str, float, float | None, str | None]] = []

    async def hear(tool: str, done: float, total: float | None, message: str | None) -> None:
        heard.append((tool, done, total, message))

    async with open_agent(settings_of(tmp_path, upstreams={"weather": demo()}), hear) as agent:
        await said(agent, 'weather__forecast {"city": "Lima", "days": 2}')

    assert heard == [
        ("weather__forecast", 1, 2, "day 1 of 2"),
        ("weather__forecast", 2, 2, "day 2 of 2"),
    ]


async def test_upstream_that_comes_late_is_there_in_the_next_turn(
    tmp_path: Path, odd_server: Callable[..., list[str]]
) -> None:
    program = tmp_path / "late-server"
    settings = settings_of(tmp_path, upstreams={"late": {"command": [str(program)]}})
    async with open_agent(settings) as agent:
        await agent.gateway.settled()
        before = await said(agent, 'late__echo {"text": "x"}')
        program.write_text(f"#!/bin/sh\nexec {' '.join(odd_server('noise'))}\n")
        program.chmod(0o755)
        await eventually(lambda: "late__echo" in agent.gateway.catalog.tools)
        after = await said(agent, 'late__echo {"text": "x"}')

    assert not any(event.function_calls() for event in before)
    assert [call.name for event in after for call in event.function_calls()] == ["late__echo"]


async def test_upstream_that_hangs_holds_up_no_turn_for_ever(
    tmp_path: Path, odd_server: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.gateway.agent.SETTLING_SECONDS", 0.1)
    mute = {"command": odd_server("mute"), "connect_timeout": "1h"}
    async with open_agent(settings_of(tmp_path, upstreams={"mute": mute})) as agent:
        events = await said(agent, 'add {"a": 2, "b": 3}')

    assert text_of(events[-1]) == "(scripted) add says: 5"


async def test_kept_media_come_with_a_way_to_load_them(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, upstreams={"weather": {**demo(), "media": "artifacts"}})
    async with open_agent(settings) as agent:
        await agent.gateway.settled()
        events = await said(agent, 'weather__radar {"city": "Lima"}')
        kept = await agent.runner.session("local", "s")
        names = await agent.runner.artifacts.list(kept.key) if agent.runner.artifacts else []
        loaded = await said(agent, f'load_artifacts {{"artifact_names": ["{names[0]}"]}}')

    assert len(names) == 1
    assert names[0] in str(events[-2].function_responses()[0].response)
    assert loaded[-2].function_responses()[0].response == {"artifact_names": names}
    assert (tmp_path / "agent.artifacts").is_dir()


def test_chat_completions_model_is_made_as_the_settings_say() -> None:
    settings = OpenAICompatibleSettings.model_validate(
        {"base_url": "http://127.0.0.1:1/v1", "model": "small", "api_key": "sk-1"}
    )

    model = to_model(ModelSettings(openai_compatible=settings))

    assert isinstance(model, OpenAICompatible)
    assert model.name == "small"


def test_model_of_pydantic_ai_is_made_by_its_name() -> None:
    assert to_model(ModelSettings(pydantic_ai="test")).name == "test"


def test_model_that_pydantic_ai_does_not_know_is_refused_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r'^agent\.model\.pydantic_ai: the model "nobody:x"'):
        to_model(ModelSettings(pydantic_ai="nobody:x"))


def test_without_pydantic_ai_the_extra_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    monkeypatch.delitem(sys.modules, "bridge.models.pydantic_ai", raising=False)

    with pytest.raises(ConfigError) as refused:
        to_model(ModelSettings(pydantic_ai="openai:gpt-5"))

    assert str(refused.value) == (
        'agent.model.pydantic_ai needs more: pip install "mcp-agent-bridge[models]"'
    )


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"XDG_STATE_HOME": "/var/state"}, "/var/state/bridge"),
        ({}, "/home/me/.local/state/bridge"),
        ({"XDG_STATE_HOME": ""}, "/home/me/.local/state/bridge"),
        ({"XDG_STATE_HOME": "not/absolute"}, "/home/me/.local/state/bridge"),
    ],
)
def test_state_rests_where_the_user_keeps_it(
    environ: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert state_directory(environ) == Path(place)


async def test_without_a_store_sessions_rest_in_the_state_directory(tmp_path: Path) -> None:
    async with open_stores(AgentSettings(), {"XDG_STATE_HOME": str(tmp_path)}) as stores:
        await stores.sessions.create(SessionKey("a", "b", "c"))

    store = tmp_path / "bridge" / "agent.db"
    assert store.stat().st_mode & 0o777 == 0o600


async def test_store_may_be_a_url(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, agent={"store": f"sqlite:///{tmp_path}/other.db"})
    async with open_stores(settings.agent, {"XDG_STATE_HOME": str(tmp_path)}) as stores:
        await stores.sessions.create(SessionKey("a", "b", "c"))

    assert (tmp_path / "other.db").exists()


async def test_store_that_cannot_be_used_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "agent.db").mkdir()
    with pytest.raises(StoreError, match=r'the sessions in ".*agent\.db" cannot be used: '):
        async with open_stores(settings_of(tmp_path).agent):
            pass

    url = "postgresql://me:canary@127.0.0.1:1/bridge"
    with pytest.raises(StoreError) as refused:
        async with open_stores(settings_of(tmp_path, agent={"store": url}).agent):
            pass

    assert str(refused.value).startswith("the sessions in agent.store cannot be used: ")
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("number", range(3))
def test_every_model_that_agent_yaml_speaks_of_can_be_chosen(number: int, tmp_path: Path) -> None:
    text = (ROOT / "configs" / "agent.yaml").read_text("utf-8")
    chosen, compatible = re.findall(r"^  # (model: \{.*|model: #.*(?:\n  #   .*)+)", text, re.M)
    lines = re.sub(r"^  # ", "  ", f"  # {compatible}", flags=re.M)
    models = ["model: scripted-demo", chosen, lines.strip()]
    path = tmp_path / "agent.yaml"
    path.write_text(re.sub(r"^  model: scripted-demo.*$", f"  {models[number]}", text, flags=re.M))

    model = load([path], {"OPENAI_API_KEY": "sk-1"}).agent.model

    assert [
        model.is_scripted,
        model.pydantic_ai == "openai:gpt-5",
        model.openai_compatible is not None,
    ] == [number == which for which in range(3)]
