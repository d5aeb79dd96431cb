"""Tools that answer in pieces: one answer in a turn, sent on piece by piece when live (§9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from bridge.core.content import Args, FunctionCall, Result
from bridge.core.context import ToolContext
from bridge.core.scope import Scope
from bridge.errors import CalledOff, ToolError
from bridge.telemetry import log
from bridge.tools.cancelled import self_cancelled

STOP_STREAMING: Final = "stop_streaming"
PENDING: Final = "It runs in the background; what it returns is told as it comes."
LONGEST_TEXT: Final = 16 * 1024 * 1024  # characters

Send: TypeAlias = Callable[[str], Awaitable[None]]
T = TypeVar("T")


class closing(Generic[T]):
    """Close an async iterator at the end of the block, if it can be closed at all."""

    __slots__ = ("_stream",)

    def __init__(self, stream: AsyncIterator[T]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._stream

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()


class Streams:
    """Streaming tools run to their end, and their pieces are one answer, joined by nothing."""

    def stopped(self, call: FunctionCall) -> Result | None:
        """The answer to a call of `stop_streaming`; None where that name has no meaning."""
        return None

    async def answer(self, tool: Any, ctx: ToolContext, args: Args) -> Result:
        """What a streaming tool answers. What it yields before it fails is lost.

        Raises:
            ToolError: A piece is no text, there is too much of it, or the tool cancelled itself.
            Exception: Whatever the tool raises.
        """
        try:
            return {"result": await self._joined(tool, ctx, args)}
        except anyio.get_cancelled_exc_class() as exc:
            raise self_cancelled(exc, f'the tool "{tool.name}"') from exc

    async def _joined(self, tool: Any, ctx: ToolContext, args: Args) -> str:
        pieces: list[str] = []
        size = 0
        async with closing(tool.run_stream(ctx, args)) as stream:
            async for piece in stream:
                size += len(_checked(piece, tool.name))
                if size > LONGEST_TEXT:
                    raise ToolError(f'"{tool.name}" streams more than {LONGEST_TEXT} characters')

                pieces.append(piece)

        return "".join(pieces)


class TurnStreams(Streams):
    """Those of an agent's turn, where `stop_streaming` is known and there is nothing to stop."""

    def stopped(self, call: FunctionCall) -> Result | None:
        """Says that nothing of that name is running."""
        return _not_running(_wanted(call)) if call.name == STOP_STREAMING else None


class LiveStreams(TurnStreams):
    """Those of one live session: each runs beside the conversation until it ends or is stopped.

    It passes its gate first. Then the answer is "pending", and every piece is sent as a text of
    its own. Nothing here outlives the session.
    """

    def __init__(self, tasks: TaskGroup, send: Send) -> None:
        """`tasks` runs them, `send` takes each piece; a send that fails ends that stream."""
        self._tasks = tasks
        self._send = send
        self._running: dict[str, dict[str, Callable[[], None]]] = {}

    @property
    def running(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the calls that are still streaming, by tool name."""
        return {name: tuple(calls) for name, calls in self._running.items()}

    def stopped(self, call: FunctionCall) -> Result | None:
        """Call off everything of the wanted name. A tool in a blocked thread is left behind."""
        if call.name != STOP_STREAMING:
            return None

        name = _wanted(call)
        running = self._running.pop(name, None)
        if not running:
            return _not_running(name)

        for call_off in running.values():
            call_off()

        return {"status": f"Stopped every running instance of {name}."}

    async def answer(self, tool: Any, ctx: ToolContext, args: Args) -> Result:
        """Pass the gate, start the tool, and say that it is running.

        Raises:
            Exception: Whatever the tool raises before its first piece is asked for.
        """
        whole, call_off = ctx.with_agent_cancel()
        call_id = ctx.function_call_id
        desk = ToolContext(whole, call_id, ctx.actions, ctx.tool_confirmation)
        opened = getattr(tool, "open_stream", None)
        try:
            stream = tool.run_stream(desk, args) if opened is None else await opened(desk, args)
        except anyio.get_cancelled_exc_class() as exc:
            raise self_cancelled(exc, f'the tool "{tool.name}"') from exc

        self._running.setdefault(tool.name, {})[call_id] = call_off
        self._tasks.start_soon(self._pass_on, tool.name, stream, desk)
        return {"status": PENDING}

    async def _pass_on(self, name: str, stream: AsyncIterator[str], desk: ToolContext) -> None:
        """Send every piece, until the tool is done, has failed, or is called off."""
        try:
            await self._send_all(name, stream, desk.scope)
        except CalledOff:
            log.info('the stream of "%s" was stopped', name)
        except anyio.get_cancelled_exc_class() as exc:
            log.warning("%s", self_cancelled(exc, f'the stream of "{name}"'))
        except Exception:  # the tool is a stranger's code, and the session may be gone
            log.warning('the stream of "%s" failed', name, exc_info=True)
        finally:
            self._forget(name, desk.function_call_id)

        if desk.actions.requested_tool_confirmations:
            log.warning('"%s" asked for confirmation while streaming: nobody is asked', name)

    async def _send_all(self, name: str, stream: AsyncIterator[str], scope: Scope) -> None:
        with scope.enforced():
            async with closing(stream) as pieces:
                async for piece in pieces:
                    scope.check()  # a tool that does not heed being called off sends no more
                    await self._send(f"Function {name} returned: {_checked(piece, name)}")

    def _forget(self, name: str, call_id: str) -> None:
        calls = self._running.get(name, {})
        calls.pop(call_id, None)
        if not calls:
            self._running.pop(name, None)


COLLECTED: Final = Streams()
IN_TURN: Final = TurnStreams()


def _wanted(call: FunctionCall) -> str:
    """The name of the tool to stop; empty where the model named none."""
    name = call.args.get("function_name")
    return name if isinstance(name, str) else ""


def _not_running(name: str) -> Result:
    return {"status": f"No streaming function named {name} is running."}


def _checked(piece: Any, name: str) -> str:
    if isinstance(piece, str):
        return piece

    kind = type(piece).__name__
    raise ToolError(f'"{name}" streamed a {kind}; a streaming tool yields text')
