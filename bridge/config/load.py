"""From files (or a mapping made in Python) to settings, with everything that is wrong at once.

Read, turn foreign forms into ours, lay the files over each other from left to right, fill in
variables, make paths absolute, check. Every value keeps its file, line and key on the way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from bridge.config.expand import expanded
from bridge.config.explain import explain
from bridge.config.importers import imported
from bridge.config.json_text import read_json
from bridge.config.nodes import (
    MappingNode,
    Node,
    ScalarNode,
    at,
    from_python,
    kind,
    mapping_node,
    merged,
    to_python,
    with_every_value,
)
from bridge.config.problems import Problems, Source, Unreadable
from bridge.config.settings import Settings
from bridge.config.text import read_text
from bridge.config.yaml_text import read_yaml
from bridge.errors import ConfigError

JSON_SUFFIXES = (".json", ".jsonc")
EDITOR_DIRECTORIES = (".vscode", ".cursor")

Further: TypeAlias = Callable[[Node, Problems], None]
"""Adds to the problems what is wrong with the values of all files, variables filled in; what is
wrong with single values is among the problems already."""


def load(
    paths: str | Path | Sequence[str | Path],
    environ: Mapping[str, str] = os.environ,
    further: Further | None = None,
) -> Settings:
    """Read settings from one file, or from several laid over each other from left to right.

    Mappings are joined key by key; lists and single values of a later file replace earlier ones.
    A file is YAML, or JSON with comments where its name ends in .json or .jsonc; it is of our own
    form or a list of MCP servers as Claude Desktop, Cursor and VS Code write it. `further` looks
    for more that is wrong, so that all of it is said at once.

    Raises:
        ConfigError: Something is wrong; it holds one sentence for each thing that is.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if not files:
        raise ConfigError("no file of settings is named. Name at least one.")

    problems = Problems()
    roots = [_read(Path(path), i, problems) for i, path in enumerate(files)]
    readable = [root for root in roots if root is not None]
    if len(readable) < len(files):
        raise ConfigError(*problems.lines())

    return _settings(readable, environ, problems, further)


def from_mapping(
    mapping: Mapping[str, Any],
    base: str | Path = ".",
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The same settings out of a mapping made in Python; relative paths start from `base`.

    Raises:
        ConfigError: Something is wrong; it holds one sentence for each thing that is.
    """
    root = from_python(mapping, Source("", Path(base).absolute()))
    return _settings([root], environ, Problems())


def _read(path: Path, number: int, problems: Problems) -> MappingNode | None:
    """The values of one file; None, and a problem, where it holds no settings at all."""
    folder = path.absolute().parent
    is_editors = folder.name in EDITOR_DIRECTORIES
    source = Source(str(path), folder.parent if is_editors else folder, number)
    read = read_json if path.suffix.lower() in JSON_SUFFIXES else read_yaml
    try:
        root = read(read_text(path, source), source, problems)
    except Unreadable as exc:
        problems.add(exc.problem.place, exc.problem.text)
        return None

    if isinstance(root, ScalarNode) and root.value is None:
        return mapping_node({}, root.place)

    if isinstance(root, MappingNode):
        return root

    problems.add(root.place, f'{kind(root)} stands where a mapping belongs. Write "upstreams:".')
    return None


def _settings(
    roots: list[MappingNode],
    environ: Mapping[str, str],
    problems: Problems,
    further: Further | None = None,
) -> Settings:
    notes: list[str] = []
    ours = [imported(root, problems, notes) for root in roots]
    written = with_every_value(reduce(merged, ours), problems)
    root = _with_directories(expanded(written, environ, problems))
    settings = None
    try:
        settings = Settings.model_validate(to_python(root))
    except ValidationError as exc:
        explain(exc, root, problems)

    if further is not None:
        further(root, problems)

    if settings is None or problems:
        raise ConfigError(*problems.lines())

    return settings.with_notes(tuple(notes))


def _with_directories(root: Node) -> Node:
    """Every upstream with a command gets an absolute working directory; files, their paths."""
    if not isinstance(root, MappingNode):
        return root

    entries = dict(root.entries)
    upstreams, serve = entries.get("upstreams"), entries.get("serve")
    if isinstance(upstreams, MappingNode):
        named = {
            name: _with_login(_with_directory(upstream))
            for name, upstream in upstreams.entries.items()
        }
        entries["upstreams"] = replace(upstreams, entries=named)

    if "agent" in entries:
        entries["agent"] = _with_store(entries["agent"])

    if isinstance(serve, MappingNode):
        entries["serve"] = _with_files(serve)

    results = entries.get("results")
    if isinstance(results, MappingNode) and "directory" in results.entries:
        directory = _absolute(results.entries["directory"])
        entries["results"] = _with_entry(results, "directory", directory)

    return replace(root, entries=entries)


def _with_directory(upstream: Node) -> Node:
    """Its `cwd` from the directory of the file that says so; by default where its command is."""
    if not isinstance(upstream, MappingNode):
        return upstream

    cwd, command = upstream.entries.get("cwd"), upstream.entries.get("command")
    if cwd is None and command is not None:
        cwd = ScalarNode(".", command.place)

    return upstream if cwd is None else _with_entry(upstream, "cwd", _absolute(cwd))


def _with_login(upstream: Node) -> Node:
    """The file of its login from the directory of the file that names it."""
    oauth = at(upstream, "oauth")
    if not isinstance(upstream, MappingNode) or not isinstance(oauth, MappingNode):
        return upstream

    store = oauth.entries.get("token_store")
    if store is None:
        return upstream

    return _with_entry(upstream, "oauth", _with_entry(oauth, "token_store", _absolute(store)))


def _with_files(serve: MappingNode) -> MappingNode:
    """Its audit and what it shares, from the directories of the files that name them."""
    if "audit" in serve.entries:
        serve = _with_entry(serve, "audit", _absolute(serve.entries["audit"]))

    if "state" in serve.entries:
        serve = _with_entry(serve, "state", _with_store(serve.entries["state"]))

    return serve


def _with_store(part: Node) -> Node:
    """The database that is a file, from the directory of the file that names it."""
    store = at(part, "store")
    if not isinstance(part, MappingNode) or store is None or _is_url(store):
        return part

    return _with_entry(part, "store", _absolute(store))


def _absolute(written: Node) -> Node:
    """A path from the directory of the file that says so; what is no path stays as it is."""
    if not isinstance(written, ScalarNode) or not isinstance(written.value, str):
        return written

    path = written.value
    if not path:
        return written

    home = Path.home() if path == "~" or path.startswith("~/") else None
    relative = path.removeprefix("~").removeprefix("/") if home else path
    return replace(written, value=str((home or written.place.source.base) / relative))


def _is_url(written: Node) -> bool:
    value = written.value if isinstance(written, ScalarNode) else None
    return isinstance(value, str) and "://" in value


def _with_entry(mapping: MappingNode, key: str, value: Node) -> MappingNode:
    return replace(mapping, entries={**mapping.entries, key: value})
