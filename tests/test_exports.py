"""The front door: what `import bridge` gives, and what it costs nobody who does not ask."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bridge

pytestmark = pytest.mark.embedding

STUB = Path(bridge.__file__).with_suffix(".pyi")

# Never loaded by those who embed: the command line and the fronts, and what they alone need.
# (rich and uvicorn are not among it: httpx and mcp load them where they are installed.)
FOR_SERVING = {"bridge.cli", "bridge.downstream", "bridge.gateway.serving", "typer", "orjson"}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh Python holds after a statement, beyond those it started with."""
    program = f"import sys, json; before = {{*sys.modules}}; {statement}; "
    program += "print(json.dumps(sorted({*sys.modules} - before)))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(ran.stdout))


def test_the_names_at_the_door_are_sorted_and_each_is_there() -> None:
    assert bridge.__all__ == sorted(set(bridge.__all__))
    for name in bridge.__all__:
        found = getattr(bridge, name)
        own = getattr(found, "__name__", None) or found.name  # a ready-made tool has a name
        assert own == {"Agent": "LlmAgent"}.get(name, name)


def test_the_stub_names_what_the_door_gives_from_where_it_comes() -> None:
    tree = ast.parse(STUB.read_text("utf-8"))
    stubbed = {
        str(alias.asname): str(node.module)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (listed,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]

    assert listed == bridge.__all__
    assert stubbed.keys() == set(bridge.__all__)
    for name, module in stubbed.items():
        assert getattr(import_module(module), name) is getattr(bridge, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    missing = "nothing"
    with pytest.raises(AttributeError, match="nothing"):
        getattr(bridge, missing)


def test_every_name_is_offered_by_dir() -> None:
    assert {*bridge.__all__, "__version__"} <= set(dir(bridge))


def test_importing_bridge_loads_two_modules_of_it_and_no_other_package() -> None:
    loaded = loaded_by("import bridge")
    assert {name for name in loaded if name.startswith("bridge")} == {"bridge", "bridge.version"}
    packages = {name.partition(".")[0] for name in loaded}
    assert packages - sys.stdlib_module_names == {"bridge"}


@pytest.mark.parametrize("name", ["MCPToolset", "open_toolset"])
def test_embedding_loads_neither_the_command_line_nor_a_front(name: str) -> None:
    loaded = loaded_by(f"from bridge import {name}")
    assert loaded & FOR_SERVING == set()


def test_one_server_is_embedded_without_the_configuration() -> None:
    loaded = loaded_by("from bridge import MCPToolset")
    assert loaded & {"bridge.config", "bridge.gateway", "ruamel.yaml"} == set()
