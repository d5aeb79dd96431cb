"""A small process that runs one MCP server and sees to it that nothing of it is left.

Started as a file by `upstream.stdio` on Linux: `python -I -S guard.py LIFE GRACE COMMAND…`. It is
between bridge and the server, but not in the way: the server has the pipes, the guard has none.
LIFE is the reading end of a pipe that bridge alone holds open: a byte means "end it now", its end
means that bridge is gone, however it died. As a subreaper the guard inherits every orphan that the
server leaves, also those in sessions of their own, and ends them all. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TERM_SECONDS = 1.0
KILL_SECONDS = 10.0
NOT_FOUND = 127


def main(argv: list[str]) -> int:
    """Run the command until it ends or bridge does; returns the command's exit code."""
    life, grace, command = int(argv[1]), float(argv[2]), argv[3:]
    os.set_inheritable(life, False)
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    awake = _wake_on_signals()
    child = _start(command, prctl)
    os.close(0)
    os.close(1)
    watch = _Watch(child, life, awake)
    if watch.until_end(None) == "gone":
        watch.until_end(grace)

    _end_everything()
    return watch.code


class _Watch:
    """Waits for the child's end and for a word from bridge, whichever comes first."""

    def __init__(self, child: int, life: int, awake: int) -> None:
        self._child, self._life, self._awake = child, life, awake
        self._listening = True
        self.code = 128 + signal.SIGKILL

    def until_end(self, seconds: float | None) -> str:
        """What came first: the child "exited", "now" or "gone" from bridge, or it is "late"."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = self._ready(left)
            if not ready:
                return "late"

            if self._awake in ready:
                signals = os.read(self._awake, 512)
                if self._reap():
                    return "exited"

                if signal.SIGTERM in signals:
                    return "now"

            if self._life in ready:
                self._listening = False
                return "now" if os.read(self._life, 1) else "gone"

    def _ready(self, seconds: float | None) -> list[int]:
        """The descriptors that have something to say; poll, for select ends at number 1023."""
        waiting = select.poll()
        waiting.register(self._awake, select.POLLIN)
        if self._listening:
            waiting.register(self._life, select.POLLIN)

        found = waiting.poll(None if seconds is None else seconds * 1000)
        return [descriptor for descriptor, _ in found]

    def _reap(self) -> bool:
        """Collect whoever has ended; true once the child is among them."""
        for pid, status in _ended():
            if pid == self._child:
                self.code = os.waitstatus_to_exitcode(status)
                self.code = 128 - self.code if self.code < 0 else self.code
                return True

        return False


def _wake_on_signals() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    return reader


def _start(command: list[str], prctl: Callable[..., int]) -> int:
    parent = os.getpid()
    child = os.fork()
    if child:
        return child

    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(NOT_FOUND)

        for number in (
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGPIPE,
            signal.SIGTERM,
            signal.SIGCHLD,
        ):
            signal.signal(number, signal.SIG_DFL)

        os.execvp(command[0], command)
    except OSError as exc:
        os.write(2, f"cannot run {command[0]!r}: {exc.strerror}\n".encode())
    finally:
        os._exit(NOT_FOUND)


def _end_everything() -> None:
    """TERM to all that descends from here, and KILL to what does not listen."""
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while time.monotonic() < deadline:
            for _ in _ended():
                pass

            alive = _descendants()
            if not alive:
                return

            for pid in alive - told if number == signal.SIGTERM else alive:
                told.add(pid)
                _kill(pid, number)

            time.sleep(0.01)


def _ended() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    with contextlib.suppress(ChildProcessError):
        while (pair := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(pair)

    return found


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (parent := _parent_of(entry)):
            children.setdefault(parent, []).append(int(entry))

    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            found.add(pid)
            waiting.append(pid)

    return found


def _parent_of(pid: str) -> int:
    """The parent's id from /proc/PID/stat, whose second field may hold any character."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
