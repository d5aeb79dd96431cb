"""The conversations that rest: opened by name, begun anew, listed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from bridge.agents.events import visible_text
from bridge.agents.run_config import RunConfig
from bridge.agents.runner import DEFAULT_SESSION
from bridge.cli.output import counted, print_json, print_table
from bridge.config.agent import AgentSettings
from bridge.core.event import Event
from bridge.core.session import Session, SessionKey
from bridge.errors import ConfigError, SessionExists, SessionNotFound
from bridge.gateway.agent import RunningAgent, open_stores
from bridge.gateway.conversation import LOCAL_USER, Conversation, standing_of

MOST_LISTED: Final = 50
SHORT: Final = 60  # characters of what was said first

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation, and the session as it was when it was opened."""

    conversation: Conversation
    session: Session


def check_session_name(name: str | None) -> None:
    """Raises ConfigError if `name` cannot be a session's."""
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigError('--session: use 1 to 64 letters, digits, ".", "_" or "-" as a name')


async def open_session(agent: RunningAgent, name: str | None, new: bool) -> Opened:
    """The session of that name, or the default one; a new one where it is missing or asked for.

    Raises:
        ConfigError: A new one is asked for, and the name is taken.
    """
    made = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}" if new else DEFAULT_SESSION
    key = SessionKey(agent.runner.app_name, LOCAL_USER, name or made)
    sessions = agent.runner.sessions
    try:
        session = await (sessions.create(key) if new else sessions.get(key))
    except SessionExists as exc:
        raise ConfigError(
            f'--new: there is a session "{key.session_id}"; go on with it, or choose another name'
        ) from exc
    except SessionNotFound:
        session = await sessions.create(key)

    config = RunConfig(streaming=True, most_model_calls=agent.settings.max_steps)
    return Opened(Conversation(agent.runner, key.session_id, config), session)


async def list_sessions(settings: AgentSettings, as_json: bool) -> None:
    """Print the agent's newest sessions, newest first, and how many calls wait in each.

    Raises:
        StoreError: They cannot be read.
    """
    async with open_stores(settings) as stores:
        found = await stores.sessions.list(settings.name, LOCAL_USER)
        newest = sorted(found, key=lambda session: session.updated_at, reverse=True)
        held = [await stores.sessions.get(one.key) for one in newest[:MOST_LISTED]]

    rows = [_row(session, settings.name) for session in held]
    if as_json:
        print_json({"agent": settings.name, "sessions": rows, "total": len(found)})
        return

    columns = ("session", "last used", "events", "waits for", "first words")
    print_table(columns, [_cells(row) for row in rows])
    if len(found) > MOST_LISTED:
        print(f"… and {len(found) - MOST_LISTED} older ones")


def _row(session: Session, agent_name: str) -> dict[str, Any]:
    return {
        "session": session.id,
        "last_used": session.updated_at.isoformat(timespec="seconds"),
        "events": len(session.events),
        "waiting": [one.call.name for one in standing_of(session, agent_name).questions],
        "first_words": _first_words(session.events),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    waiting, words = row["waiting"], row["first_words"]
    return [
        row["session"],
        f"{datetime.fromisoformat(row['last_used']).astimezone():%Y-%m-%d %H:%M}",
        str(row["events"]),
        f"{counted(len(waiting), 'decision')}: {', '.join(waiting)}" if waiting else "",
        words if len(words) <= SHORT else words[: SHORT - 1] + "…",
    ]


def _first_words(events: Sequence[Event]) -> str:
    return next((" ".join(visible_text(event.content).split()) for event in events), "")
