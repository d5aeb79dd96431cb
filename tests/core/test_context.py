"""What each kind of context shows, what each way to make one keeps, and what it refuses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from bridge.core.actions import EventActions
from bridge.core.artifacts import Artifacts
from bridge.core.bound import BoundMemory
from bridge.core.capability import NARROWING
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Content, Part
from bridge.core.context import (
    CallbackContext,
    Context,
    InvocationContext,
    ReadonlyContext,
    ToolContext,
    local_context,
)
from bridge.core.delta import UNSET, ContextDelta, InvocationDelta
from bridge.core.identity import NEW_ID
from bridge.core.memory import MemoryEntry
from bridge.core.scope import Key, Scope
from bridge.core.session import Session
from bridge.errors import BridgeError, CapabilityError, ServiceMissing

HELLO = Content("user", (Part(text="What is the weather in Hangzhou?"),))
COLOUR: Key[str] = Key("colour")


@dataclass
class Agent:
    name: str = "weather_agent"


class Shelf:
    """Artifacts that count versions, and refuse what is named `broken`."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {"weather.txt": 1}

    async def save(self, name: str, part: Part) -> int:
        if name == "broken":
            raise OSError("the disk is full")

        self.versions[name] = self.versions.get(name, 0) + 1
        return self.versions[name]

    async def load(self, name: str) -> Part:
        return Part(text=f"{name} {self.versions[name]}")

    async def load_version(self, name: str, version: int) -> Part:
        return Part(text=f"{name} {version}")

    async def list(self) -> Sequence[str]:
        return sorted(self.versions)


@dataclass
class Recall:
    """A memory service that tells who asked for what."""

    asked: list[tuple[str, str, str]]

    async def add_session(self, session: Session) -> None:
        raise NotImplementedError

    async def search(self, app_name: str, user_id: str, query: str) -> Sequence[MemoryEntry]:
        self.asked.append((app_name, user_id, query))
        return [MemoryEntry(HELLO, "user")]


def run(**given: Any) -> InvocationContext:
    """A run with all that a run can have."""
    defaults: dict[str, Any] = {
        "invocation_id": "e-1",
        "agent": Agent(),
        "branch": "root.weather",
        "user_content": HELLO,
        "isolation_scope": "task-1",
        "run_config": {"stream": True},
        "artifacts": Shelf(),
        "memory": BoundMemory(Recall([]), "app", "ann"),
        "scope": Scope().with_value(COLOUR, "red"),
    }
    session = Session("s-1", user_id="ann", app_name="app", state={"city": "Beijing"})
    return InvocationContext(session, **{**defaults, **given})


def node(**given: Any) -> Context:
    """The context of a workflow's node."""
    return Context.promote(
        run(**given),
        ContextDelta(
            path="wf/child@123",
            run_id="123",
            resume_inputs={"a": None},
            sub_scheduler="scheduler",
            output_for_ancestors=["a", "b"],
        ),
    )


# --- kinds ---------------------------------------------------------------------------------

READABLE = [
    *("agent_name", "app_name", "user_id", "session_id", "invocation_id", "branch"),
    *("user_content", "readonly_state", "scope"),
]
OF_A_RUN = [
    *("agent", "artifacts", "memory", "session", "invocation_id", "branch", "isolation_scope"),
    *("user_content", "run_config", "scope", "end_invocation", "ended", "resumed_input"),
    *("with_context", "with_ic_delta"),
]
OF_A_CALL = [
    *("state", "actions", "function_call_id", "search_memory", "tool_confirmation"),
    *("request_confirmation", "path", "run_id", "sub_scheduler", "output_for_ancestors"),
    *("with_agent_context", "with_agent_timeout", "with_agent_cancel", "with_delta"),
    *("with_branch", "invocation"),
]
EVERYTHING = sorted({*READABLE, *OF_A_RUN, *OF_A_CALL})


def names(context: object) -> list[str]:
    return [name for name in EVERYTHING if hasattr(context, name)]


@pytest.mark.spec("system-48")
@pytest.mark.spec("13.21")
def test_a_whole_context_has_the_names_of_both_and_neither_has_the_others() -> None:
    assert names(Context(run())) == EVERYTHING
    assert names(run()) == sorted(OF_A_RUN)
    assert names(ReadonlyContext(run())) == sorted(READABLE)
    assert not isinstance(ReadonlyContext(run()), InvocationContext)


