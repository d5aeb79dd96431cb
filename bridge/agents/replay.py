"""Running the calls that a person has just decided on, each at most once (§7.8, S8 and S9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.agents.answers import response_event
from bridge.agents.questions import question_event
from bridge.agents.resuming import Resumed, resumable
from bridge.calls.call import Outcome, execute
from bridge.calls.call import Runner as TaskRunner
from bridge.calls.hooks import Hooks
from bridge.calls.missing import StandIn
from bridge.calls.streams import Streams
from bridge.core.actions import EventActions
from bridge.core.content import Args, Part, Result
from bridge.core.context import Context
from bridge.core.declaration import Declaration
from bridge.core.event import Event
from bridge.core.scope import Key
from bridge.core.stores import ApprovalStore, Decision
from bridge.core.tool import Tool
from bridge.errors import InvalidArguments, InvalidSchema, StoreError, ToolError
from bridge.telemetry import log
from bridge.tools.problems import describe
from bridge.tools.schema import Checker

APPROVALS: Final[Key[ApprovalStore]] = Key("ledger of decisions")


@dataclass(frozen=True, slots=True)
class Replay:
    """What replaying calls takes: the tools by name, and how calls are run."""

    ctx: Context
    tools: Mapping[str, Tool]
    hooks: Hooks
    task_runner: TaskRunner
    streams: Streams

    async def events(self) -> AsyncIterator[Event]:
        """Run what the newest reply has decided; yields the answers, then what is asked anew.

        Each event is stored by whoever takes it before the next one is asked for, so what
        follows sees the answers in the session.

        Raises:
            BridgeError: The reply cannot be read.
        """
        questions: list[Event] = []
        for batch in resumable(tuple(self.ctx.session.events), self.ctx.agent_name):
            outcomes = await self._settle(batch)
            answered = response_event(self.ctx, outcomes)
            if answered is None:
                continue

            asked = answered.actions.requested_tool_confirmations
            asking = [Part(function_call=outcome.call) for outcome in outcomes]
            yield answered
            question = question_event(self.ctx, asking, asked)
            if question is not None:
                questions.append(question)

        for question in questions:
            yield question

    async def _settle(self, batch: Sequence[Resumed]) -> list[Outcome]:
        """What became of each call of a batch: run here, run elsewhere, or not run at all."""
        settled: dict[str, Outcome] = {}
        mine: list[Resumed] = []
        for resumed in batch:
            if await self._claim(resumed):
                mine.append(resumed)
            else:
                settled[resumed.call.id] = await self._lost(resumed)

        for resumed, outcome in zip(mine, await self._run(mine), strict=True):
            settled[resumed.call.id] = outcome
            await self._record(resumed, outcome)

        return [settled[resumed.call.id] for resumed in batch]

    async def _run(self, mine: Sequence[Resumed]) -> list[Outcome]:
        """Run the calls, but for those whose edited arguments do not fit."""
        misfits = {resumed.call.id: self._misfit(resumed) for resumed in mine}
        going = [resumed for resumed in mine if misfits[resumed.call.id] is None]
        outcomes = await execute(
            [resumed.effective for resumed in going],
            self.tools,
            self.ctx,
            hooks=self.hooks,
            confirmations={resumed.call.id: resumed.confirmation for resumed in going},
            runner=self.task_runner,
            streams=self.streams,
        )
        ran = {outcome.call.id: outcome for outcome in outcomes}
        return [misfits[each.call.id] or ran[each.call.id] for each in mine]

    async def _claim(self, resumed: Resumed) -> bool:
        """Spend every question about the call; False if somebody else has spent one of them."""
        ledger = self.ctx.scope.value(APPROVALS)
        if ledger is None:
            return True

        spent = [
            await ledger.spend(
                self.ctx.session.key,
                Decision(
                    confirmation_id=question_id,
                    confirmed=resumed.confirmation.confirmed,
                    call=resumed.call,
                    args=resumed.arguments,
                    hash=resumed.confirmation.hash,
                ),
            )
            for question_id in resumed.question_ids
        ]
        return all(spent)

    async def _lost(self, resumed: Resumed) -> Outcome:
        """What somebody else who resumed this call has made of it, as far as that is known."""
        ledger = self.ctx.scope.require(APPROVALS)
        for question_id in resumed.question_ids:
            decision = await ledger.find(self.ctx.session.key, question_id)
            if decision is not None and decision.answered_at is not None:
                return self._outcome(resumed, decision.response, None)

        name = resumed.call.name
        return self._failed(
            resumed,
            ToolError(
                f'the call of "{name}" is already being executed, and what came of it is not '
                "known here; it is not run again"
            ),
        )

    async def _record(self, resumed: Resumed, outcome: Outcome) -> None:
        """Keep what came of the call, for whoever else has resumed it."""
        ledger = self.ctx.scope.value(APPROVALS)
        if ledger is None:
            return

        try:
            for question_id in resumed.question_ids:
                await ledger.record(self.ctx.session.key, question_id, outcome.response)
        except StoreError:  # the call has run: its answer matters more than the note of it
            log.warning('the answer of "%s" was not recorded', outcome.call.name, exc_info=True)

    def _misfit(self, resumed: Resumed) -> Outcome | None:
        """The failure of a call whose edited arguments do not fit the tool's own schema."""
        if resumed.arguments is None:
            return None

        try:
            check_arguments(self.tools.get(resumed.call.name), resumed.arguments)
        except ToolError as exc:
            return self._failed(resumed, exc)

        return None

    def _failed(self, resumed: Resumed, error: ToolError) -> Outcome:
        return self._outcome(resumed, {"error": str(error)}, error)

    def _outcome(
        self, resumed: Resumed, response: Result | None, error: ToolError | None
    ) -> Outcome:
        tool = self.tools.get(resumed.call.name) or StandIn(resumed.call.name)
        return Outcome(resumed.effective, response, None, error, EventActions(), tool)


def check_arguments(tool: Tool | None, arguments: Args) -> None:
    """Raises InvalidArguments if they do not fit the schema that the tool declares.

    Raises ToolError where that schema cannot be used to check anything.
    """
    declare: Callable[[], Declaration | None] = getattr(tool, "declaration", lambda: None)
    declared = declare()
    schema = None if declared is None else declared.parameters_json_schema
    if declared is None or schema is None:
        return

    try:
        problems = Checker(schema).problems(arguments)
    except InvalidSchema as exc:
        raise ToolError(f'edited arguments of "{declared.name}" cannot be checked: {exc}') from exc

    if problems:
        raise InvalidArguments(
            f'the edited arguments of "{declared.name}" do not fit: {describe(problems)}'
        )
