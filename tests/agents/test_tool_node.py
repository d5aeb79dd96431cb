"""A tool as a node: run by itself, on input from anywhere, and never unasked."""

from __future__ import annotations

import json
import uuid
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge.agents.llm_agent import Agent
from bridge.agents.loop_agent import LoopAgent
from bridge.agents.plugin import Plugin
from bridge.agents.tool_node import ToolNode
from bridge.core.content import Result
from bridge.core.context import Context, ToolContext, local_context
from bridge.core.delta import ContextDelta
from bridge.core.event import Event
from bridge.errors import ConfigError, ConfirmationRequired, InvalidArguments, ToolError
from bridge.models.scripted import ScriptedModel
from bridge.tools.function import LocalTool, function_tool
from bridge.tools.toolsets import StaticToolset
from tests.agents.talk import Talk, brief, briefs, text, told
from tests.agents.tools import Probe
from tests.fakes import NativeTool, StreamOnlyTool

GREETING = {
    "type": "object",
    "properties": {"greeting": {"type": "string"}},
    "required": ["greeting"],
    "additionalProperties": False,
}
HELLO = {"greeting": "Hello World"}


async def ran(node: ToolNode, *given: Any, ctx: Context | None = None) -> Event:
    """The one event of a node that has run."""
    (event,) = [event async for event in node.run(ctx or local_context(), *given)]
    return event


def greet(**options: Any) -> LocalTool:
    async def greet(name: str) -> dict[str, str]:
        """Greet somebody."""
        return {"greeting": f"Hello {name}"}

    return function_tool(greet, **options)


@pytest.mark.spec("1.9.1")
async def test_a_node_is_named_and_described_as_its_tool_unless_it_is_named_otherwise() -> None:
    node, named = ToolNode(greet()), ToolNode(greet(), "hello")

    assert (node.name, node.description, node.sub_agents) == ("greet", "Greet somebody.", ())
    assert (named.name, named.description) == ("hello", "Greet somebody.")
    event = await ran(named, {"name": "World"})
    assert (event.author, event.output, event.is_final_response()) == ("hello", HELLO, True)


