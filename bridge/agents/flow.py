"""A model in the loop: ask it, run the calls it asks for, ask again, until it is done (§5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from bridge.agents.answers import events_after
from bridge.agents.asking import Asking
from bridge.agents.processors import AgentRun, prepare
from bridge.agents.transfer import transfer_target
from bridge.calls.streams import closing
from bridge.core.event import Event
from bridge.core.model import Model
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError

MOST_THOUGHTS: Final = 10
"""How many turns of nothing but thoughts may follow one another."""


async def run_flow(run: AgentRun) -> AsyncIterator[Event]:
    """Step after step, until the last event of a step is final.

    Every event is yielded before what follows from it is done: who stops listening stops the
    work.

    Raises:
        BridgeError: The model ends in the middle of an answer, or never ends.
        Exception: What preparing the request, or the model, raises.
    """
    thoughts = 0
    for _ in range(run.config.most_model_calls):
        last: Event | None = None
        async with closing(_step(run)) as events:
            async for event in events:
                yield event
                last = event

        if last is None or run.ctx.ended:
            return

        if last.partial:
            raise BridgeError(f'the model of "{run.agent.name}" ended in the middle of its answer')

        thoughts = thoughts + 1 if is_only_thoughts(last) else 0
        if last.is_final_response() and not 0 < thoughts <= MOST_THOUGHTS:
            return

    raise BridgeError(
        f'"{run.agent.name}" asked its model {run.config.most_model_calls} times and is not done; '
        "if that is as it should be, raise agent.max_steps in the configuration file, or "
        "RunConfig.most_model_calls in Python"
    )


def is_only_thoughts(event: Event) -> bool:
    """Whether a whole turn of the model has thoughts in it and nothing else."""
    return bool(event.parts) and not event.partial and all(part.thought for part in event.parts)


async def _step(run: AgentRun) -> AsyncIterator[Event]:
    """Put together one question, ask it, and do what the answers ask for."""
    model = _model_of(run)
    run.ctx.scope.check()
    request = LLMRequest(model=model.name)
    is_waiting = False
    async with closing(prepare(run, request)) as replayed:
        async for event in replayed:
            yield event
            is_waiting = is_waiting or bool(event.long_running_tool_ids)

    if is_waiting or run.ctx.ended:
        return

    asking = Asking(run.ctx, model, request, run.stages, run.config.streaming)
    async with closing(asking.responses()) as responses:
        async for response in responses:
            async with closing(_follow(run, request, asking, response)) as events:
                async for event in events:
                    yield event


def _model_of(run: AgentRun) -> Model:
    model = run.agent.model
    if isinstance(model, Model):
        return model

    if model is None:
        raise BridgeError(f'the agent "{run.agent.name}" has no model; give it one')

    raise BridgeError(f'the model "{model.name}" can only be spoken with live: use Runner.live')


async def _follow(
    run: AgentRun, request: LLMRequest, asking: Asking, response: LLMResponse
) -> AsyncIterator[Event]:
    """The event of one answer, and what becomes of the calls in it."""
    if response.content is None and not response.error_code and not response.interrupted:
        return

    said = run.said(response, request, actions=asking.filed(partial=response.partial))
    yield said
    if said.partial or not said.function_calls():
        return

    outcomes = await run.execute(said, request)
    events = events_after(run.ctx, said, outcomes)
    for event in events:
        yield event

    successor = events[0].actions.transfer_to_agent if events else ""
    if successor:
        async with closing(transfer_target(run.ctx, successor).run(run.ctx)) as theirs:
            async for event in theirs:
                yield event
