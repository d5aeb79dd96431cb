"""What becomes of large results while a gateway serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridge.config.results import ResultsSettings
from bridge.downstream.large import LargeResults
from bridge.downstream.spool import open_spool


@asynccontextmanager
async def keeping(
    settings: ResultsSettings, group: str | None = None
) -> AsyncIterator[LargeResults | None]:
    """Somewhere to keep large results, until the end; None where they are not to be cut.

    Several processes that serve together are one `group`, and read what any of them has kept.

    Raises:
        ConfigError: Nothing can be kept where the settings say.
    """
    if settings.max_size is None:
        yield None
        return

    where, seconds, total = settings.directory, settings.keep, settings.total
    with open_spool(where, group, seconds=seconds, total=total) as spool:
        yield LargeResults(spool, settings.max_size)
