"""The pipe into a child process, whichever event loop made it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from bridge.upstream.channel import ChannelBusy, ChannelError


@runtime_checkable
class Input(Protocol):
    """A child's stdin. Event loops other than asyncio's own have classes of their own for it."""

    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...
    def get_write_buffer_size(self) -> int: ...


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
