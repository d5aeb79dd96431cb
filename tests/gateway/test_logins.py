"""From settings to a login: where it is kept, and that nothing secret shows on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridge.config.load import from_mapping
from bridge.config.oauth import OAuthSettings
from bridge.core.context import local_context
from bridge.gateway.assembly import to_target
from bridge.gateway.embedded import ConfiguredToolset, open_toolset
from bridge.gateway.logins import token_store
from bridge.upstream.target import Endpoint
from tests.upstream.oauth_site import browse, site

URL = "https://mcp.example.com/mcp"


def settled(**oauth: Any) -> OAuthSettings:
    settings = from_mapping({"upstreams": {"notes": {"url": URL, "oauth": oauth}}})
    found = settings.upstreams["notes"].oauth
    assert found is not None
    return found


def test_each_url_issuer_and_client_has_a_file_of_its_own(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    files = [
        token_store(URL, settled(), environ),
        token_store(f"{URL}2", settled(), environ),
        token_store(URL, settled(issuer="https://a.example.com"), environ),
        token_store(URL, settled(client_id="ours"), environ),
    ]

    assert len(set(files)) == 4
    assert {path.parent for path in files} == {tmp_path / "bridge" / "logins"}
    assert files[0] == token_store(URL, settled(scopes=["read"]), environ)


def test_a_file_that_is_named_is_the_one(tmp_path: Path) -> None:
    named = settled(token_store=str(tmp_path / "login.json"))

    assert token_store(URL, named, {}) == tmp_path / "login.json"


def test_a_target_without_a_login_has_no_credentials() -> None:
    settings = from_mapping({"upstreams": {"notes": {"url": URL, "oauth": False}}})

    target = to_target("notes", settings.upstreams["notes"])

    assert isinstance(target, Endpoint)
    assert target.credentials is None


def test_the_secret_of_a_client_is_masked_in_whatever_is_said(tmp_path: Path) -> None:
    oauth = {"client_id": "ours", "client_secret": "canary-secret"}
    settings = from_mapping({"upstreams": {"notes": {"url": URL, "oauth": oauth}}})

    target = to_target("notes", settings.upstreams["notes"])

    assert target.without_secrets("it is canary-secret") == "it is ***"
    assert "canary" not in f"{target!r} {settings!r} {settings.model_dump_json()}"


def opened(place: Path, url: str, **how: Any) -> ConfiguredToolset:
    path = place / "bridge.yaml"
    store = place / "login.json"
    path.write_text(f"upstreams: {{notes: {{url: '{url}', oauth: {{token_store: '{store}'}}}}}}")
    return open_toolset(path, **how)


async def test_a_program_that_embeds_a_toolset_shows_a_person_where_to_log_in(
    tmp_path: Path,
) -> None:
    shown: list[str] = []

    async def show(upstream: str, url: str) -> None:
        shown.append(upstream)
        await browse(url)

    async with site() as there:
        async with opened(tmp_path, there.url) as toolset:
            assert list(await toolset.tools(local_context())) == []
            assert "needs login" in toolset.statuses()[0].reason

        async with opened(tmp_path, there.url, login=show) as toolset:
            names = [tool.name for tool in await toolset.tools(local_context())]

    assert names == ["notes__look", "notes__change"]
    assert shown == ["notes"]