@pytest.mark.spec("1.9.1")
@pytest.mark.parametrize("tool", [None, NativeTool("search"), StreamOnlyTool("radio")])
def test_what_does_not_run_here_is_no_node(tool: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be a node: it is no tool that runs here"):
        ToolNode(tool)


def test_a_node_has_a_name_and_schemas_that_can_be_used() -> None:
    with pytest.raises(ConfigError, match='"two words" cannot name an agent'):
        ToolNode(greet(), "two words")

    with pytest.raises(ConfigError, match='the input schema of node "greet"'):
        ToolNode(greet(), input_schema={"type": "nonsense"})

    with pytest.raises(ConfigError, match='the output schema of node "greet"'):
        ToolNode(greet(), output_schema={"type": "nonsense"})


@pytest.mark.spec("1.9.2")
async def test_every_run_is_a_call_with_an_id_and_actions_of_its_own() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        ctx.state.set("last", args["n"])
        return {"path": ctx.path}

    tool = Probe(body=body)
    ctx = Context.promote(local_context(), ContextDelta(path="wf/work@1"))
    events = [await ran(ToolNode(tool), {"n": n}, ctx=ctx) for n in (1, 2)]

    assert [event.output for event in events] == [{"path": "wf/work@1"}] * 2
    assert [event.actions.state_delta for event in events] == [{"last": 1}, {"last": 2}]
    ids = {each.function_call_id for each in tool.contexts}
    assert len(ids) == 2
    assert all(uuid.UUID(each) for each in ids)
    assert all(each.tool_confirmation is None for each in tool.contexts)


@pytest.mark.spec("1.9.2")
async def test_nothing_steps_in_around_the_call_of_a_node() -> None:
    class Meddling(Plugin):
        async def before_tool(self, *given: Any) -> Result:
            return {"meddled": True}

        async def after_tool(self, *given: Any) -> Result:
            return {"meddled": True}

    (event,) = await Talk(ToolNode(greet()), plugins=[Meddling()]).say('{"name": "World"}')

    assert event.output == HELLO


@pytest.mark.spec("1.9.3")
@pytest.mark.parametrize("rule", [True, lambda name, args: True, lambda name, args: 1 / 0])
async def test_a_tool_that_needs_a_yes_does_not_run_and_asks_nobody(rule: Any) -> None:
    greeted: list[str] = []

    async def greet(name: str) -> None:
        greeted.append(name)

    own = function_tool(greet, require_confirmation=rule)
    strangers = Probe("greet")
    (wrapped,) = await StaticToolset([strangers]).confirmed(rule).tools(local_context())
    for tool in (own, wrapped):
        events: list[Event] = []
        node: Any = ToolNode(tool)
        with pytest.raises(ToolError, match=r'"greet" failed: .*needs conf') as caught:
            events += [event async for event in node.run(local_context(), {"name": "World"})]

        assert isinstance(caught.value.__cause__, ConfirmationRequired)
        assert events == []

    assert (greeted, strangers.calls) == ([], [])


@pytest.mark.spec("1.9.3")
async def test_a_decision_in_the_history_is_none_on_a_node() -> None:
    talk = Talk(ToolNode(greet(require_confirmation=True)))
    for message in ('{"name": "World"}', '{"name": "World", "confirmed": true}'):
        with pytest.raises(ToolError):
            await talk.say(message)

    assert await talk.questions() == []


@pytest.mark.spec("1.9.3")
async def test_a_tool_that_asks_by_itself_is_a_failure_and_no_answer() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        ctx.request_confirmation("Sure?")
        return {"status": "waiting"}

    with pytest.raises(ToolError, match='"work" asked for confirmation, and in a node nobody is'):
        await ran(ToolNode(Probe(body=body)), {})


@pytest.mark.spec("1.9.4")
async def test_the_json_text_of_an_object_is_the_object() -> None:
    tool = Probe()
    for given in ({"n": [1]}, '{"n": [1]}', ' {"n":[1]}\n'):
        await ran(ToolNode(tool), given)

    assert tool.calls == [{"n": [1]}] * 3


@pytest.mark.spec("1.9.4")
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("Tokyo", "a string"),
        ("", "a string"),
        ("[1]", "a string"),
        ("{", "a string"),
        ("null", "a string"),
        ([1], "an array"),
        (None, "null"),
        (3, "a number"),
    ],
)
async def test_any_other_input_is_refused_before_the_tool_runs(given: Any, kind: str) -> None:
    tool = Probe()

    with pytest.raises(InvalidArguments, match=f'"work" must be an object, not {kind}'):
        await ran(ToolNode(tool), given)

    assert tool.calls == []


async def test_a_tool_may_do_as_it_likes_with_its_input() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        args["cities"].append("Osaka")
        return {}

    given = {"cities": ["Tokyo"]}
    await ran(ToolNode(Probe(body=body)), given)

    assert given == {"cities": ["Tokyo"]}


class Named(BaseModel):
    name: str


@pytest.mark.spec("1.9.5")
@pytest.mark.parametrize("schema", [Named, Named.model_json_schema()])
async def test_input_that_does_not_fit_is_refused_before_the_tool_runs(schema: Any) -> None:
    tool = Probe("greet")
    node = ToolNode(tool, input_schema=schema)
    with pytest.raises(InvalidArguments, match='input of node "greet" does not fit: "name": miss'):
        await ran(node, {"town": "Tokyo"})

    await ran(node, '{"name": "World"}')
    assert tool.calls == [{"name": "World"}]


@pytest.mark.spec("1.9.5")
async def test_the_tools_own_schema_counts_as_well() -> None:
    with pytest.raises(ToolError, match='"name": expected a string') as caught:
        await ran(ToolNode(greet()), {"name": 3})

    assert isinstance(caught.value.__cause__, InvalidArguments)