@pytest.mark.spec("system-51")
@pytest.mark.spec("13.5")
@pytest.mark.parametrize("name", NARROWING)
def test_a_narrow_context_has_the_members_of_the_table_and_says_what_else_to_use(
    name: str,
) -> None:
    row = NARROWING[name]
    for kind, context in (("callback", CallbackContext(node())), ("tool", ToolContext(node()))):
        instead = getattr(row, kind)
        assert hasattr(context, name) is not bool(instead)
        if instead:
            with pytest.raises(CapabilityError, match=f"a {kind} context has no {name}: {instead}"):
                getattr(context, name)


def test_the_table_knows_every_member_of_a_whole_context() -> None:
    assert sorted(NARROWING) == EVERYTHING
    public = {name for name in dir(Context) if not name.startswith("_")}
    assert public - set(EVERYTHING) == {"promote"}


def test_a_name_that_no_context_has_is_an_ordinary_mistake() -> None:
    with pytest.raises(AttributeError, match="no attribute 'stat'") as caught:
        _ = ToolContext(run()).stat

    assert not isinstance(caught.value, CapabilityError)


@pytest.mark.spec("13.4")
def test_a_callback_sees_who_asks_and_what_is_kept() -> None:
    ctx = CallbackContext(run())

    seen = [ctx.agent_name, ctx.app_name, ctx.branch, ctx.invocation_id, ctx.session_id]
    assert seen == ["weather_agent", "app", "root.weather", "e-1", "s-1"]
    assert (ctx.user_id, ctx.user_content, dict(ctx.readonly_state)) == (
        "ann",
        HELLO,
        {"city": "Beijing"},
    )
    assert ctx.state.get("city") == "Beijing"
    assert ctx.artifacts is not None


@pytest.mark.spec("13.3")
@pytest.mark.parametrize(
    "name",
    [
        *("actions", "function_call_id", "request_confirmation", "search_memory"),
        *("tool_confirmation",),
    ],
)
def test_a_callback_is_no_call(name: str) -> None:
    ctx = CallbackContext(run())

    assert not hasattr(ctx, name)
    with pytest.raises(CapabilityError, match=f"a callback context has no {name}: "):
        getattr(ctx, name)


@pytest.mark.spec("13.5")
@pytest.mark.parametrize(
    "name", ["session", "agent", "run_config", "memory", "ended", "end_invocation"]
)
def test_a_tool_does_not_reach_its_run(name: str) -> None:
    outer = run()
    ctx = ToolContext(outer)

    with pytest.raises(CapabilityError, match=f"a tool context has no {name}: "):
        getattr(ctx, name)

    assert not outer.ended


@pytest.mark.spec("system-48")
def test_a_readonly_view_copies_nothing() -> None:
    whole = Context(run())
    view = ReadonlyContext(whole)

    whole.state.set("city", "Hangzhou")

    assert view.readonly_state["city"] == "Hangzhou"
    assert view.user_content is HELLO
    with pytest.raises(TypeError):
        view.readonly_state["city"] = "Tokyo"


def test_an_agent_may_be_absent() -> None:
    assert local_context().agent_name == ""
    assert local_context("ann").user_id == "ann"


# --- what each way to make one keeps -------------------------------------------------------


def kept(ctx: Context) -> dict[str, Any]:
    return {
        "path": ctx.path,
        "run_id": ctx.run_id,
        "resumed": ctx.resumed_input("a"),
        "scheduler": ctx.sub_scheduler,
        "ancestors": ctx.output_for_ancestors,
        "call": ctx.function_call_id,
        "confirmation": ctx.tool_confirmation,
        "has_actions": ctx.actions is not None,
    }


NODE = {
    "path": "wf/child@123",
    "run_id": "123",
    "resumed": (None, True),
    "scheduler": "scheduler",
    "ancestors": ["a", "b"],
}
NO_NODE = {
    "path": "",
    "run_id": "",
    "resumed": (None, False),
    "scheduler": None,
    "ancestors": None,
}
NO_CALL = {"call": "", "confirmation": None, "has_actions": False}
YES = ToolConfirmation(confirmed=True)
MADE: dict[str, tuple[Callable[[Context], Context], dict[str, Any]]] = {
    "promote": (Context.promote, {**NODE, **NO_CALL}),
    "promote with a delta": (
        lambda ctx: Context.promote(ctx, ContextDelta(path="wf/x@1")),
        {**NODE, **NO_CALL, "path": "wf/x@1"},
    ),
    "a new context": (Context, {**NO_NODE, **NO_CALL}),
    "a tool context": (
        lambda ctx: ToolContext(ctx, "call-1", None, YES).with_delta(None),
        {**NODE, "call": "call-1", "confirmation": YES, "has_actions": True},
    ),
    "a callback context": (
        lambda ctx: CallbackContext(ctx).with_delta(None),
        {**NO_NODE, "resumed": (None, True), "ancestors": ["a", "b"]}
        | {**NO_CALL, "has_actions": True},
    ),
}


