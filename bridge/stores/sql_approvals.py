"""The ledger of decisions in a database: one row a decision, and its key is what spends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, select, update

from bridge.core.content import Result
from bridge.core.identity import utc_now
from bridge.core.session import SessionKey
from bridge.core.stores import Decision
from bridge.stores.database import Database, add
from bridge.stores.decisions import pack_decision, unpack_decision, unspent
from bridge.stores.records import check_id, check_key, pack, to_micros
from bridge.stores.schema import decisions


class SqlApprovalStore:
    """An `ApprovalStore` over a database; it outlives the process and serves several."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def spend(self, key: SessionKey, decision: Decision) -> bool:
        """Record the first decision on a confirmation; see `ApprovalStore.spend`."""
        row = pack_decision(key, decision, self._clock())
        return await self._database.write(lambda connection: add(connection, decisions, row))

    async def find(self, key: SessionKey, confirmation_id: str) -> Decision | None:
        """The decision that spent it; None while it is unspent."""
        wanted = select(decisions).where(_is(key, confirmation_id))

        def work(connection: Connection) -> Decision | None:
            row = connection.execute(wanted).one_or_none()
            return None if row is None else unpack_decision(row._asdict())

        return await self._database.read(work)

    async def record(self, key: SessionKey, confirmation_id: str, response: Result | None) -> bool:
        """Keep the call's response; see `ApprovalStore.record`."""
        mine = _is(key, confirmation_id)
        values = {
            "response": pack(response, "the response to a decision"),
            "answered_at": to_micros(self._clock()),
        }

        def work(connection: Connection) -> bool:
            open_one = and_(mine, decisions.c.answered_at.is_(None))
            if connection.execute(update(decisions).where(open_one).values(values)).rowcount == 1:
                return True

            if connection.execute(select(decisions.c.confirmed).where(mine)).first() is None:
                raise unspent(confirmation_id)

            return False

        return await self._database.write(work)


def _is(key: SessionKey, confirmation_id: str) -> ColumnElement[bool]:
    check_key(key)
    check_id(confirmation_id, "confirmation id")
    return and_(
        decisions.c.app_name == key.app_name,
        decisions.c.user_id == key.user_id,
        decisions.c.session_id == key.session_id,
        decisions.c.confirmation_id == confirmation_id,
    )
