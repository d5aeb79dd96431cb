"""The house rules as checks: each takes a module's path and text and returns what is wrong.

Paths are relative to the repository, as `bridge/tools/gate.py`. The tables at the top are the
architecture; change one only in a commit of its own, with the reason.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TypeGuard

LONGEST_MODULE = 300  # lines
LONGEST_FUNCTION = 39  # lines of body, docstring aside

# A room may import itself and any room on a LOWER floor. Never sideways, never up.
FLOORS = (
    {"errors", "telemetry", "version"},
    {"core", "config"},
    {"tools", "stores", "models"},
    {"calls", "upstream"},
    {"agents", "downstream"},
    {"gateway"},
    {"console", "ext", "demo", "testing"},
    {"cli"},
    {"__main__", "__init__"},
)
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

# Settings stop at the door: only these rooms may know them.
KNOWN_BY = {"config": {"config", "gateway", "cli"}}

# The demo is a server like any other, so it knows next to nothing of us.
KNOWS_ONLY = {"demo": {"demo", "core", "errors"}}

# Third-party packages have their rooms, too. One that is in no table has no place yet.
EVERYWHERE = {"anyio"}
ONLY_IN = {
    "mcp": {"upstream", "downstream", "ext", "demo"},
    "mcp_types": {"upstream", "downstream", "ext", "demo"},
    "ruamel": {"config"},
    "typer": {"cli"},
    "rich": {"cli"},
    "orjson": {"downstream"},
    "starlette": {"downstream", "console"},
    "uvicorn": {"downstream", "console"},
    "pydantic_ai": {"models"},
    "prometheus_client": {"gateway"},
    "opentelemetry": {"gateway"},
    "sqlalchemy": {"stores"},
    "httpx": {"upstream", "models"},
    "httpx2": {"upstream", "models"},
    "httpx_sse": {"upstream", "models"},
    "jsonschema": {"tools"},
    "referencing": {"tools"},
    "rfc8785": {"core"},
    "pydantic": {"config", "tools", "stores", "ext", "demo"},
    "pydantic_core": {"core", "config", "tools"},
    "typing_extensions": {"tools"},
}

# The lobby, the entry point and the command line load their rooms by name, when they are named;
# a YAML file names functions of the user's own.
MAY_LOAD_BY_NAME = {
    "bridge/__init__.py",
    "bridge/__main__.py",
    "bridge/cli/app.py",
    "bridge/gateway/resolve.py",
}

TOP_LEVEL = {
    "pyproject.toml",
    "bridge",
    "tests",
    "configs",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
}


def room_of(path: PurePath) -> str:
    """The room a module is in: the first name below `bridge`."""
    return path.with_suffix("").parts[1]


def check_floor(path: PurePath, text: str) -> list[str]:
    """Every room has a floor."""
    room = room_of(path)
    return [] if room in FLOOR_OF else [f"{path}: the room {room!r} has no floor"]


def check_imports(path: PurePath, text: str) -> list[str]:
    """Rooms import themselves and lower floors, settings stop at the door, packages stay home."""
    here, wrong = room_of(path), []
    names = {name.partition(".") for name in _imports(text)}
    for package, there in sorted({(first, rest.partition(".")[0]) for first, _, rest in names}):
        if package == "bridge":
            wrong += _misplaced_room(here, there or "__init__")
        elif package not in sys.stdlib_module_names and package not in EVERYWHERE:
            wrong += _misplaced_package(here, package)

    return [f"{path}: {problem}" for problem in dict.fromkeys(wrong)]


def _misplaced_room(here: str, there: str) -> list[str]:
    if there not in FLOOR_OF or here not in FLOOR_OF:
        return [f"{here} imports {there}, and one of them has no floor"]
    if there != here and FLOOR_OF[there] >= FLOOR_OF[here]:
        return [f"{here} (floor {FLOOR_OF[here]}) imports {there} (floor {FLOOR_OF[there]})"]
    if here not in KNOWN_BY.get(there, {here}):
        return [f"{here} must not know {there}"]
    if there not in KNOWS_ONLY.get(here, {there}):
        return [f"{here} must not know {there}"]
    return []


def _misplaced_package(here: str, package: str) -> list[str]:
    if package not in ONLY_IN:
        return [f"the package {package} has no room yet"]
    if here not in ONLY_IN[package]:
        return [f"the package {package} has no place in {here}"]
    return []


def check_import_form(path: PurePath, text: str) -> list[str]:
    """No relative or star imports, none inside a function, none by name but where listed."""
    tree, wrong = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            wrong.append(f"{path}:{node.lineno}: a relative import")
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            wrong.append(f"{path}:{node.lineno}: a star import")
        if _loads_by_name(node) and path.as_posix() not in MAY_LOAD_BY_NAME:
            wrong.append(f"{path}:{node.lineno}: an import by name")

    inside = {inner for function in _functions(tree) for inner in ast.walk(function)}
    late = [node.lineno for node in inside if isinstance(node, ast.Import | ast.ImportFrom)]
    return [*wrong, *(f"{path}:{line}: an import inside a function" for line in sorted(late))]


def _loads_by_name(node: ast.AST) -> TypeGuard[ast.Call]:
    loaders = ("import_module", "importlib.import_module", "__import__")
    return isinstance(node, ast.Call) and ast.unparse(node.func) in loaders


def check_size(path: PurePath, text: str) -> list[str]:
    """Modules and functions stay small."""
    wrong, lines = [], len(text.splitlines())
    if lines > LONGEST_MODULE:
        wrong.append(f"{path}: {lines} lines, more than {LONGEST_MODULE}")

    for function in _functions(ast.parse(text)):
        length = _body_lines(function)
        if length > LONGEST_FUNCTION:
            wrong.append(f"{path}: {function.name} has {length} lines, over {LONGEST_FUNCTION}")

    return wrong


def check_docstring(path: PurePath, text: str) -> list[str]:
    """A module says what it is; a room's `__init__` is empty."""
    if path.name == "__init__.py" and len(path.parts) > 2:
        return [f"{path}: a room's __init__ is empty"] if text.strip() else []

    return [] if ast.get_docstring(ast.parse(text)) else [f"{path}: no docstring"]


