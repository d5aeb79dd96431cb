"""`bridge login`: a person logs in to an upstream, and the login is kept."""

from __future__ import annotations

import difflib
import webbrowser
from pathlib import Path

import anyio.to_thread

from bridge.cli.loop import run_command
from bridge.cli.output import note, print_answer
from bridge.cli.standard import is_at_terminal
from bridge.config.load import load
from bridge.config.settings import Settings, UpstreamSettings
from bridge.errors import ConfigError
from bridge.gateway.login import log_in_to
from bridge.gateway.logins import Login


def run(config: Path, upstream: str) -> None:
    """Have a person log in to an upstream, whoever is logged in there now.

    Raises:
        ConfigError: There is no such upstream, or it has no login.
        BridgeError: Nothing came of it.
    """
    run_command(log_in_to, upstream, _chosen(load([config]), upstream), show)
    print_answer(f'logged in to "{upstream}"')


async def show(upstream: str, url: str) -> None:
    """Open a browser where a person logs in, and say where, for one who has no browser here."""
    note(f'to log in to "{upstream}", open:\n{url}')
    await anyio.to_thread.run_sync(_open, url, abandon_on_cancel=True)


def login_here() -> Login | None:
    """How a person is asked by this command: not at all where nobody sits at a terminal."""
    return show if is_at_terminal() else None


def _open(url: str) -> None:
    if not webbrowser.open(url):
        note("(no browser could be opened here)")


def _chosen(settings: Settings, name: str) -> UpstreamSettings:
    found = settings.upstreams.get(name)
    if found is not None and found.oauth is not None:
        return found

    if found is not None:
        raise ConfigError(f'upstream "{name}" has no login: write "oauth: true" beside its url')

    near = difflib.get_close_matches(name, settings.upstreams, 1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise ConfigError(f'there is no upstream "{name}"{hint}')