@pytest.mark.spec("system-50")
@pytest.mark.parametrize(("make", "expected"), MADE.values(), ids=MADE)
def test_each_way_to_make_a_context_of_a_node_keeps_what_it_should(
    make: Callable[[Context], Context], expected: dict[str, Any]
) -> None:
    made = make(node())

    assert kept(made) == expected
    assert (made.invocation_id, made.scope.value(COLOUR)) == ("e-1", "red")


@pytest.mark.spec("13.7")
def test_a_new_context_of_a_node_loses_where_it_stands() -> None:
    lost = Context(node())

    assert lost.path == ""
    assert lost.resumed_input("a") == (None, False)


def test_promoting_a_whole_context_is_itself() -> None:
    whole = node()

    assert Context.promote(whole) is whole
    assert whole.with_delta(None) is whole
    assert whole.with_ic_delta(None) is whole


@pytest.mark.spec("13.6")
def test_a_tool_of_a_node_keeps_path_and_ancestors_through_a_delta() -> None:
    ctx = ToolContext(node(), "call-1")

    derived = ctx.with_delta(ContextDelta(invocation=InvocationDelta(branch="other")))

    assert isinstance(derived, Context)
    assert (derived.path, derived.output_for_ancestors) == ("wf/child@123", ["a", "b"])
    assert (derived.branch, derived.function_call_id) == ("other", "call-1")
    assert derived.actions is ctx.actions


def test_actions_that_are_given_are_used_and_completed_in_place() -> None:
    actions = EventActions()
    actions.state_delta = None
    actions.artifact_delta = None

    ctx = ToolContext(run(), "call-1", actions)

    assert ctx.actions is actions
    assert (actions.state_delta, actions.artifact_delta) == ({}, {})


def test_model_hooks_file_in_the_very_maps_they_are_given() -> None:
    state: dict[str, Any] = {}
    artifacts: dict[str, int] = {}
    ctx = CallbackContext.over(run(), state, artifacts)

    ctx.state.set("city", "Hangzhou")
    anyio.run(ctx.artifacts.save, "weather.txt", Part(text="sunny"))

    assert (state, artifacts) == ({"city": "Hangzhou"}, {"weather.txt": 2})


@pytest.mark.spec("13.8")
def test_an_invocation_has_the_id_it_is_given_or_a_fresh_one() -> None:
    fixed = Scope().with_value(NEW_ID, lambda: "fixed")
    fresh = InvocationContext(Session("s"))

    assert InvocationContext(Session("s"), scope=fixed).invocation_id == "e-fixed"
    assert InvocationContext(Session("s"), "mine", scope=fixed).invocation_id == "mine"
    assert fresh.invocation_id.startswith("e-")
    assert uuid.UUID(fresh.invocation_id.removeprefix("e-"))
    assert fresh.with_ic_delta(InvocationDelta(branch="b")).invocation_id == fresh.invocation_id


def test_what_is_derived_before_anybody_asks_for_an_id_has_the_same_one() -> None:
    base, call = InvocationContext(Session("s")), ToolContext(run())

    other = base.with_ic_delta(InvocationDelta(branch="b"))
    derived = call.with_delta(None)

    assert other.invocation_id == base.invocation_id
    assert derived.function_call_id == call.function_call_id


def test_a_call_without_an_id_gets_one_and_keeps_it() -> None:
    ctx = ToolContext(run(scope=Scope().with_value(NEW_ID, iter(["1", "2"]).__next__)))

    assert [ctx.function_call_id, ctx.function_call_id] == ["1", "1"]
    assert ctx.with_delta(None).function_call_id == "1"
    assert uuid.UUID(ToolContext(run()).function_call_id)


# --- deltas --------------------------------------------------------------------------------


@pytest.mark.spec("13.9")
def test_a_runs_delta_moves_the_run_and_not_the_chain_of_a_context_over_it() -> None:
    blue = Scope().with_value(COLOUR, "blue")
    base = run()

    moved = base.with_ic_delta(InvocationDelta(scope=blue))
    over = Context(base).with_ic_delta(InvocationDelta(scope=blue))

    assert moved.scope.value(COLOUR) == "blue"
    same = ["session", "invocation_id", "agent", "branch", "user_content", "artifacts", "memory"]
    assert [getattr(moved, name) is getattr(base, name) for name in same] == [True] * len(same)
    assert base.scope.value(COLOUR) == "red"
    assert over.scope.value(COLOUR) == "red"
    assert over.invocation.scope.value(COLOUR) == "blue"


