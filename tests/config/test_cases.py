"""Every way a configuration can be wrong, and what is said; every form it has, and what is read.

Beside each file of settings in `cases/` stands NAME.error, the exact sentences, or NAME.expected,
the settings that differ from the default, as JSON, secrets in the open. A new case is a new pair.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from bridge.config.load import load
from bridge.config.settings import Settings
from bridge.errors import ConfigError

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name for path in CASES.iterdir() if path.suffix not in (".error", ".expected"))
REFUSED = [name for name in NAMES if (CASES / name).with_suffix(".error").exists()]
READ = [name for name in NAMES if (CASES / name).with_suffix(".expected").exists()]
ENVIRON = {
    "BASE_URL": "https://mcp.example.com",
    "CONFIRM": "false",
    "DOCS_TOKEN": "canary-token",
    "EMPTY": "",
    "ENABLED": "true",
    "NAME": "name",
    "PORT": "9000",
    "RECURSIVE": "${NAME} ${EMPTY}",
    "SECRET": "canary-secret",
    "SPACED": "one two --three",
    "TIMEOUT": "2m",
    "YAML": "x]: {a: b}\n- c",
}


def plain(value: Any) -> Any:
    """Settings as JSON: what differs from the default, secrets in the open."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        defaults = type(value).model_construct()
        changed = {k: v for k, v in fields.items() if v != getattr(defaults, k, None)}
        notes = {"notes": value.notes} if isinstance(value, Settings) and value.notes else {}
        return plain({**changed, **notes})

    if isinstance(value, Path):
        return value.relative_to(CASES).as_posix() if value.is_relative_to(CASES) else str(value)

    if isinstance(value, str):
        return value.replace(str(CASES), "CASES")

    if isinstance(value, SecretStr):
        return value.get_secret_value()

    if hasattr(value, "items"):
        return {key: plain(item) for key, item in value.items()}

    return [plain(item) for item in value] if isinstance(value, tuple) else value


def test_every_case_says_what_comes_of_it() -> None:
    assert sorted(REFUSED + READ) == NAMES


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_configuration_is_refused_with_these_sentences(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)

    with pytest.raises(ConfigError) as refused:
        load([name], ENVIRON)

    expected = Path(name).with_suffix(".error").read_text("utf-8").splitlines()
    assert list(refused.value.problems) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_no_secret_shows_in_what_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)

    with pytest.raises(ConfigError) as refused:
        load([name], ENVIRON)

    error: BaseException | None = refused.value
    while error is not None:
        assert "canary" not in f"{error!s} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("name", READ)
def test_a_configuration_is_read_as_these_settings(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    monkeypatch.setenv("HOME", "/home/me")

    settings = load([name], ENVIRON)

    assert plain(settings) == json.loads(Path(name).with_suffix(".expected").read_text("utf-8"))


@pytest.mark.parametrize("name", READ)
def test_no_secret_shows_when_settings_are_printed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)

    settings = load([name], ENVIRON)

    printed = f"{settings!s} {settings!r} {settings.model_dump()!r} {settings.model_dump_json()}"
    secrets = [value for upstream in settings.upstreams.values() for value in hidden_in(upstream)]
    assert [secret for secret in secrets if secret in printed] == []
    assert "canary-token" not in printed


def hidden_in(upstream: Any) -> list[str]:
    """The values that must not show, long enough to be found again."""
    values = [*upstream.env.values(), *upstream.headers.values()]
    return [value for value in values if len(value) > 5 and value != "application/json"]
