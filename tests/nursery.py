"""Commands for test servers made with the SDK, which start twenty times faster than by themselves.

Loading the SDK takes a second and more, and is most of what such a server does in a test. Here
one process loads it, and every server is a fork of that: a process of its own, with the streams,
the folder and the environment that it was started with. What it is not is a child of whoever
started it, and it ends a moment after the child that stands for it: tests of how children end, or
of what comes back on the same port, start theirs with `sys.executable`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
START = ROOT / "tests" / "servers" / "start.py"


class Nursery(NamedTuple):
    """The process, which ends with this one, and where it listens."""

    process: subprocess.Popen[bytes]
    place: str


def server(*words: str) -> list[str]:
    """The command for what `python WORDS` would run: `-m MODULE` or a script, and arguments."""
    return [sys.executable, "-I", "-S", str(START), nursery().place, *words]


@cache
def nursery() -> Nursery:
    """The nursery of this process, started when first asked for."""
    place = str(Path(tempfile.mkdtemp(prefix="bridge-test-")) / "nursery")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.nursery", place],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return Nursery(process, place)


def close() -> None:
    """End the nursery, if there is one."""
    if nursery.cache_info().currsize:
        process = nursery().process
        process.communicate()
        nursery.cache_clear()