@pytest.mark.spec("13.10")
@pytest.mark.spec("system-54")
def test_a_contexts_delta_moves_both_chains() -> None:
    blue = Scope().with_value(COLOUR, "blue")

    moved = Context(run()).with_delta(ContextDelta(invocation=InvocationDelta(scope=blue)))

    assert (moved.scope, moved.invocation.scope) == (blue, blue)


@pytest.mark.spec("13.11")
@pytest.mark.spec("system-54")
def test_what_is_given_as_nothing_clears_and_what_is_not_given_is_kept() -> None:
    ctx = Context(run())

    def derived(delta: InvocationDelta) -> Context:
        return ctx.with_delta(ContextDelta(invocation=delta))

    cleared = derived(InvocationDelta(branch="", user_content=None))
    untouched = derived(InvocationDelta(isolation_scope="task-2"))

    assert (cleared.branch, cleared.user_content, cleared.isolation_scope) == ("", None, "task-1")
    assert (untouched.branch, untouched.user_content) == ("root.weather", HELLO)
    assert untouched.isolation_scope == "task-2"
    assert (ctx.branch, ctx.user_content) == ("root.weather", HELLO)


def test_a_nodes_fields_are_cleared_one_by_one() -> None:
    cleared = node().with_delta(ContextDelta(path="", resume_inputs=None, sub_scheduler=None))

    assert (cleared.path, cleared.run_id, cleared.sub_scheduler) == ("", "123", None)
    assert cleared.resumed_input("a") == (None, False)
    assert repr(ContextDelta().path) == repr(UNSET) == "UNSET"


@pytest.mark.spec("system-54")
def test_what_is_derived_shares_session_and_actions() -> None:
    parent = ToolContext(node(), "call-1")
    child = parent.with_delta(ContextDelta(path="root/tool@1"))

    child.state.set("city", "Hangzhou")

    assert child.actions is parent.actions
    assert parent.actions.state_delta == {"city": "Hangzhou"}
    assert parent.state.get("city") == "Hangzhou"
    assert parent.path == "wf/child@123"


@pytest.mark.spec("system-54")
def test_what_calls_off_a_run_shows_through_the_chain_that_hangs_on_it_alone() -> None:
    ctx = Context(run())
    called_off, call_off = Scope().with_cancel()
    both = ctx.with_delta(ContextDelta(invocation=InvocationDelta(scope=called_off)))
    environment_only = ctx.with_ic_delta(InvocationDelta(scope=called_off))

    call_off()

    assert (both.scope.done, environment_only.scope.done) == (True, False)
    assert environment_only.invocation.scope.done


def test_a_context_can_be_hung_on_another_run_or_on_a_scope_alone() -> None:
    ctx = Context(run())
    blue = Scope().with_value(COLOUR, "blue")
    other = node(invocation_id="e-2", scope=blue)

    assert (ctx.with_context(blue).invocation_id, ctx.with_context(blue).scope) == ("e-1", blue)
    moved = ctx.with_agent_context(other)
    assert (moved.invocation_id, moved.scope, moved.path) == ("e-2", blue, "")
    assert moved.output_for_ancestors == ["a", "b"]
    assert ctx.with_context(run(invocation_id="e-3")).invocation_id == "e-3"
    assert ctx.with_branch("b").branch == "b"
    assert run().with_context(blue).scope is blue


@pytest.mark.spec("system-55")
def test_the_end_of_a_run_does_not_spread_to_what_was_derived_before() -> None:
    base = run()
    before = base.with_ic_delta(InvocationDelta(branch="b"))

    Context(base).end_invocation()
    after = base.with_ic_delta(InvocationDelta(branch="c"))

    assert (base.ended, before.ended, after.ended) == (True, False, True)
    before.end_invocation()
    assert before.ended


@pytest.mark.spec("13.12")
@pytest.mark.spec("system-56")
def test_a_resumed_input_is_there_even_where_it_is_nothing() -> None:
    ctx = node()

    assert ctx.resumed_input("a") == (None, True)
    assert ctx.resumed_input("b") == (None, False)
    assert run().resumed_input("a") == (None, False)
    with pytest.raises(CapabilityError, match="use tool_confirmation"):
        _ = ToolContext(ctx).resumed_input


