"""A PostgreSQL server of one's own: in a folder, on a Unix socket, gone afterwards.

PostgreSQL refuses to run as root, so where the tests do, its processes belong to somebody else.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.waiting import PATIENCE, STEP

SERVERS = Path("/usr/lib/postgresql")
SOMEBODY_ELSE = ("postgres", "nobody")
UNSAFE_BUT_FAST = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


def programs() -> Path | None:
    """Where the newest installed server's programs are; None where there is no server."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent

    versions = [path for path in SERVERS.glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a new server whose programs are in `folder`; gives the URL of its first database."""
    user = _somebody_else() if os.getuid() == 0 else None
    # Not pytest's own folder: the path of a socket has little room, and its owner is another.
    with tempfile.TemporaryDirectory(prefix="bridge-pg-") as place:
        data, log = Path(place) / "data", Path(place) / "log"
        if user is not None:
            os.chown(place, pwd.getpwnam(user).pw_uid, -1)

        made = [folder / "initdb", "-D", data, "-U", "bridge", "-E", "UTF8", "--locale=C"]
        made += ["--auth=trust", "--no-sync"]
        subprocess.run(made, user=user, check=True, capture_output=True, cwd=place)
        command = [folder / "postgres", "-D", data, "-k", place, "-h", "", *UNSAFE_BUT_FAST]
        with log.open("wb") as written:
            process = subprocess.Popen(
                command, user=user, cwd=place, stdout=written, stderr=subprocess.STDOUT
            )

        try:
            _wait_until_ready(process, folder, place, log)
            yield f"postgresql://bridge@/postgres?host={quote(place, safe='')}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _somebody_else() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in SOMEBODY_ELSE if name in names)


def _wait_until_ready(
    process: subprocess.Popen[bytes], folder: Path, place: str, log: Path
) -> None:
    ask = [folder / "pg_isready", "-h", place, "-q"]
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(ask, check=False).returncode != 0:
        assert process.poll() is None, log.read_text("utf-8")
        assert time.monotonic() < deadline, log.read_text("utf-8")
        time.sleep(STEP)
