"""The tables of a database that keeps sessions, decisions, and which answers were used.

Moments are microseconds since 1970, values are JSON text. Version 1.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

VERSION: Final = 1

metadata: Final = MetaData()

schema_version: Final = Table(
    "bridge_schema",
    metadata,
    Column("version", Integer, primary_key=True),
)

sessions: Final = Table(
    "bridge_sessions",
    metadata,
    Column("app_name", String, primary_key=True),
    Column("user_id", String, primary_key=True),
    Column("session_id", String, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

# The state of an app has no user and no session here, that of a user has no session: "".
state: Final = Table(
    "bridge_state",
    metadata,
    Column("app_name", String, primary_key=True),
    Column("user_id", String, primary_key=True),
    Column("session_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)

# `position` is the session's revision once the event is in it, so it orders the history.
events: Final = Table(
    "bridge_events",
    metadata,
    Column("app_name", String, primary_key=True),
    Column("user_id", String, primary_key=True),
    Column("session_id", String, primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("timestamp", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
)

decisions: Final = Table(
    "bridge_decisions",
    metadata,
    Column("app_name", String, primary_key=True),
    Column("user_id", String, primary_key=True),
    Column("session_id", String, primary_key=True),
    Column("confirmation_id", String, primary_key=True),
    Column("confirmed", Boolean, nullable=False),
    Column("call", Text, nullable=False),
    Column("args", Text, nullable=False),
    Column("hash", String),
    Column("decided_at", BigInteger, nullable=False),
    Column("answered_at", BigInteger),
    Column("response", Text),
)

# No table of an older bridge is changed by this one, so the version is the same.
record: Final = Table(
    "bridge_record",
    metadata,
    Column("number", BigInteger, primary_key=True),  # there is one row
    Column("name", String, nullable=False),
)

spent: Final = Table(
    "bridge_spent",
    metadata,
    Column("nonce", String, primary_key=True),
    Column("expires_at", BigInteger, nullable=False),
)
