"""The seals of what clients carry for a gateway, and where it is recorded which were used."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from bridge.config.state import StateSettings, to_bytes
from bridge.downstream.sealed import Seals, Spent
from bridge.errors import ConfigError, StoreError
from bridge.gateway.resolve import loaded

STATE: Final = "serve.state"
STORE: Final = f"{STATE}.store"


@asynccontextmanager
async def sealing(settings: StateSettings | None) -> AsyncIterator[Seals]:
    """The seals that the settings describe, until the end; by default this process's own.

    Raises:
        ConfigError: The store is none that can be used, or a package is missing.
        StoreError: It cannot be reached.
    """
    if settings is None:
        yield Seals()
        return

    async with AsyncExitStack() as stack:
        spent = await _opened(settings, stack)
        yield Seals([to_bytes(key) for key in settings.keys], spent=spent)


async def _opened(settings: StateSettings, stack: AsyncExitStack) -> Spent:
    store = settings.store
    url = store if isinstance(store, Path) else "" if store is None else store.get_secret_value()
    open_spent = loaded("bridge.stores.spent:open_spent", STATE, "gateway")
    try:
        spent: Spent = await stack.enter_async_context(open_spent(url))
    except ConfigError as exc:
        raise ConfigError(f"{STORE}: {exc}") from exc
    except StoreError as exc:
        raise StoreError(f"{STORE} cannot be used: {exc}") from exc

    return spent
