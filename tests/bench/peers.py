"""The peers that bridge is measured beside: `python -m tests.bench.peers [DIR]` installs them.

Each gets a place of its own, so that none has to agree with another, or with us, about versions:
FastMCP and mcp-proxy from PyPI a virtual environment each, mcp-proxy and supergateway from npm one
`node_modules`. Nothing else of the project needs them; without Node two of the four are missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.servers.install import run

HOME = Path(__file__).resolve().parents[2] / ".servers" / "peers"

PYTHON_PEERS = {
    # As fast as its users get it: uvicorn takes uvloop and httptools where they are installed.
    "fastmcp": ("fastmcp", "orjson", "uvloop", "httptools"),
    "mcp-proxy": ("mcp-proxy",),
}
NODE_PEERS = {"supergateway": "4", "mcp-proxy": "6"}
OLDEST_NODE = 20
LONGEST = 900.0  # seconds that one installation may take


def main() -> None:
    """Install whatever is missing and say what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?", default=HOME, metavar="DIR")
    directory = parser.parse_args().directory.resolve()
    for problem in install(directory):
        sys.stderr.write(f"{problem}\n")

    for name, version in versions(directory).items():
        sys.stdout.write(f"{name} {version}\n")

    sys.stdout.write(f"the peers are in {directory}\n")


def install(directory: Path) -> list[str]:
    """Install what is not there yet; returns what could not be had, a sentence each."""
    directory.mkdir(parents=True, exist_ok=True)
    problems = []
    for name, requirements in PYTHON_PEERS.items():
        if name not in versions(directory):
            problems += _tried(name, partial(_environment, directory / name, requirements))

    missing = [f"npm:{name}" for name in NODE_PEERS if f"npm:{name}" not in versions(directory)]
    if missing:
        problems += _tried(" and ".join(missing), lambda: _node_modules(directory / "node"))

    return problems


def versions(directory: Path) -> dict[str, str]:
    """The peers that are installed, with their versions; those from npm begin with `npm:`."""
    found = {}
    for name in PYTHON_PEERS:
        dist = f"{name.replace('-', '_')}-*.dist-info"
        for info in (directory / name).glob(f"lib/python*/site-packages/{dist}"):
            found[name] = info.name.removesuffix(".dist-info").rpartition("-")[2]

    for name in NODE_PEERS:
        package = directory / "node" / "node_modules" / name / "package.json"
        if package.exists():
            found[f"npm:{name}"] = json.loads(package.read_text("utf-8"))["version"]

    return found


def _tried(name: str, work: Callable[[], None]) -> list[str]:
    try:
        work()
    except (OSError, subprocess.SubprocessError, RuntimeError) as exc:
        said = str(getattr(exc, "output", None) or exc).strip().splitlines() or [repr(exc)]
        return [f'"{name}" could not be installed: {said[-1]}']

    return []


def _environment(place: Path, requirements: Sequence[str]) -> None:
    venv.create(place, with_pip=True, clear=True)
    run([str(place / "bin" / "pip"), "install", "--quiet", *requirements], seconds=LONGEST)


def _node_modules(place: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise RuntimeError("there is no Node and npm on PATH")

    major = run([node, "--version"], seconds=LONGEST).strip().removeprefix("v").partition(".")[0]
    if int(major) < OLDEST_NODE:
        raise RuntimeError(f"they need Node {OLDEST_NODE}, and this one is {major}")

    place.mkdir(exist_ok=True)
    wanted = {"private": True, "dependencies": {n: f"^{v}" for n, v in NODE_PEERS.items()}}
    (place / "package.json").write_text(json.dumps(wanted), "utf-8")
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    run([npm, "install", *quiet, "--prefix", str(place)], seconds=LONGEST)


if __name__ == "__main__":
    main()
