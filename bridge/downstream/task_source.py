"""One MCP server behind us, as far as it runs tasks of the legacy era."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from bridge.downstream.asker import Asker
from bridge.downstream.source import Source

TaskNews: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Takes what a task has come to: the place it is in, and the params; must not raise."""


class TaskSource(Source, Protocol):
    """The server. `on_task` is called with each `notifications/tasks/status` of its."""

    @property
    def on_task(self) -> list[TaskNews]: ...
    @property
    def runs_tasks(self) -> bool:
        """Whether it is of the legacy era and takes `tools/call` with a `task`."""
        ...

    def place(self, asker: Asker) -> str:
        """In whose conversation with it this client's requests are; "" for the shared one."""
        ...
