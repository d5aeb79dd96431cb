"""The databases that the stores are tested with, each kind, for whole gateways too."""

from tests.stores.conftest import database_url, postgres_server, postgres_url

__all__ = ["database_url", "postgres_server", "postgres_url"]
