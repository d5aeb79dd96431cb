"""The provider that these tests talk to, with a desk of its own for each test."""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from bridge.models.openai_compatible import OpenAICompatible
from tests.processes import started, unused_port

SERVER = Path(__file__).resolve().parent.parent / "servers" / "chat_completions.py"
KEY = "sk-the-secret-key"


@dataclass(frozen=True, slots=True)
class Desk:
    """One desk of the provider, as a test sees it."""

    url: str

    @property
    def base_url(self) -> str:
        """Where a model of this desk is."""
        return f"{self.url}/v1"

    def model(self, **options: Any) -> OpenAICompatible:
        """A model of this desk."""
        return OpenAICompatible(self.base_url, "small", **{"api_key": KEY, **options})

    async def script(self, *steps: dict[str, Any]) -> None:
        """Tell the desk what to say."""
        async with httpx.AsyncClient(trust_env=False) as client:
            (await client.put(f"{self.url}/script", json=steps)).raise_for_status()

    async def heard(self) -> list[dict[str, Any]]:
        """What it was asked: body, headers, the client's address, whether the client left."""
        async with httpx.AsyncClient(trust_env=False) as client:
            heard: list[dict[str, Any]] = (await client.get(f"{self.url}/heard")).json()
            return heard

    async def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the questions."""
        return [one["body"] for one in await self.heard()]


@pytest.fixture(scope="session")
async def provider_url() -> AsyncIterator[str]:
    """A running provider."""
    port = unused_port()
    async with started([sys.executable, str(SERVER), "--port", str(port)], port=port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def desk(provider_url: str) -> Desk:
    """A desk that nobody has been to."""
    return Desk(f"{provider_url}/{uuid.uuid4().hex}")
