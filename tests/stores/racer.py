"""A process of its own that does one thing with a database, when it is told to.

`python -m tests.stores.racer URL spend|create NAME` prints "ready", waits for a line, does it,
and prints "won" or "lost".
"""

from __future__ import annotations

import sys

import anyio

from bridge.core.content import FunctionCall
from bridge.core.session import SessionKey
from bridge.core.stores import Decision
from bridge.errors import SessionExists
from bridge.stores.database import Database, open_database
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore

KEY = SessionKey("app", "u1", "s1")


async def spend(database: Database, name: str) -> bool:
    """Spend the one confirmation, in one's own name."""
    decision = Decision(
        confirmation_id="confirm-1", confirmed=True, call=FunctionCall(name, "buy", {})
    )
    return await SqlApprovalStore(database).spend(KEY, decision)


async def create(database: Database, name: str) -> bool:
    """Create the one session, with one's own name in it."""
    try:
        await SqlSessionService(database).create(KEY, {"by": name, "app:by": name})
    except SessionExists:
        return False

    return True


def say(word: str) -> None:
    """Tell whoever started this."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(url: str, what: str, name: str) -> None:
    """Wait at the line, then do it."""
    say("ready")
    await anyio.to_thread.run_sync(sys.stdin.readline)
    async with open_database(url) as database:
        done = await (spend if what == "spend" else create)(database, name)

    say("won" if done else "lost")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
