"""A channel to an MCP server that runs as a child process and speaks over its pipes.

One line is one message (MCP, transports, stdio). Nothing here is a task: what the pipe brings is
split, parsed and handed to whoever waits for it in the event loop's own callback.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio.lowlevel

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.wire import dumps, loads_leniently
from bridge.upstream.channel import (
    NO_JSON,
    NO_OPTIONS,
    ChannelError,
    Limits,
    Notify,
    Options,
    Params,
)
from bridge.upstream.command import Command
from bridge.upstream.correlator import Message
from bridge.upstream.desk import Desk, Negotiated
from bridge.upstream.last_words import LastWords
from bridge.upstream.lines import LineSplitter
from bridge.upstream.passing import Passed, PassingCorrelator
from bridge.upstream.pipe import Input, put, take

GUARD = Path(__file__).with_name("guard.py")
GUARDED = sys.platform == "linux"
STDIN, STDOUT, STDERR = 0, 1, 2
ID_OF_A_BROKEN_ANSWER = re.compile(rb'"id"\s*:\s*(\d{1,15})')
END_NOW = b"T"


class StdioChannel(asyncio.SubprocessProtocol, Negotiated):
    """One child process, from its start to the end of everything it started."""

    def __init__(self, command: Command, limits: Limits, desk: Desk) -> None:
        self._limits = limits
        self.desk = desk
        self._correlator = PassingCorrelator(desk, limits)
        self._lines = LineSplitter(limits.message_bytes)
        self._words = LastWords(command.argv[0], command.without_secrets, limits)
        self._errors = LineSplitter(limits.stderr_line_bytes, cut=True)
        self._reason = ""
        self._closed = anyio.Event()
        self._exited = anyio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._input: Input | None = None
        self._life = -1

    @property
    def is_open(self) -> bool:
        """Whether the child can still answer."""
        return not self._reason

    @property
    def closed_because(self) -> str:
        """Why it cannot; with its exit code and its last words, as far as they are known."""
        if not self._reason:
            return ""

        code = None if self._transport is None else self._transport.get_returncode()
        ended = "" if code is None else f" (exit code {code})"
        return f"{self._reason}{ended}{self.last_words}"

    @property
    def last_words(self) -> str:
        """What the child wrote that is no message, for whoever asks what is wrong with it."""
        return str(self._words)

    @property
    def stderr(self) -> list[str]:
        """The last lines the child wrote to its stderr, printable and without secrets."""
        return list(self._words.stderr)

    def request(
        self, method: str, params: Params, options: Options = NO_OPTIONS
    ) -> Coroutine[Any, Any, Result]:
        """Send one request and return its result; see `Channel.request`."""
        return self._correlator.ask(method, params, options, self._send)

    def pass_on(self, request: bytes, caller: Caller | None) -> Passed:
        """Send a request of another process's; see `Passing.pass_on`."""
        return self._correlator.pass_on(request, caller, self._put, self._send)

    def listen(self, listens: bool) -> None:
        """Take what the server writes, or let it wait; see `Passing.listen`."""
        if self._transport is not None:
            take(self._transport.get_pipe_transport(STDOUT), listens)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def reply(self, message: Message) -> None:
        """Send the answer to a request of the server's; see `questions.Reply`."""
        self._send(message)

    async def wait_closed(self) -> None:
        """Return when the child can no longer answer."""
        await self._closed.wait()

    # What the event loop calls.

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the child wrote: messages from stdout, a bounded log from stderr."""
        if fd == STDERR:
            for line in self._errors.feed(data):
                self._words.remember(line)

            return

        try:
            for line in self._lines.feed(data):
                self._take(line)
        except OverflowError:
            limit = self._limits.message_bytes
            self._end(f"the server wrote a line of more than {limit} bytes")
            self._kill()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """The child closed a pipe: with its stdout the conversation is over."""
        if fd == STDERR and (line := self._errors.rest()):
            self._words.remember(line)
        elif fd == STDOUT:
            self._end("the server closed its output" if exc is None else str(exc))

    def process_exited(self) -> None:
        """The child, or the guard that stood for it and all its descendants, is gone."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """All pipes are closed and the process is gone."""
        self._end("the server process ended")

    # Inside.

    def _started(self, transport: asyncio.SubprocessTransport) -> None:
        """Keep what the child is spoken to through, whichever event loop made it."""
        pipe = transport.get_pipe_transport(STDIN)
        self._transport, self._input = transport, pipe if isinstance(pipe, Input) else None

    def _send(self, message: Message) -> None:
        self._put(dumps(message))

    def _put(self, line: bytes) -> None:
        pipe = self._input
        if self._reason or pipe is None:
            raise ChannelError(self._reason or "the server is not running", sent=False)

        put(pipe, line, self._limits.message_bytes)

    def _take(self, line: bytes) -> None:
        line = line.strip(b"\xef\xbb\xbf \t\r")
        if not line or self._correlator.deliver(line):
            return

        try:
            message = loads_leniently(line)
        except ValueError:
            self._broken(line)
            return

        for one in message if isinstance(message, list) else [message]:
            if not isinstance(one, dict):
                self._broken(line)
            elif (reply := self._correlator.receive(one)) is not None:
                with suppress(ChannelError):
                    self._send(reply)

    def _broken(self, line: bytes) -> None:
        """Text that is no message: ignored, unless it tried to be the answer to a request."""
        self._words.stray(line)
        if line.startswith(b"{") and (found := ID_OF_A_BROKEN_ANSWER.search(line[:300])):
            self._correlator.fail(int(found[1]), ChannelError(NO_JSON, sent=True))

    def _end(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            self._closed.set()
            self._correlator.fail_all(reason)

    def _kill(self) -> None:
        """End the process group now; the guard, where there is one, sees to the rest."""
        if self._life >= 0:
            with suppress(OSError):
                os.write(self._life, END_NOW)
        elif self._transport is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)

    async def _close(self) -> None:
        """Close stdin, wait, TERM, wait, KILL; return when nothing is left (bounded)."""
        transport = self._transport
        if transport is None:
            return

        self._end("closed")
        pipe = transport.get_pipe_transport(STDIN)
        if pipe is not None:
            pipe.close()

        if not await self._exits_within(self._limits.close_grace) and self._life < 0:
            with suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGTERM)

            await self._exits_within(self._limits.close_grace)

        self._kill()
        await self._exits_within(self._limits.close_grace + 10.0)
        transport.close()
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

        await self._exits_within(self._limits.close_grace)
        await anyio.lowlevel.checkpoint()  # let the loop close the pipes it has just let go of

    async def _exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()

        return self._exited.is_set()


@asynccontextmanager
async def open_stdio(
    command: Command, on_notification: Notify, limits: Limits, default: Caller | None = None
) -> AsyncIterator[StdioChannel]:
    """Start the command and speak with it; on leaving, nothing it started is left.

    `default` is whose all is that the server says outside requests.

    Raises:
        ChannelError: The command cannot be started.
    """
    failure: Exception | None = None
    channel = StdioChannel(command, limits, desk := Desk(on_notification, default))
    try:
        with anyio.CancelScope(shield=True):  # half a start could not be undone
            await _start(channel, command, limits)

        async with anyio.create_task_group() as beside:
            desk.open(beside, channel.reply, channel._correlator)
            try:
                yield channel
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself
            finally:
                desk.close()
                beside.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await channel._close()

    if failure is not None:
        raise failure


async def _start(channel: StdioChannel, command: Command, limits: Limits) -> None:
    argv = [command.program(), *command.argv[1:]]
    kept: tuple[int, ...] = ()
    if GUARDED:
        life, channel._life = os.pipe()
        kept = (life,)
        guard = [sys.executable, "-I", "-S", str(GUARD), str(life), str(limits.close_grace / 2)]
        argv = [*guard, *argv]

    made: Callable[[], StdioChannel] = lambda: channel  # noqa: E731
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            made,
            *argv,
            env=command.environment(),
            cwd=command.cwd,
            pass_fds=kept,
            start_new_session=True,
        )
        channel._started(transport)
    except OSError as exc:
        raise ChannelError(f'cannot run "{command.argv[0]}": {exc.strerror}', sent=False) from exc
    finally:
        for fd in kept:
            os.close(fd)
