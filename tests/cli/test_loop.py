"""Commands in their event loops, and the signals that end them."""

from __future__ import annotations

import signal
import sys

import pytest

from bridge.__main__ import main
from bridge.cli.loop import run_command
from tests.processes import started
from tests.waiting import eventually

SCRIPT = """
import signal, sys, threading, anyio
from bridge.cli.loop import run_command

def interrupt():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def work():
    # The signal goes to a thread that does not run the loop, which sleeps by then.
    threading.Timer(0.3, interrupt).start()
    try:
        await anyio.sleep_forever()
    finally:
        print("left in order", flush=True)

try:
    run_command(work)
except KeyboardInterrupt:
    sys.exit(130)
"""


async def test_interrupt_that_finds_the_loop_asleep_wakes_it() -> None:
    async with started([sys.executable, "-c", SCRIPT]) as running:
        assert await eventually(lambda: running.process.poll()) == 130
        assert "left in order" in running.output()


def test_interrupt_while_the_command_line_is_loaded_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(name: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("bridge.__main__.import_module", load)

    assert main() == 130
    assert capsys.readouterr() == ("", "")


def test_what_a_command_returns_is_returned_and_no_handler_is_left() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def work(one: int, two: int) -> int:
        return one + two

    assert run_command(work, 1, 2) == 3
    assert signal.getsignal(signal.SIGINT) is before
