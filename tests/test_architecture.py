"""The house rules hold, and each wall stops what it is there to stop.

A red line in the first part is a wall in the wrong place, or a module in the wrong room. The
second part breaks every rule once, on purpose.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from tests import walls

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    PurePath(path.relative_to(ROOT).as_posix()): path.read_text("utf-8")
    for path in sorted((ROOT / "bridge").rglob("*.py"))
}

Check = Callable[[PurePath, str], list[str]]


@pytest.mark.parametrize("check", walls.CHECKS, ids=lambda check: check.__name__)
def test_the_house_keeps_its_rules(check: Check) -> None:
    assert [problem for path, text in MODULES.items() for problem in check(path, text)] == []


def test_no_module_leads_back_to_itself() -> None:
    assert walls.check_circles(MODULES) == []


def test_the_top_level_holds_what_was_agreed() -> None:
    git = ["git", "-C", str(ROOT), "ls-files"]
    listed = subprocess.run(git, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git repository: what belongs to the project is not known")

    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert walls.check_top_level(sorted(names)) == []


def broken(check: Check, path: str, text: str) -> str:
    """The one thing that a check finds wrong."""
    (problem,) = check(PurePath(path), text)
    return problem


def test_the_wall_between_a_room_and_the_floors_above_it_holds() -> None:
    text = "from bridge.calls.call import execute\n"
    problem = broken(walls.check_imports, "bridge/tools/gate.py", text)
    assert problem == "bridge/tools/gate.py: tools (floor 2) imports calls (floor 3)"


def test_the_wall_between_two_rooms_of_one_floor_holds() -> None:
    text = "import bridge.upstream.toolset\n"
    problem = broken(walls.check_imports, "bridge/calls/call.py", text)
    assert problem == "bridge/calls/call.py: calls (floor 3) imports upstream (floor 3)"


def test_the_wall_between_a_room_and_the_lobby_holds() -> None:
    text = "from bridge import MCPToolset\n"
    problem = broken(walls.check_imports, "bridge/gateway/build.py", text)
    assert problem == "bridge/gateway/build.py: gateway (floor 5) imports __init__ (floor 8)"


def test_the_wall_holds_for_a_room_that_is_imported_by_its_bare_name() -> None:
    text = "from bridge import cli\n"
    problem = broken(walls.check_imports, "bridge/core/wire.py", text)
    assert problem == "bridge/core/wire.py: core (floor 1) imports cli (floor 7)"


def test_the_wall_holds_where_only_the_type_checker_looks() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import bridge.cli\n"
    problem = broken(walls.check_imports, "bridge/core/wire.py", text)
    assert problem == "bridge/core/wire.py: core (floor 1) imports cli (floor 7)"


def test_the_wall_around_settings_holds() -> None:
    text = "from bridge.config.settings import Settings\n"
    problem = broken(walls.check_imports, "bridge/downstream/http.py", text)
    assert problem == "bridge/downstream/http.py: downstream must not know config"
    assert walls.check_imports(PurePath("bridge/gateway/build.py"), text) == []


def test_the_wall_around_the_demo_holds() -> None:
    text = "from bridge.upstream.toolset import MCPToolset\n"
    problem = broken(walls.check_imports, "bridge/demo/server.py", text)
    assert problem == "bridge/demo/server.py: demo must not know upstream"


@pytest.mark.parametrize(
    ("room", "package"),
    [
        ("tools", "mcp"),
        ("gateway", "mcp_types"),
        ("cli", "ruamel"),
        ("gateway", "typer"),
        ("gateway", "rich"),
        ("upstream", "starlette"),
        ("gateway", "uvicorn"),
        ("core", "sqlalchemy"),
        ("downstream", "httpx"),
        ("downstream", "httpx2"),
        ("downstream", "httpx_sse"),
        ("upstream", "jsonschema"),
        ("upstream", "referencing"),
        ("tools", "rfc8785"),
        ("upstream", "pydantic"),
        ("upstream", "pydantic_core"),
        ("downstream", "typing_extensions"),
    ],
)
def test_the_wall_around_a_package_holds(room: str, package: str) -> None:
    path = f"bridge/{room}/broken.py"
    problem = broken(walls.check_imports, path, f"import {package}.inner\n")
    assert problem == f"{path}: the package {package} has no place in {room}"


def test_the_wall_against_unknown_packages_holds() -> None:
    problem = broken(walls.check_imports, "bridge/core/wire.py", "import fastmcp\n")
    assert problem == "bridge/core/wire.py: the package fastmcp has no room yet"


def test_the_wall_against_new_folders_holds() -> None:
    problem = broken(walls.check_floor, "bridge/utils/strings.py", "")
    assert problem == "bridge/utils/strings.py: the room 'utils' has no floor"


def test_the_wall_against_new_modules_beside_the_rooms_holds() -> None:
    problem = broken(walls.check_floor, "bridge/helpers.py", "")
    assert problem == "bridge/helpers.py: the room 'helpers' has no floor"


def test_the_wall_against_circles_holds() -> None:
    circle = {
        PurePath("bridge/core/a.py"): "from bridge.core import b\n",
        PurePath("bridge/core/b.py"): "if TYPE_CHECKING:\n    from bridge.core.c import C\n",
        PurePath("bridge/core/c.py"): "import bridge.core.a\n",
        PurePath("bridge/core/__init__.py"): "",
    }
    (found,) = walls.check_circles(circle)
    assert found == "bridge.core.a -> bridge.core.b -> bridge.core.c -> bridge.core.a"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("from . import wire\n", "1: a relative import"),
        ("from .wire import loads\n", "1: a relative import"),
        ("from bridge.core.wire import *\n", "1: a star import"),
        ("def f():\n    import json\n", "2: an import inside a function"),
        (
            "class A:\n    async def f(self):\n        from json import loads\n",
            "3: an import inside",
        ),
    ],
)
def test_the_wall_against_odd_imports_holds(text: str, fault: str) -> None:
    problem = broken(walls.check_import_form, "bridge/core/broken.py", text)
    assert problem.startswith(f"bridge/core/broken.py:{fault}")


@pytest.mark.parametrize(
    "text",
    [
        "from importlib import import_module\nimport_module('bridge.cli')\n",
        "import importlib\nimportlib.import_module('bridge.cli')\n",
        "\n__import__('bridge.cli')\n",
    ],
)
def test_the_wall_against_imports_by_name_holds(text: str) -> None:
    problem = broken(walls.check_import_form, "bridge/core/broken.py", text)
    assert problem == "bridge/core/broken.py:2: an import by name"
    assert walls.check_import_form(PurePath("bridge/__init__.py"), text) == []


def test_the_wall_against_long_modules_holds() -> None:
    problem = broken(walls.check_size, "bridge/core/wire.py", "x = 1\n" * 301)
    assert problem == "bridge/core/wire.py: 301 lines, more than 300"
    assert walls.check_size(PurePath("bridge/core/wire.py"), "x = 1\n" * 300) == []


def test_the_wall_against_long_functions_holds() -> None:
    body = "    x = 1\n" * 40
    problem = broken(walls.check_size, "bridge/core/wire.py", f"async def f():\n{body}")
    assert problem == "bridge/core/wire.py: f has 40 lines, over 39"

    documented = 'def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 39
    assert walls.check_size(PurePath("bridge/core/wire.py"), documented) == []


def test_the_wall_against_modules_that_do_not_say_what_they_are_holds() -> None:
    problem = broken(walls.check_docstring, "bridge/core/wire.py", "x = 1\n")
    assert problem == "bridge/core/wire.py: no docstring"
    assert broken(walls.check_docstring, "bridge/__init__.py", "") != ""


def test_the_wall_against_chatty_rooms_holds() -> None:
    problem = broken(walls.check_docstring, "bridge/core/__init__.py", '"""The core."""\n')
    assert problem == "bridge/core/__init__.py: a room's __init__ is empty"
    assert walls.check_docstring(PurePath("bridge/core/__init__.py"), "") == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1  # type: ignore\n", "1: # type: ignore"),
        ("x = 1  # type:ignore[misc]\n", "1: # type:ignore[misc]"),
        ("# mypy: ignore-errors\n", "1: # mypy: ignore-errors"),
        ("from typing import Any, cast\n", "1: cast"),
        ("import typing\nx = typing.cast(int, 1)\n", "2: cast"),
    ],
)
def test_the_wall_against_silencing_the_type_checker_holds(text: str, fault: str) -> None:
    problem = broken(walls.check_typing, "bridge/core/wire.py", text)
    assert problem == f"bridge/core/wire.py:{fault}"


def test_the_wall_around_the_top_level_holds() -> None:
    names = [".ci", ".gitignore", "README.md", "bridge", "docs", "setup.py", "tests"]
    assert walls.check_top_level(names) == [
        "docs has no place at the top level",
        "setup.py has no place at the top level",
    ]
