"""Slow cores, one for each process, on a machine that has few: the kernel bounds what each gets.

What processes can do together shows only where each has a core. Where there are fewer, each gets
the same small part of one instead (Linux control groups, which take root's rights).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup")
PERIOD: Final = 10_000  # µs: short, so that who has spent its part waits little


@contextmanager
def slow_cores(processes: Iterable[int], share: float) -> Iterator[None]:
    """Let each of these processes have that share of a core, and no more, for a while.

    Raises:
        OSError: The system does not let us.
    """
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(_bounded(process, round(PERIOD * share)))

        yield


@contextmanager
def _bounded(process: int, micros: int) -> Iterator[None]:
    is_old = (GROUPS / "cpu").is_dir()  # control groups of the first version, cgroups(7)
    above = GROUPS / "cpu" if is_old else GROUPS
    group = above / f"bench-{os.getpid()}-{process}"
    group.mkdir()
    try:
        if is_old:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(micros))
        else:
            (group / "cpu.max").write_text(f"{micros} {PERIOD}")

        (group / "cgroup.procs").write_text(str(process))
        yield
    finally:
        if Path(f"/proc/{process}").exists():
            (above / "cgroup.procs").write_text(str(process))

        group.rmdir()
