"""Artifacts reach a model over two requests: names first, then what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.content import Blob, Content, Part
from bridge.core.context import InvocationContext, ToolContext
from bridge.core.request import LLMRequest
from bridge.core.session import Session, SessionKey
from bridge.errors import ArtifactNotFound, InvalidArguments, ToolsetError
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemoryArtifactService
from bridge.tools.artifacts import MOST_TOLD, MOST_WANTED, load_artifacts
from bridge.tools.toolsets import StaticToolset
from tests.agents.talk import Talk, answer, asked, brief, call, content, instruction, text, told
from tests.agents.tools import Probe

CHART = Part(inline_data=Blob("image/png", b"png"))
DOC = Part(text="This is the content of doc1.txt")
KEY = SessionKey("bridge", "local", "default")


@dataclass
class Shelf:
    """Artifacts by name; loading waits where `gates` say so, and fails where there is nothing."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    gates: Mapping[str, anyio.Event] = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)

    async def list(self) -> Sequence[str]:
        return list(self.parts)

    async def load(self, name: str) -> Part:
        if name in self.gates:
            await self.gates[name].wait()

        self.loaded.append(name)
        if name not in self.parts:
            raise ArtifactNotFound(f"nothing here is named {name}")

        for gate in self.gates.values():
            gate.set()

        return self.parts[name]


class Broken(Shelf):
    """Artifacts behind a disk that is gone."""

    async def list(self) -> Sequence[str]:
        raise OSError("disk gone")


def context(artifacts: Any) -> ToolContext:
    return ToolContext.preparing(InvocationContext(Session("s"), artifacts=artifacts))


async def processed(artifacts: Any, *contents: Content) -> LLMRequest:
    """The request that these contents become."""
    request = LLMRequest(contents=list(contents))
    await load_artifacts.process_request(context(artifacts), request)
    assert request.tools == {"load_artifacts": load_artifacts}
    return request


def named(*names: Any) -> Part:
    """The answer to a call that asked for these."""
    return answer("c", "load_artifacts", {"artifact_names": list(names)})


@pytest.mark.spec("12.4")
@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"artifact_names": ["file1", "file2"]}, ["file1", "file2"]),
        ({}, []),
        ({"artifact_names": []}, []),
        ({"artifact_names": None}, []),
    ],
)
async def test_a_call_answers_with_the_names_and_loads_nothing(
    args: dict[str, Any], names: list[str]
) -> None:
    shelf = Shelf({"file1": DOC})

    assert await load_artifacts.run(context(shelf), args) == {"artifact_names": names}
    assert shelf.loaded == []


@pytest.mark.spec("12.4")
@pytest.mark.parametrize(
    "names", ["not a list", ["fileA", 123], ["x"] * (MOST_WANTED + 1), {"name": "x"}]
)
async def test_what_is_no_list_of_names_is_refused(names: Any) -> None:
    with pytest.raises(InvalidArguments, match=r'"load_artifacts" do not fit: .*artifact_names'):
        await load_artifacts.run(context(Shelf()), {"artifact_names": names})


@pytest.mark.spec("12.5")
async def test_the_model_is_told_the_names_and_no_more() -> None:
    request = await processed(Shelf({"doc1.txt": DOC, "größe.png": CHART}), text("Hi"))

    assert '["doc1.txt", "größe.png"]' in instruction(request)
    assert "call load_artifacts" in instruction(request)
    assert told(request) == [["Hi"]]


@pytest.mark.spec("12.5")
@pytest.mark.parametrize("names", [["doc1.txt"], ("doc1.txt",)])
async def test_what_was_just_asked_for_is_appended(names: Sequence[str]) -> None:
    last = content(answer("c", "load_artifacts", {"artifact_names": names}))
    request = await processed(Shelf({"doc1.txt": DOC}), last)

    appended = content(Part(text="Artifact doc1.txt is:"), DOC)
    assert request.contents == [last, appended]


@pytest.mark.spec("12.5")
@pytest.mark.parametrize(
    "contents",
    [
        (),
        (content(),),
        (text("Hi"),),
        (content(answer("c", "other", {"artifact_names": ["doc1.txt"]})),),
        (content(answer("c", "load_artifacts", None)),),
        (content(answer("c", "load_artifacts", {"error": "rejected"})),),
        (content(named()),),
        (content(named("doc1.txt")), text("Now something else.")),
        (content(named("doc1.txt")), content(answer("d", "other", {}))),
    ],
)
async def test_nothing_is_appended_where_the_conversation_does_not_end_with_the_answer(
    contents: tuple[Content, ...],
) -> None:
    shelf = Shelf({"doc1.txt": DOC})

    assert (await processed(shelf, *contents)).contents == list(contents)
    assert shelf.loaded == []


@pytest.mark.spec("system-47")
async def test_the_answer_is_found_beside_others_and_every_name_is_loaded_once() -> None:
    last = content(
        answer("a", "work", {"ok": True}), named("b", "a"), Part(text="x"), named("a", "c")
    )
    request = await processed(Shelf({"a": DOC, "b": CHART, "c": DOC}), last)

    assert [each[0] for each in told(request)[1:]] == [f"Artifact {n} is:" for n in ("b", "a", "c")]