@pytest.mark.spec("1.9.6")
@pytest.mark.parametrize(
    ("failure", "reason"),
    [(OSError("something went wrong"), "something went wrong"), (KeyError(), "KeyError")],
)
async def test_a_failure_names_the_tool_and_keeps_its_cause(
    failure: Exception, reason: str
) -> None:
    with pytest.raises(ToolError) as caught:
        await ran(ToolNode(Probe("fail_tool", gives=failure), "step"), {})

    assert str(caught.value) == f'the tool "fail_tool" failed: {reason}'
    assert caught.value.__cause__ is failure


@pytest.mark.spec("1.9.6")
async def test_cancelling_a_node_passes() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        await anyio.sleep_forever()
        return {}

    with anyio.CancelScope() as scope:
        scope.cancel()
        await ran(ToolNode(Probe(body=body)), {})

    assert scope.cancelled_caught


@pytest.mark.spec("1.9.7")
@pytest.mark.parametrize(
    ("schema", "output", "checked"),
    [
        (GREETING, HELLO, HELLO),
        (GREETING, {"result": HELLO}, HELLO),
        ({"type": "object"}, {"result": HELLO}, {"result": HELLO}),
        ({"type": "string"}, {"result": "Hello"}, "Hello"),
        ({"type": "null"}, {"result": None}, None),
        (None, {"result": "Hello"}, {"result": "Hello"}),
        (None, {"anything": 1}, {"anything": 1}),
    ],
)
async def test_a_result_is_taken_out_of_its_wrapping_only_where_the_whole_does_not_fit(
    schema: Any, output: Any, checked: Any
) -> None:
    event = await ran(ToolNode(Probe(gives=output), output_schema=schema), {})

    assert event.output == checked


@pytest.mark.spec("1.9.7")
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ({"result": {"unexpected": 1}}, '"result": unknown'),
        ({"greeting": 1}, '"greeting": expected a string'),
        (None, "the whole: expected an object"),
    ],
)
async def test_an_output_that_does_not_fit_is_told_by_what_is_wrong_with_the_whole(
    output: Any, problem: str
) -> None:
    node = ToolNode(Probe(gives=output), output_schema=GREETING)
    with pytest.raises(ToolError) as caught:
        await ran(node, {})

    assert str(caught.value).startswith('the output of node "work" does not fit: ')
    assert problem in str(caught.value)
    assert '"unexpected"' not in str(caught.value)


@pytest.mark.spec("1.9.8")
async def test_a_text_is_said_as_well() -> None:
    async def shout(name: str) -> str:
        return f"HELLO {name}"

    tool = function_tool(shout)
    said = await ran(ToolNode(tool, output_schema={"type": "string"}), {"name": "WORLD"})
    kept = await ran(ToolNode(tool), {"name": "WORLD"})

    assert (said.output, said.content) == ("HELLO WORLD", text("HELLO WORLD", "model"))
    assert (kept.output, kept.content) == ({"result": "HELLO WORLD"}, None)
    assert Event.from_json(json.loads(json.dumps(said.to_json()))) == said


async def test_a_node_stands_where_an_agent_can_and_takes_what_the_user_says() -> None:
    async def look(city: str) -> str:
        """Look at a city."""
        return f"{city} is sunny."

    model = ScriptedModel(["It is.", "It is."])
    node = ToolNode(function_tool(look), output_schema={"type": "string"})
    talk = Talk(LoopAgent("loop", [node, Agent("w", model)], max_iterations=1))
    events = await talk.say('{"city": "Tokyo"}')

    assert [(event.author, brief(event)) for event in events] == [
        ("look", ["Tokyo is sunny."]),
        ("w", ["It is."]),
    ]
    assert "[look] said: Tokyo is sunny." in told(model.requests[0])[1]
    assert briefs((await talk.session()).events)[1:] == briefs(events)
