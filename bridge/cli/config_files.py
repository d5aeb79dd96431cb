"""Which configuration a command works with, where none has to be named."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from bridge.errors import ConfigError

DEFAULT = Path("bridge.yaml")


def chosen(config: Sequence[Path] | None, demo: bool, command: str) -> list[Path]:
    """The files that were named, with the demo below them if asked for; else ./bridge.yaml.

    Raises:
        ConfigError: None is named, and there is no ./bridge.yaml.
    """
    if demo:
        return [demo_config(), *(config or ())]

    if config:
        return list(config)

    if DEFAULT.exists():
        return [DEFAULT]

    raise ConfigError(
        f"no configuration: there is no {DEFAULT} here; name a file, or try: {command} --demo"
    )


def demo_config() -> Path:
    """The demo's configuration: packaged, or in the source tree."""
    package = Path(str(resources.files("bridge")))
    packaged = package / "demo" / "demo.yaml"
    return packaged if packaged.exists() else package.parent / "configs" / "demo.yaml"
