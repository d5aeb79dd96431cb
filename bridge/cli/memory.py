"""How the C library deals with the memory of large answers."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from typing import Final

LARGE: Final = 256 * 1024
"""Bytes of a block that goes back to the system as soon as nobody needs it."""

KEPT: Final = 768 * 1024
"""Free bytes at the end of the heap of small blocks that do not go back."""

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt(3)
SET_BY_HAND: Final = ("GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


def give_back_large_blocks(environ: Mapping[str, str] = os.environ) -> bool:
    """Let no large block stay in this process when it is free; False where it is not told so.

    Left to itself, glibc keeps such blocks once it has freed the first, and small ones that come
    to lie between them stop the next from fitting: an answer of a megabyte, which is held twice
    while it passes through here, takes four for good. A block that is always new costs page faults
    instead, about as much as reading and writing what it holds. Who has set these bounds in the
    environment knows better; other C libraries have none.
    """
    if platform.libc_ver()[0] != "glibc" or any(name in environ for name in SET_BY_HAND):
        return False

    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGE) and mallopt(TRIM_THRESHOLD, KEPT))
