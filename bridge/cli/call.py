"""`bridge call`: one tool, once, through the same pipeline as everything else."""

from __future__ import annotations

import difflib
import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from bridge.calls.call import Outcome, execute
from bridge.cli.login import login_here
from bridge.cli.loop import run_command
from bridge.cli.output import note, print_answer, print_json, visible
from bridge.cli.standard import is_at_terminal, read_input
from bridge.config.load import load
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.core.wire import loads
from bridge.downstream.display import one_line
from bridge.errors import (
    BridgeError,
    ConfigError,
    ConfirmationRejected,
    ToolError,
    ToolNotFound,
    UpstreamUnavailable,
)
from bridge.gateway.assembly import Assembly, assemble
from bridge.gateway.live import Gateway, running


def run(config: Path, tool: str, arguments: str, yes: bool, as_json: bool) -> int:
    """Call `tool` and print its answer; returns the exit code.

    Raises:
        BridgeError: The call could not be made, or failed; its `exit_code` says which.
    """
    args = parse_arguments(read_input() if arguments == "-" else arguments)
    assembly = assemble(load([config]), login=login_here())
    outcome = run_command(_call, assembly, FunctionCall(uuid.uuid4().hex, tool, args), yes)
    if outcome.error is not None and not (as_json and outcome.raw is not None):
        raise _failure(tool, outcome.error)

    show(outcome, as_json)
    return 0 if outcome.error is None else 1


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments, as the JSON object they must be.

    Raises:
        ConfigError: Not UTF-8, not JSON, nested too deeply, or not an object.
    """
    try:
        text.encode("utf-8")
        args = loads(text)
    except UnicodeEncodeError as exc:  # what the system could not decode stands there as halves
        raise ConfigError("the arguments are not UTF-8") from exc
    except ValueError as exc:
        raise ConfigError(f"the arguments are not JSON: {exc}") from exc

    if not isinstance(args, dict):
        raise ConfigError('the arguments must be a JSON object, like {"city": "Tokyo"}')

    return args


def _failure(tool: str, error: Exception) -> BridgeError:
    """What a failed call ends the command with: a tool's own code may raise anything."""
    if isinstance(error, BridgeError):
        return error

    return ToolError(f'"{tool}" failed: {type(error).__name__}: {error}')


async def _call(assembly: Assembly, asked: FunctionCall, yes: bool) -> Outcome:
    async with running(assembly) as gateway:
        if not await gateway.offered(asked.name):
            raise _not_found(gateway, asked.name)

        outcome = await _execute(gateway, asked, {})
        question = outcome.actions.requested_tool_confirmations.get(asked.id)
        if question is None:
            return outcome

        if not yes and not await _approved(asked.name, question):
            raise ConfirmationRejected(f'"{asked.name}" was not approved; nothing ran')

        hashed = question.payload.get("hash") if isinstance(question.payload, dict) else None
        granted = ToolConfirmation(confirmed=True, payload=question.payload, hash=hashed)
        return await _execute(gateway, asked, {asked.id: granted})


async def _execute(
    gateway: Gateway, asked: FunctionCall, confirmations: Mapping[str, ToolConfirmation]
) -> Outcome:
    [outcome] = await execute(
        [asked],
        gateway.catalog.tools,
        local_context(),
        confirmations=confirmations,
        on_progress=_show_progress,
    )
    return outcome


async def _show_progress(progress: float, total: float | None, message: str | None) -> None:
    of = "" if total is None else f"/{total:g}"
    note(f"… {progress:g}{of} {message or ''}".rstrip())


async def _approved(tool: str, question: ToolConfirmation) -> bool:
    """Ask on the terminal; without one nobody can answer, and the answer is no."""
    if not is_at_terminal():
        raise ConfirmationRejected(
            f'"{tool}" needs a person\'s yes and there is no terminal to ask on; '
            "--yes approves it. Nothing ran."
        )

    note(question.hint or f'"{tool}" asks for your approval.')
    payload = question.payload if isinstance(question.payload, dict) else {}
    for part, key in (("server", "upstream"), ("tool", "tool")):
        if isinstance(payload.get(key), str):
            note(f"{part}: {one_line(payload[key])}")

    if "arguments" in payload:
        note(f"arguments: {json.dumps(payload['arguments'], indent=2, ensure_ascii=True)}")

    prompt = visible(f"Run {tool}? [y/N] ")
    answer = await anyio.to_thread.run_sync(input, prompt, abandon_on_cancel=True)
    return answer.strip().lower() in {"y", "yes"}


def _not_found(gateway: Gateway, name: str) -> ToolError:
    offered = sorted(gateway.catalog.tools)
    near = difflib.get_close_matches(name, offered, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    down = [s for s in gateway.statuses() if s.state != "ready"]
    gone = "".join(f'\nupstream "{s.name}" is not available: {s.reason}' for s in down)
    problems = "".join(f"\n{problem}" for problem in gateway.catalog.problems if not down)
    kind = UpstreamUnavailable if down else ToolNotFound  # it may be one of those that are down
    return kind(f'no tool named "{name}" is offered{hint}{gone}{problems}')


def show(outcome: Outcome, as_json: bool) -> None:
    """The answer as it came, or the readable part of it."""
    if as_json:
        print_json(outcome.response if outcome.raw is None else outcome.raw)
        return

    answer = outcome.response or {}
    value = answer["output"] if set(answer) == {"output"} else answer
    if isinstance(value, str):
        print_answer(value if not sys.stdout.isatty() else visible(value))
    else:
        print_json(value)