# --- confirmation --------------------------------------------------------------------------


@pytest.mark.spec("7.14")
def test_a_question_is_filed_under_its_call_and_ends_summarising() -> None:
    ctx, unnamed = ToolContext(run(), "fn1"), ToolContext(run(), "")

    ctx.request_confirmation("please confirm")
    unnamed.request_confirmation("please confirm")

    asked = ToolConfirmation("please confirm", confirmed=False)
    assert ctx.actions == EventActions(
        requested_tool_confirmations={"fn1": asked}, skip_summarization=True
    )
    assert unnamed.actions.requested_tool_confirmations == {unnamed.function_call_id: asked}


@pytest.mark.spec("13.19")
def test_a_context_that_is_no_call_asks_nobody() -> None:
    for ctx in (Context(run()), ToolContext.preparing(run())):
        with pytest.raises(BridgeError, match="has no call id"):
            ctx.request_confirmation("sure?")


def test_what_is_written_while_a_request_is_built_belongs_to_no_call() -> None:
    ctx = ToolContext.preparing(run())

    assert ctx.function_call_id == ""
    assert ctx.actions == EventActions()


# --- services ------------------------------------------------------------------------------


@pytest.mark.spec("13.17")
@pytest.mark.spec("system-53")
async def test_a_save_is_noted_with_its_version_once_it_is_done() -> None:
    ctx = ToolContext(run(), "call-1")

    assert await ctx.artifacts.save("weather.txt", Part(text="sunny")) == 2
    with pytest.raises(OSError, match="the disk is full"):
        await ctx.artifacts.save("broken", Part(text="?"))

    assert ctx.actions.artifact_delta == {"weather.txt": 2}
    assert await ctx.artifacts.load("weather.txt") == Part(text="weather.txt 2")
    assert await ctx.artifacts.load_version("weather.txt", 1) == Part(text="weather.txt 1")
    assert list(await ctx.artifacts.list()) == ["weather.txt"]


@pytest.mark.spec("13.17")
@pytest.mark.parametrize(
    ("make", "noted"),
    [(CallbackContext, {}), (CallbackContext.tracking, {"weather.txt": 2})],
    ids=["untracked", "tracked"],
)
async def test_a_callbacks_save_is_noted_only_where_that_was_asked_for(
    make: Callable[[InvocationContext, EventActions], CallbackContext], noted: dict[str, int]
) -> None:
    actions = EventActions()

    assert await make(run(), actions).artifacts.save("weather.txt", Part(text="sunny")) == 2

    assert actions.artifact_delta == noted


async def test_a_save_through_what_is_derived_is_noted_in_the_same_actions() -> None:
    ctx = ToolContext(run(), "call-1")

    await ctx.with_delta(None).artifacts.save("weather.txt", Part(text="sunny"))

    assert ctx.actions.artifact_delta == {"weather.txt": 2}


@pytest.mark.parametrize(
    "use",
    [
        lambda artifacts: artifacts.save("a", Part(text="a")),
        lambda artifacts: artifacts.load("a"),
        lambda artifacts: artifacts.load_version("a", 1),
        lambda artifacts: artifacts.list(),
    ],
)
async def test_artifacts_without_a_service_say_so(use: Callable[[Artifacts], Any]) -> None:
    ctx = ToolContext(run(artifacts=None), "call-1")

    with pytest.raises(ServiceMissing, match="artifact service is not set"):
        await use(ctx.artifacts)

    assert ctx.actions.artifact_delta == {}


@pytest.mark.spec("13.18")
@pytest.mark.spec("system-57")
async def test_a_search_is_bound_to_app_and_user() -> None:
    recall = Recall([])
    ctx = ToolContext(run(memory=BoundMemory(recall, "app", "ann")))

    assert await ctx.search_memory("weather") == [MemoryEntry(HELLO, "user")]
    assert recall.asked == [("app", "ann", "weather")]


@pytest.mark.spec("13.18")
@pytest.mark.spec("system-57")
async def test_a_search_without_a_service_says_so() -> None:
    with pytest.raises(ServiceMissing, match="memory service is not set"):
        await Context(run(memory=None)).search_memory("weather")


async def test_progress_is_told_to_whoever_listens() -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    await ToolContext(run(), on_progress=listen).report_progress(1, 2, "half")
    await ToolContext(run()).report_progress(1)

    assert told == [(1, 2, "half")]
