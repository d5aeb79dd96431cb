"""What the documentation shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from bridge.cli.app import app
from bridge.config.load import load
from bridge.config.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
EXPLAINED = "".join(p.read_text("utf-8") for p in sorted((ROOT / "configs").glob("*.yaml")))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def keys(model: type[BaseModel]) -> Iterator[str]:
    """Every key that a configuration may have."""
    for name, field in model.model_fields.items():
        yield name
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from keys(part)


def test_two_commands_stand_before_everything_else() -> None:
    install, test = blocks("sh")[:2]

    assert install == "python3 -m pip install '.[gateway]' && bridge serve configs/demo.yaml\n"
    assert test == "python3 -m pip install '.[gateway,test]' && python3 -m pytest\n"


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_of_the_readme_runs_as_it_stands(number: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks("python")[number]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_yaml_of_the_readme_is_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text(blocks("yaml")[0], "utf-8")

    assert set(load([path], {"DOCS_TOKEN": "t"}).upstreams) == {"weather", "docs"}


@pytest.mark.parametrize("key", sorted(set(keys(Settings))))
def test_every_key_of_a_configuration_is_explained(key: str) -> None:
    assert re.search(rf"\b{key}\b", EXPLAINED)


def test_every_command_is_in_the_readme() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`bridge {command.callback.__name__} " in README
