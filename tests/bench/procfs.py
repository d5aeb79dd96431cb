"""What the kernel counts of one process (Linux, `/proc`): its own figures, never its children's."""

from __future__ import annotations

import os
import re
from pathlib import Path

KIB = 1024


def cpu_seconds(pid: int) -> float:
    """Time on a CPU, of all its threads, in steps of nanoseconds."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        total += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])

    return total / 1e9


def resident(pid: int) -> int:
    """Bytes of memory it holds now."""
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    """The most bytes it held since its start, or since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Count the peak anew from here (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, key: str) -> int:
    found = re.search(rf"^{key}:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    if found is None:
        raise ProcessLookupError(f"process {pid} has no {key}: it ended")

    return int(found[1]) * KIB
