"""What several bridges share: the keys of what clients carry, and the record of what was used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BeforeValidator, SecretStr, model_validator

from bridge.config.agent import Store
from bridge.config.closed import Closed
from bridge.config.fields import bad, number_as_text

SHORTEST_KEY: Final = 32
"""Bytes of a key at least: as many as the cipher's own (AES-256)."""

MOST_KEYS: Final = 16

_SQLITE = re.compile(r"sqlite(\+\w+)?:")
_ABSOLUTE = re.compile(r"sqlite(\+\w+)?:///(/|[A-Za-z]:)[^?]")


def to_bytes(key: SecretStr) -> bytes:
    """A key as it is used."""
    return key.get_secret_value().encode("utf-8", "surrogatepass")


def _is_key(value: Any) -> SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else number_as_text(value)
    key = SecretStr(text) if isinstance(text, str) else SecretStr("")
    if len(to_bytes(key)) < SHORTEST_KEY:
        raise bad(
            f"this is no key: it has fewer than {SHORTEST_KEY} bytes. Make one with "
            '"openssl rand -hex 32", and write it as "${BRIDGE_STATE_KEY}".'
        )

    return key


def _are_keys(keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if len({to_bytes(key) for key in keys}) < len(keys):
        raise bad("one key stands here twice. Keep one.")

    if len(keys) > MOST_KEYS:
        raise bad(f"these are more than {MOST_KEYS} keys. Remove those that are used no more.")

    return keys


def _is_one_place(store: Path | SecretStr) -> Path | SecretStr:
    """The same file, wherever a bridge that shares it was started."""
    url = "" if isinstance(store, Path) else store.get_secret_value()
    if _SQLITE.match(url) and not _ABSOLUTE.match(url):
        raise bad(
            "this URL names no file, or one that depends on where bridge is started. Write its "
            "path, such as state.db, or all of it: sqlite:////var/lib/bridge/state.db."
        )

    return store


StateKey = Annotated[SecretStr, BeforeValidator(_is_key)]
StateStore = Annotated[Store, AfterValidator(_is_one_place)]


class StateSettings(Closed):
    """What clients carry for bridge between two requests, good at every bridge that shares this.

    The first of `keys` seals it, all of them open it. `store` is a SQLite file, or the URL of a
    database, with the record of the answers that were used: neither is of use without the other.
    """

    keys: Annotated[tuple[StateKey, ...], AfterValidator(_are_keys)] = ()
    store: StateStore | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if self.keys and self.store is None:
            raise bad(
                "there are keys and no store: every bridge that has the keys could use a "
                'person\'s yes once, and once more after a restart. Add "store: state.db", or '
                "the URL of a database that they share."
            )

        if not self.keys:
            raise bad(
                "there are no keys: nothing that another bridge sealed, or this one before a "
                'restart, could be opened. Add keys: ["${BRIDGE_STATE_KEY}"], or remove this.'
            )

        return self
