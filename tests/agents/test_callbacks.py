"""What may step in around tools, the model and the agent, as callbacks and as plugins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bridge.agents.callbacks import Own
from bridge.agents.events import own_event
from bridge.agents.lifecycle import run_agent
from bridge.agents.llm_agent import Agent
from bridge.agents.plugin import Plugin, Plugins
from bridge.calls.hooks import Hook
from bridge.core.content import Content, Result
from bridge.core.context import CallbackContext, Context, ToolContext
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError, ConfigError
from bridge.models.scripted import ScriptedModel
from tests.agents.talk import Talk, brief, briefs, call, text
from tests.agents.tools import Probe

Build = Callable[..., Talk]


class ScriptedPlugin(Plugin):
    """A plugin whose stages are plain functions."""

    def __init__(self, **stages: Callable[..., Any]) -> None:
        for stage, function in stages.items():
            setattr(self, stage, _awaited(function))


def _awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    async def asked(*given: Any) -> Any:
        return function(*given)

    return asked


def with_callbacks(tool: Probe, **stages: Callable[..., Any]) -> Talk:
    model = ScriptedModel([call("c", "work", city="東京"), "Done."])
    return Talk(Agent("w", model, tools=[tool], **stages))


def with_plugin(tool: Probe, **stages: Callable[..., Any]) -> Talk:
    model = ScriptedModel([call("c", "work", city="東京"), "Done."])
    return Talk(Agent("w", model, tools=[tool]), plugins=[ScriptedPlugin(**stages)])


def with_hook(tool: Probe, **stages: Callable[..., Any]) -> Talk:
    class Scripted(Hook):
        pass

    for stage, function in stages.items():
        setattr(Scripted, stage, staticmethod(_awaited(function)))

    model = ScriptedModel([call("c", "work", city="東京"), "Done."])
    return Talk(Agent("w", model, tools=[tool], hooks=[Scripted()]))


def gives(value: Any) -> Callable[..., Any]:
    """A callback that answers, or raises."""

    def callback(*given: Any) -> Any:
        if isinstance(value, Exception):
            raise value

        return value

    return callback


def from_error(wanted: str, answer: Any) -> Callable[..., Any]:
    """A callback whose last argument must be that error."""

    def callback(*given: Any) -> Any:
        assert str(given[-1]) == wanted
        return gives(answer)(*given)

    return callback


async def response(talk: Talk) -> Result:
    events = await talk.say()
    ((_, _, _, given),) = brief(events[1])
    result: Result = given
    return result


@dataclass
class Case:
    """One row of the table: what the tool gives, what the stages do, and what comes of it."""

    wanted: Result
    tool: Any = field(default_factory=lambda: {"result": "success"})
    stages: dict[str, Callable[..., Any]] = field(default_factory=dict)
    runs: int = 1


MODIFIED = {"result": "modified"}
FAILED = ValueError("tool error")
CASES = {
    "6.1": Case({"result": "success"}),
    "6.2": Case({"error": "tool error"}, FAILED),
    "6.3": Case(
        {"result": "intercepted"},
        stages={"before_tool": gives({"result": "intercepted"})},
        runs=0,
    ),
    "6.4": Case(
        {"error": "before callback error"},
        stages={"before_tool": gives(ValueError("before callback error"))},
        runs=0,
    ),
    "6.5": Case(MODIFIED, stages={"after_tool": gives(MODIFIED)}),
    "6.6": Case(
        {"result": "error handled"},
        FAILED,
        {"after_tool": from_error("tool error", {"result": "error handled"})},
    ),
    "6.7": Case(
        {"error": "after callback error"},
        stages={"after_tool": gives(ValueError("after callback error"))},
    ),
    "6.8": Case(
        {"result": "success"}, stages={"before_tool": gives(None), "after_tool": gives(None)}
    ),
    "6.9": Case(
        {"result": "from_after"},
        stages={
            "before_tool": gives({"result": "from_before"}),
            "after_tool": lambda ctx, tool, args, result, error: (
                {"result": "from_after"} if result == {"result": "from_before"} else None
            ),
        },
        runs=0,
    ),
    "6.10": Case(
        {"result": "error_handled_in_after"},
        stages={
            "before_tool": gives(ValueError("from before")),
            "after_tool": from_error("from before", {"result": "error_handled_in_after"}),
        },
        runs=0,
    ),
    "6.11": Case(
        {"result": "handled_on_error"},
        stages={
            "before_tool": gives(ValueError("from before")),
            "on_tool_error": from_error("from before", {"result": "handled_on_error"}),
        },
        runs=0,
    ),
    "6.12": Case(
        {"result": "from_after"},
        stages={
            "before_tool": gives(ValueError("from before")),
            "on_tool_error": gives({"result": "handled_on_error"}),
            "after_tool": from_error("None", {"result": "from_after"}),
        },
        runs=0,
    ),
    "6.13": Case(
        {"error": "from after"},
        FAILED,
        {
            "on_tool_error": gives(ValueError("from on_error")),
            "after_tool": from_error("from on_error", ValueError("from after")),
        },
    ),
    "6.14": Case(
        {"result": "from_after"},
        FAILED,
        {
            "on_tool_error": gives(ValueError("from on_error")),
            "after_tool": from_error("from on_error", {"result": "from_after"}),
        },
    ),
}


@pytest.mark.parametrize("build", [with_callbacks, with_plugin, with_hook])
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.spec(name), id=name) for name, case in CASES.items()],
)
async def test_stages_around_a_tool(case: Case, build: Build) -> None:
    tool = Probe(gives=case.tool)

    assert await response(build(tool, **case.stages)) == case.wanted
    assert len(tool.calls) == case.runs


@pytest.mark.spec("6.15")
@pytest.mark.spec("system-20")
@pytest.mark.parametrize("build", [with_callbacks, with_plugin])
async def test_a_before_stage_may_edit_the_arguments(build: Build) -> None:
    def edit(ctx: ToolContext, tool: Any, args: dict[str, Any]) -> None:
        args["city"] = {"東京": "Tokyo"}[args["city"]]

    tool = Probe()
    talk = build(tool, before_tool=edit)
    events = await talk.say()

    assert tool.calls == [{"city": "Tokyo"}]
    assert events[0].function_calls()[0].args == {"city": "東京"}


@pytest.mark.spec("system-20")
async def test_an_empty_result_of_a_before_stage_is_a_result() -> None:
    tool = Probe()

    assert await response(with_callbacks(tool, before_tool=gives({}))) == {}
    assert tool.calls == []


@pytest.mark.spec("6.16")
async def test_a_cached_answer_may_still_be_rewritten_afterwards() -> None:
    tool = Probe()
    talk = with_callbacks(
        tool,
        before_tool=gives({"weather": "cached"}),
        after_tool=lambda ctx, tool, args, result, error: {**result, "seen": True},
    )

    assert await response(talk) == {"weather": "cached", "seen": True}
    assert tool.calls == []


@pytest.mark.spec("6.17")
@pytest.mark.spec("system-22")
@pytest.mark.parametrize("answers", [True, False])
async def test_plugins_come_first_in_every_stage_and_the_first_answer_ends_it(
    answers: bool,
) -> None:
    log: list[str] = []

    def noting(name: str, answer: Any = None) -> Callable[..., Any]:
        def callback(*given: Any) -> Any:
            log.append(name)
            return answer

        return callback

    class First(ScriptedPlugin):
        pass

    class Second(ScriptedPlugin):
        pass

    answer = {"by": "plugin"} if answers else None
    plugins = [
        First(before_tool=noting("p1 before"), after_tool=noting("p1 after")),
        Second(before_tool=noting("p2 before", answer), after_tool=noting("p2 after")),
    ]
    agent = Agent(
        "w",
        ScriptedModel([call("c", "work"), "Done."]),
        tools=[Probe()],
        before_tool=[noting("a1 before"), noting("a2 before")],
        after_tool=[noting("a1 after"), noting("a2 after")],
    )
    await Talk(agent, plugins=plugins).say()

    own = [] if answers else ["a1 before", "a2 before"]
    after = ["p1 after", "p2 after", "a1 after", "a2 after"]
    assert log == ["p1 before", "p2 before", *own, *after]


@pytest.mark.spec("system-21")
async def test_an_error_that_was_turned_into_a_result_is_no_error_afterwards() -> None:
    seen: list[Any] = []

    def after(ctx: Any, tool: Any, args: Any, result: Any, error: Any) -> None:
        seen.append((result, error))

    for handled in (None, {"result": "handled"}):
        tool = Probe(gives=ValueError("broken"))
        await response(with_callbacks(tool, on_tool_error=gives(handled), after_tool=after))

    assert [(result, str(error)) for result, error in seen] == [
        (None, "broken"),
        ({"result": "handled"}, "None"),
    ]


@pytest.mark.spec("5.6")
@pytest.mark.spec("system-23")
async def test_a_tool_that_is_not_there_is_seen_by_the_error_stage_alone() -> None:
    log: list[str] = []

    def rescue(ctx: ToolContext, tool: Any, args: Any, error: Exception) -> Result:
        log.append(tool.name)
        return {"result": "x"}

    agent = Agent(
        "w",
        ScriptedModel([call("c", "foo"), "Done."]),
        before_tool=lambda *given: log.append("before"),
        after_tool=lambda *given: log.append("after"),
        on_tool_error=rescue,
    )
    events = await Talk(agent).say()

    assert brief(events[1]) == [("answer", "c", "foo", {"result": "x"})]
    assert log == ["foo"]


@pytest.mark.spec("9.7")
async def test_a_streaming_tool_is_seen_by_no_stage() -> None:
    log: list[str] = []

    async def pieces() -> Any:
        yield "a"
        yield "b"

    agent = Agent(
        "w",
        ScriptedModel([call("c", "pieces"), "Done."]),
        tools=[pieces],
        before_tool=lambda *given: log.append("before"),
        after_tool=lambda *given: log.append("after"),
        on_tool_error=lambda *given: log.append("error"),
    )
    events = await Talk(agent).say()

    assert brief(events[1]) == [("answer", "c", "pieces", {"result": "ab"})]
    assert log == []


async def test_a_stage_around_a_tool_may_ask_a_person() -> None:
    def ask(ctx: ToolContext, tool: Any, args: Any) -> Result | None:
        if ctx.tool_confirmation is not None:
            return None

        ctx.request_confirmation("Really?", {"why": "policy"})
        return {"status": "waiting"}

    tool = Probe()
    talk = with_callbacks(tool, before_tool=ask)
    events = await talk.say()
    assert brief(events[1]) == [("answer", "c", "work", {"status": "waiting"})]
    assert (tool.calls, events[-1].long_running_tool_ids != ()) == ([], True)

    after = await talk.decide(work=True)
    assert briefs(after) == [[("answer", "c", "work", {"ok": True})], ["Done."]]


# --- Around the model


def said(words: str) -> LLMResponse:
    return LLMResponse(content=text(words, "model"))


@pytest.mark.parametrize("build", [Agent, None])
async def test_an_answer_before_the_model_is_given_in_its_place(build: Any) -> None:
    model = ScriptedModel(["never"])
    stages = {"before_model": gives(said("cached"))}
    talk = (
        Talk(Agent("w", model, **stages))
        if build is Agent
        else Talk(Agent("w", model), plugins=[ScriptedPlugin(**stages)])
    )

    assert briefs(await talk.say()) == [["cached"]]
    assert model.requests == []


async def test_a_request_may_be_edited_before_the_model_reads_it() -> None:
    def edit(ctx: CallbackContext, request: LLMRequest) -> None:
        request.contents.append(text("and be brief"))

    model = ScriptedModel(["ok"])
    await Talk(Agent("w", model, before_model=edit)).say("Hi")

    assert briefs(model.requests[0].contents) == [["Hi"], ["and be brief"]]


async def test_what_the_model_says_may_be_replaced_and_calls_have_ids_by_then() -> None:
    seen: list[str] = []

    def watch(ctx: CallbackContext, response: LLMResponse) -> None:
        parts = response.content.parts if response.content else ()
        seen.extend(part.function_call.id for part in parts if part.function_call)

    def replace_text(ctx: CallbackContext, response: LLMResponse) -> LLMResponse | None:
        words = response.content.parts[0].text if response.content else None
        return said("replaced") if words else None

    model = ScriptedModel([call("", "work"), "Done."])
    agent = Agent("w", model, tools=[Probe()], after_model=[watch, replace_text])
    events = await Talk(agent).say()

    assert brief(events[-1]) == ["replaced"]
    assert seen == [events[0].function_calls()[0].id]
    assert seen[0].startswith("adk-")


@pytest.mark.spec("20.2")
async def test_a_model_that_fails_ends_the_run_unless_somebody_answers_for_it() -> None:
    broken = OSError("unreachable")
    with pytest.raises(OSError, match="unreachable"):
        await Talk(Agent("w", ScriptedModel([broken]))).say()

    rescued = Agent("w", ScriptedModel([broken]), on_model_error=gives(said("Sorry.")))
    assert briefs(await Talk(rescued).say()) == [["Sorry."]]

    by_plugin = Talk(
        Agent("w", ScriptedModel([broken])),
        plugins=[ScriptedPlugin(on_model_error=from_error("unreachable", said("Later.")))],
    )
    assert briefs(await by_plugin.say()) == [["Later."]]


async def test_a_stage_that_fails_ends_the_run_and_is_named() -> None:
    def clumsy(ctx: Any, request: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await Talk(Agent("w", ScriptedModel(["Hi"]), before_model=clumsy)).say()

    assert any("clumsy" in note for note in caught.value.__notes__)


async def test_a_stage_that_answers_with_the_wrong_thing_is_named() -> None:
    with pytest.raises(BridgeError, match="returned a str; here it returns a LLMResponse or None"):
        await Talk(Agent("w", ScriptedModel(["Hi"]), before_model=gives("Hi"))).say()


# --- Around the agent


async def test_an_answer_before_the_agent_is_all_there_is() -> None:
    model = ScriptedModel(["never"])
    agent = Agent("w", model, before_agent=gives(text("Closed.", "model")), after_agent=gives(None))
    (event,) = await Talk(agent).say()

    assert (event.author, brief(event), model.requests) == ("w", ["Closed."], [])


@pytest.mark.spec("13.20")
async def test_state_that_stages_file_comes_with_the_events_of_their_stage() -> None:
    seen: list[dict[str, Any]] = []

    def filing(key: str) -> Callable[..., None]:
        def callback(ctx: CallbackContext, *given: Any) -> None:
            ctx.state.set(key, True)

        return callback

    class Watching(Plugin):
        async def on_event(self, ctx: Context, event: Event) -> None:
            stored = await talk.session()
            seen.append(dict(stored.state))

    agent = Agent(
        "w",
        ScriptedModel(["Hi"]),
        before_agent=filing("a"),
        before_model=filing("b"),
        after_model=filing("c"),
        after_agent=filing("d"),
    )
    talk = Talk(agent, plugins=[Watching()])
    events = await talk.say()

    assert [event.actions.state_delta for event in events] == [
        {"a": True},
        {"b": True, "c": True},
        {"d": True},
    ]
    assert [event.content is None for event in events] == [True, False, True]
    assert seen == [{}, {"a": True}, {"a": True, "b": True, "c": True}]
    assert (await talk.session()).state == {"a": True, "b": True, "c": True, "d": True}


async def test_an_answer_after_the_agent_is_one_more() -> None:
    agent = Agent("w", ScriptedModel(["Hi"]), after_agent=gives(text("Bye", "model")))

    assert briefs(await Talk(agent).say()) == [["Hi"], ["Bye"]]


@pytest.mark.spec("13.13")
async def test_an_agent_that_is_ended_before_it_begins_does_not_run() -> None:
    model = ScriptedModel(["never"])

    class Ending(Plugin):
        async def before_run(self, ctx: Context) -> Content | None:
            ctx.end_invocation()
            return None

    after: list[Any] = []
    agent = Agent("w", model, after_agent=lambda ctx: after.append(ctx))

    assert await Talk(agent, plugins=[Ending()]).say() == []
    assert (model.requests, after) == ([], [])


@pytest.mark.spec("13.13")
async def test_an_agent_that_ends_in_its_middle_is_asked_nothing_afterwards() -> None:
    after: list[Any] = []

    class Quitting:
        name = "quitter"
        description = ""
        sub_agents = ()

        def run(self, ctx: Any) -> Any:
            own = Own((), {"after_agent": (after.append,)})
            return run_agent(self, own, ctx, self.body)

        async def body(self, ctx: Context, stages: Any) -> Any:
            yield own_event(ctx, content=text("I quit", "model"))
            ctx.end_invocation()

    assert briefs(await Talk(Quitting()).say()) == [["I quit"]]
    assert after == []


# --- Plugins themselves


def test_plugins_have_different_names_and_none_is_missing() -> None:
    class One(Plugin):
        pass

    class Named(Plugin):
        name = "One"

    assert [plugin.name for plugin in Plugins([One()]).members] == ["One"]
    with pytest.raises(ConfigError, match='two plugins are named "One"'):
        Plugins([One(), Named()])

    given: list[Any] = [None]
    with pytest.raises(ConfigError, match="a plugin is None"):
        Plugins(given)


async def test_what_is_filed_around_the_model_goes_out_once() -> None:
    def file(ctx: CallbackContext, request: LLMRequest) -> None:
        ctx.state.set("filed", True)

    pieces = [LLMResponse(content=text("a", "model"), partial=True), said("ab"), said("c")]
    events = await Talk(Agent("w", ScriptedModel([pieces]), before_model=file)).say()

    assert [event.actions.state_delta for event in events] == [
        {"filed": True},
        {"filed": True},
        {},
    ]


async def test_plugins_hooks_and_callbacks_are_asked_in_this_order_in_every_stage() -> None:
    log: list[str] = []

    def noting(name: str) -> dict[str, Callable[..., Any]]:
        return {
            stage: lambda *given, stage=stage: log.append(f"{stage} {name}") for stage in STAGES
        }

    class Own(ScriptedPlugin):
        """As an agent's own hook."""

    agent = Agent(
        "w",
        ScriptedModel([call("c", "work"), "Done."]),
        tools=[Probe()],
        hooks=[Own(**noting("hook"))],
        **noting("callback"),
    )
    await Talk(agent, plugins=[ScriptedPlugin(**noting("plugin"))]).say()

    asked = ["before_model", "after_model"]
    order = ["before_agent", *asked, "before_tool", "after_tool", *asked, "after_agent"]
    assert log == [f"{stage} {name}" for stage in order for name in ("plugin", "hook", "callback")]


STAGES = (
    *("before_agent", "before_model", "after_model", "before_tool", "after_tool"),
    "after_agent",
)
