"""Memory with a real full-text index: SQLite's FTS5, in a file or for the process's life."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from bridge.core.content_json import content_from_json, content_to_json
from bridge.core.event import Event
from bridge.core.memory import MemoryEntry
from bridge.core.session import Session
from bridge.errors import StoreError
from bridge.stores.records import (
    check_key,
    check_owner,
    from_micros,
    pack,
    to_micros,
    unpack,
)
from bridge.stores.sqlite import BUSY_SECONDS, make_file

T = TypeVar("T")

MOST_FOUND: Final = 20
MOST_WORDS: Final = 64  # of one query; what is beyond says nothing more
LONGEST_QUERY: Final = 10_000  # characters

# Chinese, Japanese and Korean do not put spaces between all words, so each character counts.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_PIECES: Final = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_UNSPACED_PIECE: Final = re.compile(f"[{_UNSPACED}]")

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS memories (
        number INTEGER PRIMARY KEY, app_name TEXT NOT NULL, user_id TEXT NOT NULL,
        event TEXT NOT NULL, timestamp INTEGER NOT NULL, entry TEXT NOT NULL,
        UNIQUE (app_name, user_id, event))""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING fts5(
        owner, words, tokenize = 'porter unicode61 remove_diacritics 2')""",
)
_ADD: Final = "INSERT OR IGNORE INTO memories VALUES (NULL, ?, ?, ?, ?, ?)"
_INDEX: Final = "INSERT INTO memory_words (rowid, owner, words) VALUES (?, ?, ?)"
# A word that few memories have says more than one that many have; whose they are says nothing.
_FIND: Final = """SELECT timestamp, entry
    FROM memory_words JOIN memories ON number = memory_words.rowid
    WHERE memory_words MATCH ? AND app_name = ? AND user_id = ?
    ORDER BY bm25(memory_words, 0.0, 1.0), timestamp DESC LIMIT ?"""


class SqliteMemoryService:
    """A `MemoryService` that ranks by BM25 what shares words with the query.

    Without a path it lives as long as it is open. Thoughts, calls and results are not
    remembered, only what was said. Close it with `aclose`, or use it in `async with`.
    """

    def __init__(self, path: Path | None = None, *, most_found: int = MOST_FOUND) -> None:
        self._path = path
        self._most_found = most_found
        self._connection: sqlite3.Connection | None = None
        self._thread = anyio.CapacityLimiter(1)

    async def __aenter__(self) -> SqliteMemoryService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the file; what was in memory alone is gone. It may be used anew."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._thread)

    async def add_session(self, session: Session) -> None:
        """Remember what was said in the session; see `MemoryService.add_session`.

        Raises:
            StoreError: The session's key is unfit, or the file cannot be written.
        """
        check_key(session.key)
        spoken = [(event, _text(event)) for event in session.events if not event.partial]
        rows = [_rows(session, event, text) for event, text in spoken if text]

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # which commits, or takes all of it back
                for memory, indexed in rows:
                    added = connection.execute(_ADD, memory)
                    if added.rowcount == 1:
                        connection.execute(_INDEX, (added.lastrowid, *indexed))

        await self._run(work)

    async def search(self, app_name: str, user_id: str, query: str) -> Sequence[MemoryEntry]:
        """What fits the query, best first; any text is a query, and one without words fits
        nothing."""
        check_owner(app_name, user_id)
        terms = _terms(query[:LONGEST_QUERY])
        if not terms:
            return []

        match = f"owner:{_owner(app_name, user_id)} AND words:({' OR '.join(terms)})"
        values = match, app_name, user_id, self._most_found
        found = await self._run(lambda connection: connection.execute(_FIND, values).fetchall())
        return [_entry(timestamp, entry) for timestamp, entry in found]

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def translated() -> T:
            try:
                return work(self._open())
            except (sqlite3.Error, OSError) as exc:
                raise StoreError(f"the memory cannot be used: {exc}") from exc

        return await anyio.to_thread.run_sync(translated, limiter=self._thread)

    def _open(self) -> sqlite3.Connection:
        """The connection, made when it is first needed: most child runs need none."""
        if self._connection is None:
            if self._path is not None:
                make_file(self._path)

            # Any worker thread may use it, one at a time: the limiter sees to that.
            self._connection = sqlite3.connect(
                ":memory:" if self._path is None else self._path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            for table in _TABLES:
                self._connection.execute(table)

        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _rows(session: Session, event: Event, text: str) -> tuple[tuple[Any, ...], tuple[str, str]]:
    """The row that remembers an event, and what the index is to hold of it."""
    content = None if event.content is None else content_to_json(event.content)
    entry = pack({"author": event.author, "content": content}, f'event "{event.id}"')
    named = hashlib.sha256(pack([session.id, event.id], "an event's id").encode()).hexdigest()
    memory = session.app_name, session.user_id, named, to_micros(event.timestamp), entry
    return memory, (_owner(session.app_name, session.user_id), _words(text))


def _entry(timestamp: int, entry: str) -> MemoryEntry:
    found = unpack(entry)
    return MemoryEntry(content_from_json(found["content"]), found["author"], from_micros(timestamp))


def _owner(app_name: str, user_id: str) -> str:
    """One word for one user of one app, so that the index looks at no other's memories."""
    return "u" + hashlib.sha256(pack([app_name, user_id], "an owner").encode()).hexdigest()


def _text(event: Event) -> str:
    """What was said, without what was only thought."""
    spoken = (part.text for part in event.parts if part.text and not part.thought)
    return " ".join(spoken)


def _words(text: str) -> str:
    """Words with spaces between them, for the index's own reader."""
    return " ".join(_spaced(piece) for piece in _PIECES.findall(text))


def _spaced(piece: str) -> str:
    return " ".join(piece) if _UNSPACED_PIECE.match(piece) else piece


def _terms(query: str) -> list[str]:
    """What to look for, each quoted, so that no text of a query is an operator."""
    terms: dict[str, None] = {}
    for piece in _PIECES.findall(query):
        if _UNSPACED_PIECE.match(piece):
            pairs = [piece[at : at + 2] for at in range(max(len(piece) - 1, 1))]
            terms.update((f'"{" ".join(pair)}"', None) for pair in pairs)
        else:
            terms[f'"{piece}"'] = None

    return list(terms)[:MOST_WORDS]
