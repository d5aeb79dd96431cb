"""Large blocks of memory do not stay when nobody needs them."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from bridge.cli.memory import give_back_large_blocks

MIB = 1024 * 1024

SCRIPT = """
import re, sys
from pathlib import Path
from bridge.cli.memory import give_back_large_blocks

def resident():
    return int(re.search(r"VmRSS:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

if sys.argv[1] == "told":
    assert give_back_large_blocks()

large = b"x" * int(sys.argv[2])  # when it is freed, the library begins to keep such blocks
del large
before = resident()
large, small = [], []
for _ in range(64):
    large.append(b"x" * (int(sys.argv[2]) // 2))
    small.append(b"x" * 20_000)

large.clear()
print(resident() - before)
"""

is_glibc = platform.libc_ver()[0] == "glibc"


def kept(how: str) -> int:
    """Bytes that a process of 32 MiB in large blocks, with small ones between, has afterwards."""
    argv = [sys.executable, "-c", SCRIPT, how, str(MIB)]
    return int(subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout)


@pytest.mark.skipif(not is_glibc, reason="the C library has no such setting")
def test_large_blocks_go_back_to_the_system_though_small_ones_lie_between() -> None:
    assert kept("told") < 4 * MIB < kept("not told")


def test_bounds_that_are_set_by_hand_stay() -> None:
    assert not give_back_large_blocks({"MALLOC_TRIM_THRESHOLD_": "1000000"})
