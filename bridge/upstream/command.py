"""A command that starts an MCP server, and the surroundings it is given."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.upstream.channel import ChannelError
from bridge.upstream.secrets import masked, secrets_in_arguments

INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""What a child sees of our environment; everything else, secrets above all, stays with us."""


@dataclass(frozen=True, slots=True, repr=False)
class Command:
    """An argument list, never a shell line; `env` is added to the few inherited variables.

    It shows its program alone: any argument may be a secret, or hold one.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None

    def environment(self) -> dict[str, str]:
        """What the child gets; its PATH begins with the running interpreter's directory."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        path = inherited.get("PATH", os.defpath)
        inherited["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
        return {**inherited, **self.env}

    def program(self) -> str:
        """The program's full path.

        Raises:
            ChannelError: There is no such program, or no such directory to run it in.
        """
        if self.cwd is not None and not self.cwd.is_dir():
            raise ChannelError(f'cwd "{self.cwd}" is not a directory', sent=False)

        name = self.argv[0]
        if os.sep in name:
            name = os.path.join(self.cwd or ".", name)

        found = shutil.which(name, path=self.environment()["PATH"])
        if found is None:
            raise ChannelError(
                f'command not found: "{self.argv[0]}"; install it, or give its full path',
                sent=False,
            )

        return os.path.abspath(found)

    def without_secrets(self, text: str) -> str:
        """`text` with every configured value that may be a secret taken out."""
        return masked(text, [*self.env.values(), *secrets_in_arguments(self.argv[1:])])

    def __str__(self) -> str:
        """The program, and how many arguments it is given."""
        number = len(self.argv) - 1
        if number == 0:
            return self.argv[0]

        return f"{self.argv[0]} (and {number} argument{'s' if number > 1 else ''})"

    def __repr__(self) -> str:
        return f"<Command {self}>"
