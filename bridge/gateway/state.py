"""Where bridge keeps what is to outlive it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_directory(environ: Mapping[str, str]) -> Path:
    """The user's own place for it (XDG Base Directory Specification)."""
    home = Path(environ.get("XDG_STATE_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".local" / "state") / "bridge"
