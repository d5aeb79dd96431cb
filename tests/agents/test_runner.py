"""The outermost loop: messages come in, events are stored, then go out."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest

from bridge.agents.agent_tool import AgentTool
from bridge.agents.llm_agent import Agent
from bridge.agents.plugin import PLUGINS, Plugin, Plugins
from bridge.agents.run_config import RUN_CONFIG, RunConfig
from bridge.agents.runner import Runner
from bridge.agents.tree import AGENT_TREE
from bridge.core.content import Blob, Content, Part, Result
from bridge.core.context import Context, ReadonlyContext, ToolContext
from bridge.core.delta import ContextDelta, InvocationDelta
from bridge.core.event import Event
from bridge.core.identity import NEW_ID
from bridge.core.scope import BACKGROUND
from bridge.core.session import Session, SessionKey
from bridge.errors import (
    CapabilityError,
    ConfigError,
    ModelError,
    SessionNotFound,
    StaleSession,
    TimedOut,
)
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemoryArtifactService, InMemorySessionService
from tests.agents.talk import Talk, answer, brief, briefs, call, content, text, told
from tests.agents.tools import Probe


@pytest.mark.spec("15.1")
async def test_a_turn_is_stored_after_what_the_user_said() -> None:
    talk = Talk(Agent("greeter", ScriptedModel(["Hello."])))
    events = await talk.say("Hi")

    stored = (await talk.session()).events
    assert [(event.author, brief(event)) for event in stored] == [
        ("user", ["Hi"]),
        ("greeter", ["Hello."]),
    ]
    assert stored[1] == events[0]
    assert stored[0].invocation_id == events[0].invocation_id


@pytest.mark.spec("15.2")
@pytest.mark.parametrize("asked", [True, False])
async def test_what_the_user_said_is_yielded_on_request(asked: bool) -> None:
    events = await Talk(Agent("w", ScriptedModel(["Hello."]))).say("Hi", yields_message=asked)

    assert briefs(events) == ([["Hi"], ["Hello."]] if asked else [["Hello."]])


@pytest.mark.spec("15.3")
async def test_state_that_comes_with_the_message_is_there_for_the_agent() -> None:
    seen: list[Any] = []

    def instruct(ctx: ReadonlyContext) -> str:
        seen.append(ctx.readonly_state.get("mood"))
        return ""

    talk = Talk(Agent("w", ScriptedModel(["Hi", "Hi"]), instruct))
    events = await talk.say(state_delta={"mood": "good"}, yields_message=True)
    await talk.say()

    assert seen == ["good", "good"]
    assert events[0].actions.state_delta == {"mood": "good"}


@pytest.mark.spec("15.4")
@pytest.mark.spec("19.4")
async def test_a_long_call_ends_the_turn_and_its_answer_begins_the_next() -> None:
    tool = Probe("ask_human", gives=None, is_long_running=True)
    model = ScriptedModel([call("c", "ask_human"), "all done"])
    talk = Talk(Agent("w", model, tools=[tool]))
    (waiting,) = await talk.say("Ask.")
    assert waiting.long_running_tool_ids == ("c",)

    (event,) = await talk.say(content(answer("c", "ask_human", {"answer": "yes"})))
    assert (brief(event), event.invocation_id) == (["all done"], waiting.invocation_id)
    assert told(model.requests[1]) == [
        ["Ask."],
        [("call", "c", "ask_human", {})],
        [("answer", "c", "ask_human", {"answer": "yes"})],
    ]
    assert len(tool.calls) == 1


@pytest.mark.spec("15.4")
async def test_a_long_call_with_an_answer_for_now_has_the_model_say_so() -> None:
    tool = Probe("ask_human", gives={"status": "waiting"}, is_long_running=True)
    model = ScriptedModel([call("c", "ask_human"), "I have asked.", "all done"])
    talk = Talk(Agent("w", model, tools=[tool]))
    await talk.say("Ask.")
    assert len(model.requests) == 2

    assert briefs(await talk.say(content(answer("c", "ask_human", {"ok": True})))) == [["all done"]]


@pytest.mark.spec("15.5")
async def test_plain_text_is_no_answer_to_a_waiting_call() -> None:
    tool = Probe("ask_human", gives=None, is_long_running=True)
    model = ScriptedModel([call("c", "ask_human"), "Still waiting."])
    talk = Talk(Agent("w", model, tools=[tool]))
    (waiting,) = await talk.say("Ask.")
    (event,) = await talk.say("And?")

    assert event.invocation_id != waiting.invocation_id
    assert told(model.requests[1])[-1] == ["And?"]
    assert len(tool.calls) == 1


@pytest.mark.spec("15.6")
async def test_an_answer_to_nothing_is_tolerated() -> None:
    model = ScriptedModel(["handled"])
    events = await Talk(Agent("w", model)).say(content(answer("no-such-call", "unknown", {})))

    assert briefs(events) == [["handled"]]


@pytest.mark.spec("15.7")
async def test_a_plugin_may_replace_what_the_user_said() -> None:
    class Polite(Plugin):
        async def on_user_message(self, ctx: Context, message: Content) -> Content:
            return text("Please: " + (message.parts[0].text or ""))

        async def before_agent(self, ctx: Any) -> None:
            seen.append(ctx.user_content)

    seen: list[Any] = []
    model = ScriptedModel(["Sure."])
    talk = Talk(Agent("w", model), plugins=[Polite()])
    await talk.say("Hi")

    assert told(model.requests[0]) == [["Please: Hi"]]
    assert brief((await talk.session()).events[0]) == ["Please: Hi"]
    assert seen == [text("Please: Hi")]


@pytest.mark.spec("15.8")
async def test_bytes_that_the_user_sends_may_be_kept_as_artifacts() -> None:
    image = Part(inline_data=Blob("image/png", b"png"))
    artifacts = InMemoryArtifactService()
    model = ScriptedModel(["Nice.", "Nice."])
    talk = Talk(Agent("w", model), artifacts=artifacts)
    message = content(Part(text="Look:"), image)
    (event,) = await talk.say(message, config=RunConfig(save_input_blobs=True))

    name = f"artifact_{event.invocation_id}_1"
    placeholder = f"Uploaded file: {name}. It is kept among the artifacts."
    assert told(model.requests[0]) == [["Look:", placeholder]]
    assert await artifacts.load((await talk.session()).key, name) == image
    assert message.parts[1] == image

    await talk.say(message)
    assert told(model.requests[1])[-1] == ["Look:", image.inline_data]


async def test_bytes_stay_where_there_is_nothing_to_keep_them_in() -> None:
    image = Part(inline_data=Blob("image/png", b"png"))
    model = ScriptedModel(["Nice."])
    await Talk(Agent("w", model)).say(content(image), config=RunConfig(save_input_blobs=True))

    assert told(model.requests[0]) == [[image.inline_data]]


async def test_a_plugin_may_answer_in_the_place_of_the_whole_run() -> None:
    ended: list[str] = []

    class Closed(Plugin):
        async def before_run(self, ctx: Context) -> Content:
            return text("We are closed.", "model")

        async def after_run(self, ctx: Context) -> None:
            ended.append(ctx.agent_name)

    model = ScriptedModel(["never"])
    talk = Talk(Agent("w", model), plugins=[Closed()])
    events = await talk.say("Hi")

    assert [(event.author, brief(event)) for event in events] == [("w", ["We are closed."])]
    assert (model.requests, ended) == ([], ["w"])
    assert len((await talk.session()).events) == 2


@pytest.mark.spec("15.10")
async def test_a_session_that_is_not_there_is_an_error_where_none_is_to_be_made() -> None:
    talk = Talk(Agent("w", ScriptedModel(["Hi"])), creates_sessions=False)

    with pytest.raises(SessionNotFound, match='no session "default"'):
        await talk.say()


@pytest.mark.spec("15.11")
@pytest.mark.spec("system-59")
async def test_what_a_plugin_makes_of_an_event_is_what_is_stored_and_yielded() -> None:
    class Shouting(Plugin):
        async def on_event(self, ctx: Context, event: Event) -> Event | None:
            return Event(author=event.author, content=text("LOUD", "model"))

    talk = Talk(Agent("w", ScriptedModel(["quiet"])), plugins=[Shouting()])

    assert briefs(await talk.say("Hi")) == [["LOUD"]]
    assert briefs((await talk.session()).events) == [["Hi"], ["LOUD"]]


async def test_a_plugin_sees_pieces_too_and_its_failure_ends_the_run_unstored() -> None:
    seen: list[bool] = []

    class Picky(Plugin):
        async def on_event(self, ctx: Context, event: Event) -> Event | None:
            seen.append(event.partial)
            if not event.partial:
                raise ValueError("not this one")

            return None

    talk = Talk(Agent("w", ScriptedModel(["two words"])), plugins=[Picky()])
    with pytest.raises(ValueError, match="not this one"):
        await talk.say("Hi", config=RunConfig(streaming=True))

    assert seen == [True, True, False]
    assert briefs((await talk.session()).events) == [["Hi"]]


async def test_every_plugin_sees_the_end_of_a_run_however_it_ends() -> None:
    ended: list[str] = []

    class First(Plugin):
        async def after_run(self, ctx: Context) -> None:
            ended.append(self.name)
            raise OSError("first failed")

    class Second(Plugin):
        async def after_run(self, ctx: Context) -> None:
            ended.append(self.name)

    class Third(First):
        name = "Third"

    talk = Talk(Agent("w", ScriptedModel(["a", "b"])), plugins=[First(), Second()])
    with pytest.raises(OSError, match="first failed"):
        await talk.say()
    assert ended == ["First", "Second"]

    stopped = Talk(Agent("w", ScriptedModel([OSError("model")])), plugins=[Second()])
    with pytest.raises(OSError, match="model"):
        await stopped.say()
    assert ended == ["First", "Second", "Second"]

    both = Talk(Agent("w", ScriptedModel(["a"])), plugins=[First(), Third()])
    with pytest.raises(ExceptionGroup, match="several plugins failed"):
        await both.say()


async def test_every_plugin_sees_the_end_of_a_run_that_nobody_listens_to() -> None:
    ended: list[str] = []

    class Noting(Plugin):
        async def after_run(self, ctx: Context) -> None:
            await anyio.lowlevel.checkpoint()
            ended.append("ended")

    talk = Talk(Agent("w", ScriptedModel([call("c", "work")]), tools=[Probe()]), plugins=[Noting()])
    async with aclosing(talk.runner.run("Hi")) as events:
        await anext(events)

    assert ended == ["ended"]

    async def waits(ctx: Any, args: Any) -> Result:
        with anyio.CancelScope() as scope:
            started.set()
            await anyio.sleep_forever()

        del scope
        return {}

    started = anyio.Event()
    tool = Probe(body=waits)
    talk = Talk(Agent("w", ScriptedModel([call("c", "work")]), tools=[tool]), plugins=[Noting()])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.say)
        await started.wait()
        tasks.cancel_scope.cancel()

    assert ended == ["ended", "ended"]


# --- Sessions


class Counting(InMemorySessionService):
    """Counts how often a session is read, and keeps what is appended."""

    reads = 0

    def __init__(self) -> None:
        super().__init__()
        self.appended: list[Event] = []

    async def append_event(self, session: Session, event: Event) -> None:
        self.appended.append(event)
        await super().append_event(session, event)

    async def get(self, key: SessionKey, **options: Any) -> Session:
        self.reads += 1
        return await super().get(key, **options)


@pytest.mark.spec("system-59")
async def test_the_session_is_read_once_a_run_and_steps_read_what_is_held() -> None:
    sessions = Counting()
    model = ScriptedModel([call("c", "work"), "Done."])
    await Talk(Agent("w", model, tools=[Probe()]), sessions=sessions).say()

    assert sessions.reads == 1
    assert len(model.requests[1].contents) == 3


@pytest.mark.spec("14.11")
async def test_temporary_state_lives_as_long_as_the_run() -> None:
    seen: list[Any] = []

    async def note(ctx: ToolContext) -> str:
        """Note something for later."""
        seen.append(ctx.state.get("temp:x", None))
        ctx.state.set("temp:x", 1)
        return "noted"

    model = ScriptedModel([call("a", "note"), call("b", "note"), "Done.", call("c", "note"), "."])
    talk = Talk(Agent("w", model, tools=[note]))
    await talk.say()
    await talk.say()

    assert seen == [None, 1, None]


async def test_two_runs_in_one_session_do_not_overwrite_each_other() -> None:
    talk = Talk(Agent("w", ScriptedModel(["first", "second", "third"])))
    await talk.say("Hi")
    async with aclosing(talk.runner.run("One", yields_message=True)) as one:
        await anext(one)
        async with aclosing(talk.runner.run("Two")) as two:
            await anext(two)

        with pytest.raises(StaleSession) as caught:
            await anext(one)

    assert any("was not stored" in note for note in caught.value.__notes__)


async def test_sessions_are_kept_apart() -> None:
    model = ScriptedModel(["a", "b"])
    talk = Talk(Agent("w", model))
    await talk.say("One", session_id="1")
    await talk.say("Two", session_id="2", user_id="ann")

    assert told(model.requests[1]) == [["Two"]]


async def test_an_agent_may_go_on_without_a_message() -> None:
    talk = Talk(Agent("w", ScriptedModel(["Hi", "More."])))
    await talk.say("Hi")

    assert briefs(await talk.say(None)) == [["More."]]


# --- Agents, ids, and what a run carries


def family(**models: ScriptedModel) -> Agent:
    locked = Agent("locked", models.get("locked"), disallow_transfer_to_parent=True)
    open_one = Agent("open", models.get("open"))
    return Agent("root", models.get("root"), sub_agents=[locked, open_one])


@pytest.mark.parametrize(("last", "wanted"), [("open", "open"), ("locked", "root")])
async def test_a_conversation_stays_with_an_agent_that_may_hand_it_back(
    last: str, wanted: str
) -> None:
    models = {name: ScriptedModel([name] * 2) for name in ("open", "locked", "root")}
    models["root"] = ScriptedModel([call("t", "transfer_to_agent", agent_name=last), "root"])
    talk = Talk(family(**models))
    await talk.say("Hand over.")
    (event,) = await talk.say("Still there?")

    assert event.author == wanted


async def test_an_answer_goes_to_the_agent_that_made_the_call() -> None:
    tool = Probe("ask_human", gives=None, is_long_running=True)
    model = ScriptedModel([call("c", "ask_human"), "Thanks."])
    locked = Agent("locked", model, tools=[tool], disallow_transfer_to_parent=True)
    root = Agent(
        "root",
        ScriptedModel([call("t", "transfer_to_agent", agent_name="locked")]),
        sub_agents=[locked],
    )
    talk = Talk(root)
    await talk.say("Ask.")
    (event,) = await talk.say(content(answer("c", "ask_human", {"ok": True})))

    assert (event.author, brief(event)) == ("locked", ["Thanks."])


def test_an_agent_of_ones_own_cannot_be_the_user() -> None:
    class Impostor:
        name, description, sub_agents = "user", "", ()

    with pytest.raises(ConfigError, match='no agent can be named "user"'):
        Runner(Impostor())


def test_two_agents_of_one_name_are_refused() -> None:
    twin = Agent("twin")
    with pytest.raises(ConfigError, match='two agents are named "twin"'):
        Runner(Agent("root", sub_agents=[twin, Agent("other", sub_agents=[twin])]))


@pytest.mark.spec("14.10")
async def test_ids_may_be_made_by_whoever_starts_the_run() -> None:
    numbers = iter(range(100))
    scope = BACKGROUND.with_value(NEW_ID, lambda: f"id{next(numbers)}")
    talk = Talk(Agent("w", ScriptedModel([call("", "work"), "Hi"]), tools=[Probe()]))
    events = await talk.say(scope=scope)

    assert events[0].invocation_id == "e-id0"
    assert events[0].function_calls()[0].id == "adk-id2"
    assert all(event.id.startswith("id") for event in events)


@pytest.mark.spec("system-49")
async def test_a_run_carries_its_agents_plugins_and_config_and_a_foreign_chain_does_not() -> None:
    seen: list[Any] = []

    class Looking(Plugin):
        async def before_run(self, ctx: Context) -> None:
            keys: tuple[Any, ...] = (AGENT_TREE, PLUGINS, RUN_CONFIG)
            seen.extend(ctx.scope.require(key) for key in keys)
            foreign = ctx.with_delta(
                ContextDelta(invocation=InvocationDelta(scope=BACKGROUND.with_timeout(60)))
            )
            for key in keys:
                with pytest.raises(CapabilityError, match="carries no"):
                    foreign.scope.require(key)

    config = RunConfig(streaming=True)
    agent = Agent("w", ScriptedModel(["Hi"]))
    await Talk(agent, plugins=[Looking()]).say(config=config)

    tree, plugins, found = seen
    assert (tree.root, found) == (agent, config)
    assert isinstance(plugins, Plugins)


@pytest.mark.spec("system-55")
async def test_running_out_of_time_in_a_tool_ends_no_run() -> None:
    async def slow(ctx: ToolContext, args: Any) -> Result:
        with ctx.scope.with_timeout(0.01).enforced():
            await anyio.sleep_forever()

        return {}

    model = ScriptedModel([call("c", "work"), "Too slow."])
    events = await Talk(Agent("w", model, tools=[Probe(body=slow)])).say()

    assert brief(events[1]) == [("answer", "c", "work", {"error": str(TimedOut(LATE))})]
    assert brief(events[2]) == ["Too slow."]


LATE = "not done in the time it was given"


async def test_a_run_whose_time_is_over_asks_no_model() -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(TimedOut):
        await Talk(Agent("w", model)).say(scope=BACKGROUND.with_timeout(-1))

    assert model.requests == []


async def test_a_model_that_has_nothing_to_say_is_an_error() -> None:
    with pytest.raises(ModelError):
        await Talk(Agent("w", ScriptedModel([]))).say()


async def test_cancelling_a_run_reaches_the_tool_and_is_not_swallowed() -> None:
    cancelled: list[bool] = []
    started = anyio.Event()

    async def body(ctx: Any, args: Any) -> Result:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append(True)
            raise

        return {}

    inner = Agent("inner", ScriptedModel([call("c", "work")]), tools=[Probe(body=body)])
    model = ScriptedModel([call("a", "inner", request="x")])
    talk = Talk(Agent("outer", model, tools=[AgentTool(inner)]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.say)
        await started.wait()
        tasks.cancel_scope.cancel()

    assert cancelled == [True]
    assert briefs((await talk.session()).events) == [
        ["Go on."],
        [("call", "a", "inner", {"request": "x"})],
    ]


@pytest.mark.spec("system-58")
async def test_branches_part_what_is_told_and_not_the_state() -> None:
    seen: list[Any] = []

    def instruct(ctx: ReadonlyContext) -> str:
        seen.append(ctx.readonly_state.get("by"))
        return ""

    class Fork:
        """Runs each of its agents in a branch of its own."""

        name, description = "fork", ""

        def __init__(self, *agents: Agent) -> None:
            self.sub_agents = agents

        async def run(self, ctx: Any) -> Any:
            for agent in self.sub_agents:
                branch = ContextDelta(invocation=InvocationDelta(branch=f"fork.{agent.name}"))
                async for event in agent.run(Context.promote(ctx, branch)):
                    yield event

    first = Agent("first", ScriptedModel(["I was here."]), output_key="by")
    second_model = ScriptedModel(["Me too."])
    await Talk(Fork(first, Agent("second", second_model, instruct))).say("Hi")

    assert seen == ["I was here."]
    assert told(second_model.requests[0]) == [["Hi"]]


async def test_pieces_of_an_answer_are_not_handed_to_the_store() -> None:
    sessions = Counting()
    talk = Talk(Agent("w", ScriptedModel(["two words"])), sessions=sessions)
    events = await talk.say("Hi", config=RunConfig(streaming=True))

    assert [event.partial for event in events] == [True, True, False]
    assert briefs(sessions.appended) == [["Hi"], ["two words"]]
