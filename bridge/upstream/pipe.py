"""The pipes into and out of a child process, whichever event loop made them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from bridge.upstream.channel import ChannelBusy, ChannelError


@runtime_checkable
class Input(Protocol):
    """A child's stdin. Event loops other than asyncio's own have classes of their own for it."""

    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...
    def get_write_buffer_size(self) -> int: ...


@runtime_checkable
class Output(Protocol):
    """A child's stdout."""

    def is_closing(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


def put(pipe: Input, line: bytes, limit: int) -> None:
    """Write one line, unless more than `limit` bytes wait to be read already.

    Raises:
        ChannelError: The child closed the pipe; ChannelBusy if it does not read.
    """
    if pipe.is_closing():
        raise ChannelError("the server closed its input", sent=False)

    if pipe.get_write_buffer_size() > limit:
        raise ChannelBusy("the server does not read its input")

    pipe.write(line + b"\n")


def take(pipe: object, takes: bool) -> None:
    """Take what the child writes, or leave it in the pipe; may be said again."""
    if isinstance(pipe, Output) and not pipe.is_closing():
        (pipe.resume_reading if takes else pipe.pause_reading)()
