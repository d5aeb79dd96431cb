"""How a conversation stands: what a person is asked, and whether a turn was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.agents.questions import decision
from bridge.agents.run_config import RunConfig
from bridge.agents.runner import Message, Runner
from bridge.core.content import Content, FunctionCall, FunctionResponse, Part
from bridge.core.event import Event
from bridge.core.session import SessionKey
from bridge.gateway.conversation import Conversation, Standing
from bridge.models.scripted import ScriptedModel
from bridge.tools.function import function_tool

PAY = FunctionCall("c1", "pay", {"sum": 5})
REFUND = FunctionCall("c2", "refund", {"sum": 5})


def pay(sum: int) -> str:
    """Pay."""
    return f"paid {sum}"


def refund(sum: int) -> str:
    """Pay back."""
    return f"paid back {sum}"


async def begun(*answers: Any) -> Conversation:
    """A conversation with an agent that gives these answers, and whose tools ask."""
    tools = [function_tool(each, require_confirmation=True) for each in (pay, refund)]
    runner = Runner(Agent("clerk", ScriptedModel(answers), tools=tools), app_name="clerk")
    await runner.sessions.create(SessionKey("clerk", "local", "s"))
    return Conversation(runner, "s", RunConfig())


async def said(conversation: Conversation, message: Message) -> list[Event]:
    async with aclosing(conversation.say(message)) as events:
        return [event async for event in events]


async def asked(conversation: Conversation) -> list[str]:
    return [question.call.name for question in (await conversation.standing()).questions]


def together(*decisions: Content) -> Content:
    return Content("user", tuple(part for each in decisions for part in each.parts))


async def test_what_is_said_is_among_the_events() -> None:
    conversation = await begun("Hello.")

    events = await said(conversation, "Hi.")

    assert [(event.author, event.parts[0].text) for event in events] == [
        ("user", "Hi."),
        ("clerk", "Hello."),
    ]


async def test_every_open_question_is_asked_until_it_is_decided() -> None:
    conversation = await begun([PAY, REFUND], "Done.")
    await said(conversation, "Pay, and pay back.")
    standing = await conversation.standing()

    first, second = standing.questions
    await said(conversation, together(decision(second.id, True), decision(first.id, False)))

    assert [question.call for question in standing.questions] == [PAY, REFUND]
    assert [question.payload["arguments"] for question in standing.questions] == [{"sum": 5}] * 2
    assert not standing.is_cut_off
    assert await asked(conversation) == []


async def test_question_stays_open_while_something_else_is_said() -> None:
    conversation = await begun([PAY], "Of course.")
    await said(conversation, "Pay.")
    await said(conversation, "Wait.")

    assert await asked(conversation) == ["pay"]


async def test_call_that_asks_anew_is_asked_for_once() -> None:
    conversation = await begun([PAY], "Done.")
    await said(conversation, "Pay.")
    (question,) = (await conversation.standing()).questions
    stale = together(decision(question.id, True))
    (part,) = stale.parts
    assert part.function_response is not None
    assert part.function_response.response is not None
    part.function_response.response["hash"] = "of another call"

    await said(conversation, stale)
    (anew,) = (await conversation.standing()).questions

    assert anew.call == question.call
    assert anew.id != question.id


@pytest.mark.parametrize(
    ("answers", "taken", "is_cut_off"),
    [
        (["Hello."], 0, False),
        (["Hello."], 1, True),
        (["Hello."], 2, False),
        ([[FunctionCall("c", "nobody", {})], "Sorry."], 2, True),
        ([[FunctionCall("c", "nobody", {})], "Sorry."], 3, True),
        ([[FunctionCall("c", "nobody", {})], "Sorry."], 4, False),
    ],
)
async def test_turn_is_cut_off_until_the_agent_has_answered(
    answers: Sequence[Any], taken: int, is_cut_off: bool
) -> None:
    conversation = await begun(*answers)
    if taken:
        async with aclosing(conversation.say("Hi.")) as events:
            for _ in range(taken):
                await anext(events)

    assert (await conversation.standing()).is_cut_off is is_cut_off


async def test_decided_question_is_not_asked_again_although_its_call_has_not_run() -> None:
    conversation = await begun([PAY], "Done.")
    await said(conversation, "Pay.")
    (question,) = (await conversation.standing()).questions
    async with aclosing(conversation.say(decision(question.id, True))) as events:
        await anext(events)

    assert await conversation.standing() == Standing((), is_cut_off=True)
    assert [event.author for event in await said(conversation, None)] == ["clerk", "clerk"]
    assert await conversation.standing() == Standing((), is_cut_off=False)


async def test_question_is_over_once_somebody_has_answered_the_call_itself() -> None:
    conversation = await begun([PAY, REFUND])
    await said(conversation, "Pay, and pay back.")
    session = await conversation.runner.session("local", "s")
    answer = Part(function_response=FunctionResponse("c1", "pay", {"result": "by hand"}))
    by_hand = Event(author="user", content=Content("user", (answer,)))
    await conversation.runner.sessions.append_event(session, by_hand)

    assert await asked(conversation) == ["refund"]


async def test_another_agents_question_is_not_ours_to_ask() -> None:
    conversation = await begun([PAY])
    await said(conversation, "Pay.")
    session = await conversation.runner.session("local", "s")
    args = {"originalFunctionCall": {"id": "c9", "name": "refund", "args": {}}}
    forged = Part(function_call=FunctionCall("q9", "adk_request_confirmation", args))
    event = Event(author="other", content=Content("model", (forged,)))
    await conversation.runner.sessions.append_event(session, event)

    assert await asked(conversation) == ["pay"]
