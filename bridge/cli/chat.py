"""`bridge chat`: an agent in the terminal, over the configured toolset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from bridge.cli.chat_keyboard import Keyboard, forgiving_streams
from bridge.cli.chat_screen import JsonScreen, Screen
from bridge.cli.chat_sessions import check_session_name, list_sessions
from bridge.cli.chat_turns import FAILED, Chat
from bridge.cli.config_files import chosen
from bridge.cli.loop import run_command
from bridge.cli.standard import read_input
from bridge.config.load import load
from bridge.errors import ConfigError
from bridge.gateway.agent import open_agent


def run(
    config: Sequence[Path] | None,
    demo: bool,
    session: str | None,
    new: bool,
    listing: bool,
    message: str | None,
    as_json: bool,
) -> int:
    """Talk until the person leaves, or for the one turn of `message`; returns the exit code.

    Raises:
        BridgeError: The agent cannot be started; or, with a message, its turn failed.
    """
    settings = load(chosen(config, demo, "bridge chat"))
    check_session_name(session)
    if listing:
        run_command(list_sessions, settings.agent, as_json)
        return 0

    forgiving_streams()
    if message is not None:
        message = read_input() if message == "-" else message
        if not message.strip():
            raise ConfigError("--message: there is nothing in it to say")

    screen = (JsonScreen if as_json else Screen)(settings.agent.name)
    try:
        with ExitStack() as stack:
            keyboard = stack.enter_context(Keyboard())
            with keyboard.interruptible():
                portal = stack.enter_context(start_blocking_portal())
                chat = Chat(portal, keyboard, screen)
                opening = open_agent(settings, chat.heard)
                agent = stack.enter_context(portal.wrap_async_context_manager(opening))

            return chat.over(agent, session, new, message)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever listened has left
        return FAILED
