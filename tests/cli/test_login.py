"""`bridge login`, and what other commands do where a login is needed; a browser is a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.cli.app import run
from tests.upstream.oauth_site import Site, site

ROOT = Path(__file__).resolve().parent.parent.parent
BROWSER = f"{sys.executable} -m tests.cli.browser %s"
NOWHERE = "false"  # a browser that opens nothing


def config(place: Path, site: Site, **more: Any) -> str:
    path = place / "bridge.yaml"
    upstreams = {"notes": {"url": site.url, "oauth": True}, **more}
    path.write_text(json.dumps({"upstreams": upstreams}), "utf-8")
    return str(path)


async def bridge(place: Path, *words: str, browser: str = NOWHERE) -> tuple[int, str, str]:
    """Run a command without a terminal: its exit code, and what it printed."""
    mine: Mapping[str, str] = {"BROWSER": browser, "XDG_STATE_HOME": str(place / "state")}
    ended = await anyio.run_process(
        [sys.executable, "-m", "bridge", *words],
        stdin=subprocess.DEVNULL,
        check=False,
        cwd=ROOT,
        env={**os.environ, **mine, "PYTHONPATH": str(ROOT)},
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


async def test_a_person_logs_in_and_other_commands_have_the_login(tmp_path: Path) -> None:
    async with site() as there:
        path = config(tmp_path, there)

        code, said, noted = await bridge(tmp_path, "login", path, "notes", browser=BROWSER)
        assert (code, said) == (0, 'logged in to "notes"\n')
        assert f'to log in to "notes", open:\n{there.origin}/authorize?' in noted

        assert await bridge(tmp_path, "call", path, "notes__look") == (0, "done\n", "")
        [kept] = (tmp_path / "state" / "bridge" / "logins").glob("*.json")
        assert kept.stat().st_mode & 0o777 == 0o600

    assert len(there.logins) == 1


async def test_who_is_logged_in_can_log_in_anew(tmp_path: Path) -> None:
    async with site() as there:
        path = config(tmp_path, there)
        for _ in range(2):
            ended = await bridge(tmp_path, "login", path, "notes", browser=BROWSER)
            assert ended[0] == 0, ended

    assert len(there.logins) == 2
    assert len(there.registrations) == 1


async def test_a_server_that_wants_a_login_only_for_calls_is_logged_in_to(tmp_path: Path) -> None:
    async with site(wants_login_for=("tools/call",)) as there:
        path = config(tmp_path, there)
        code, said, noted = await bridge(tmp_path, "call", path, "notes__look")
        assert (code, said) == (1, "")
        assert "needs login; run: bridge login CONFIG notes" in noted

        assert (await bridge(tmp_path, "login", path, "notes", browser=BROWSER))[0] == 0
        assert await bridge(tmp_path, "call", path, "notes__look") == (0, "done\n", "")


async def test_without_a_terminal_nobody_is_asked_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    async with site() as there:
        path = config(tmp_path, there)

        code, said, _ = await bridge(tmp_path, "tools", path, "--json", browser=BROWSER)
        assert code == 0
        [status] = json.loads(said)["upstreams"]
        assert status["reason"] == "needs login; run: bridge login CONFIG notes"
        assert (await bridge(tmp_path, "check", path, "--live", browser=BROWSER))[0] == 1

    assert there.logins == []


def test_only_an_upstream_with_a_login_can_be_logged_in_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, Site(origin="http://127.0.0.1:9"), plain={"command": ["x"]})

    assert run(["login", path, "plain"]) == 2
    assert 'upstream "plain" has no login' in capsys.readouterr().err
    assert run(["login", path, "nodes"]) == 2
    assert 'no upstream "nodes"; did you mean "notes"?' in capsys.readouterr().err


async def test_a_server_that_is_not_there_is_no_login(tmp_path: Path, free_port: Any) -> None:
    there = Site(origin=f"http://127.0.0.1:{free_port()}")

    code, said, noted = await bridge(tmp_path, "login", config(tmp_path, there), "notes")

    assert (code, said) == (1, "")
    assert "cannot connect" in noted