def check_typing(path: PurePath, text: str) -> list[str]:
    """The type checker is convinced, never silenced: no `type: ignore`, no `cast`."""
    wrong = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        said = token.string.replace(" ", "").lower()
        silences = ("#type:ignore", "#mypy:", "#pyright:")
        if token.type == tokenize.COMMENT and any(word in said for word in silences):
            wrong.append(f"{path}:{token.start[0]}: {token.string}")

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "typing_extensions"):
            casts = any(alias.name == "cast" for alias in node.names)
            wrong += [f"{path}:{node.lineno}: cast"] if casts else []
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "typing.cast":
            wrong.append(f"{path}:{node.lineno}: cast")

    return wrong


def check_circles(modules: Mapping[PurePath, str]) -> list[str]:
    """No module leads back to itself, `TYPE_CHECKING` included."""
    names = {_dotted(path): text for path, text in modules.items()}
    graph = {name: {n for n in _imports(text) if n in names} for name, text in names.items()}
    done: set[str] = set()
    circles: list[str] = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            circles.append(" -> ".join([*trail[trail.index(name) :], name]))
        elif name not in done:
            for target in sorted(graph[name]):
                visit(target, (*trail, name))

            done.add(name)

    for name in sorted(graph):
        visit(name, ())

    return circles


def check_top_level(names: list[str]) -> list[str]:
    """The repository's top level holds what was agreed, and dotfiles."""
    return [
        f"{name} has no place at the top level"
        for name in names
        if name not in TOP_LEVEL and not name.startswith(".")
    ]


CHECKS = (
    check_floor,
    check_imports,
    check_import_form,
    check_size,
    check_docstring,
    check_typing,
)


def _imports(text: str) -> Iterator[str]:
    """Every dotted name that is imported, wherever; `from a import b` is both `a` and `a.b`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            inner = [f"{module}.{alias.name}" for alias in node.names]
            # `from bridge import core` names the room `core`; `bridge` itself is the lobby.
            rooms = [n for n in inner if module == "bridge" and n.split(".")[1] in FLOOR_OF]
            yield from rooms or [module, *(inner if module.count(".") else [])]


def _dotted(path: PurePath) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1
