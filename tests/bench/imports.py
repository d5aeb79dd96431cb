"""What starting costs: `python -m tests.bench.imports` prints CPU seconds and ratios."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

ROUNDS = 7
STARTS = {
    "python": ["-c", "pass"],
    "import mcp": ["-c", "import mcp"],
    "import bridge": ["-c", "import bridge"],
    "from bridge import MCPToolset": ["-c", "from bridge import MCPToolset"],
    "bridge --help": ["-m", "bridge", "--help"],
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(rounds: int = ROUNDS) -> dict[str, float]:
    """CPU seconds of each start: the median of several rounds, in which all take their turns."""
    seen: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(rounds):
        for name, arguments in STARTS.items():
            seen[name].append(cpu_seconds(arguments))

    return {name: statistics.median(values) for name, values in seen.items()}


def table(found: dict[str, float]) -> Iterator[str]:
    """A line for each start."""
    yield "what starting costs"
    for name, seconds in found.items():
        ratio = seconds / found["import mcp"]
        yield f"  {name:<32}{seconds:6.3f} s CPU   {ratio:5.2f} x import mcp"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(measured()))
