"""SQLite files: for their owner's eyes alone, and readable while somebody writes."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

BUSY_SECONDS: Final = 30.0  # how long one writer of a file waits for another


def make_file(path: Path) -> None:
    """Make the file where it is missing, and turn on its write-ahead log.

    Raises:
        OSError: The file or its folder cannot be made.
        sqlite3.Error: The file is there and is no database.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    deadline = time.monotonic() + BUSY_SECONDS
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as exc:
                # Changing the mode does not wait for another process that does the same.
                if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise

                time.sleep(0.05)
            else:
                return