@pytest.mark.spec("12.5")
async def test_artifacts_are_loaded_side_by_side_and_appended_in_the_order_asked() -> None:
    # The first is there only once the second is: one after the other would never end.
    shelf = Shelf({"slow": DOC, "fast": CHART}, {"slow": anyio.Event()})
    with anyio.fail_after(30):
        request = await processed(shelf, content(named("slow", "fast")))

    assert shelf.loaded == ["fast", "slow"]
    assert told(request)[1:] == [
        ["Artifact slow is:", DOC.text],
        ["Artifact fast is:", CHART.inline_data],
    ]


@pytest.mark.spec("12.5")
@pytest.mark.parametrize("names", ["doc1.txt", [1], {"doc1.txt": True}])
async def test_an_answer_that_holds_no_names_ends_the_step(names: Any) -> None:
    with pytest.raises(ToolsetError, match='"artifact_names" in an answer of "load_artifacts"'):
        await processed(Shelf(), content(answer("c", "load_artifacts", {"artifact_names": names})))


@pytest.mark.spec("12.5")
async def test_an_artifact_that_cannot_be_loaded_ends_the_step_by_its_name() -> None:
    request = LLMRequest(contents=[content(named("there", "gone", "lost"))])
    with pytest.raises(ToolsetError, match='"gone" could not be loaded: nothing here') as raised:
        await load_artifacts.process_request(context(Shelf({"there": DOC})), request)

    assert isinstance(raised.value.__cause__, ArtifactNotFound)
    assert len(request.contents) == 1


@pytest.mark.spec("12.5")
@pytest.mark.parametrize(
    ("artifacts", "why"), [(Broken(), "disk gone"), (None, "artifact service is not set")]
)
async def test_artifacts_that_cannot_be_listed_end_the_step(artifacts: Any, why: str) -> None:
    with pytest.raises(ToolsetError, match=f"could not list the artifacts: {why}"):
        await processed(artifacts)


async def test_without_artifacts_there_is_only_the_declaration() -> None:
    assert instruction(await processed(Shelf())) == ""


async def test_of_very_many_names_some_are_told_and_the_others_counted() -> None:
    request = await processed(Shelf({f"file {n}": DOC for n in range(MOST_TOLD + 3)}))

    assert f'"file {MOST_TOLD - 1}"] and 3 more\n' in instruction(request)


async def test_an_agent_under_another_name_finds_its_own_answers() -> None:
    model = ScriptedModel([call("c", "x__load_artifacts", artifact_names=["a"]), "Seen."])
    artifacts = InMemoryArtifactService()
    await artifacts.save(KEY, "a", DOC)
    toolset = StaticToolset([load_artifacts]).prefixed("x__")
    await Talk(Agent("w", model, tools=[toolset]), artifacts=artifacts).say()

    assert "call x__load_artifacts" in instruction(model.requests[0])
    assert told(model.requests[1])[-1] == ["Artifact a is:", DOC.text]


@pytest.mark.spec("19.6")
@pytest.mark.spec("system-47")
async def test_a_chart_is_named_then_seen_and_seen_again_only_if_asked_for_again() -> None:
    artifacts = InMemoryArtifactService()
    await artifacts.save(KEY, "chart.png", CHART)
    work = Probe("work")
    both = [call("2", "load_artifacts", artifact_names=["chart.png"]), call("3", "work")]
    model = ScriptedModel(
        [
            call("1", "load_artifacts", artifact_names=["chart.png"]),
            call("work", "work"),
            asked(*both),
            "It goes up.",
        ]
    )
    talk = Talk(Agent("w", model, tools=[load_artifacts, work]), artifacts=artifacts)
    events = await talk.say("What does the chart show?")

    names = {"artifact_names": ["chart.png"]}
    assert all('["chart.png"]' in instruction(request) for request in model.requests)
    assert brief(events[1]) == [("answer", "1", "load_artifacts", names)]
    ends = [told(request)[-1] for request in model.requests]
    seen = ["Artifact chart.png is:", CHART.inline_data]
    assert ends == [
        ["What does the chart show?"],
        seen,
        [("answer", "work", "work", {"ok": True})],
        seen,
    ]
    assert [
        [part for part in contents if part in seen] for contents in told(model.requests[3])
    ] == [
        *([[]] * (len(told(model.requests[3])) - 1)),
        seen,
    ]
    assert brief((await talk.session()).events[-1]) == ["It goes up."]


async def test_a_missing_artifact_ends_the_run_before_the_model_is_asked_again() -> None:
    model = ScriptedModel([call("c", "load_artifacts", artifact_names=["gone"]), "Never."])
    talk = Talk(Agent("w", model, tools=[load_artifacts]), artifacts=InMemoryArtifactService())
    with pytest.raises(ToolsetError, match='"gone" could not be loaded'):
        await talk.say()

    assert len(model.requests) == 1
