"""MCP server lists as Claude Desktop, Cursor and VS Code write them, turned into our own form.

`mcpServers` (Claude Desktop, Cursor and most others) and `servers` (VS Code) name servers; each is
a `command` with `args`, or a `url`. Keys that have no meaning here are left out with a note,
because such files belong to other programs; a name that could not be ours is made one, with a
note. Their variables become ours: `${env:VAR}` is `${VAR}`.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path

from bridge.config.expand import escaped
from bridge.config.nodes import (
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    kind,
    list_node,
    mapping_node,
)
from bridge.config.problems import Place, Problem, Problems, shown

FORMS = ("mcpServers", "servers")
OWN_KEYS = ("upstreams", "tools", "serve", "agent")
MAX_NAMED = 5

_VARIABLE = re.compile(r"\$\$\{|\$\{(?:(env|input):([^}]*)|([A-Za-z]+|/))\}")
_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED = "local"
_KEPT = {
    "url": "url",
    "serverUrl": "url",
    "headers": "headers",
    "env": "env",
    "cwd": "cwd",
    "enabled": "enabled",
}
_TRANSPORT_KEYS = ("type", "transport", "transportType")
_TRANSPORTS = {
    "http": "auto",  # VS Code's "http" also means a server as old as HTTP+SSE
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_READ_APART = ("command", "args", "tools", "disabledTools")
_WHY_UNUSED = {
    "envFile": 'the file is not read. Write its variables under "env".',
    "alwaysAllow": "nothing is approved in advance by it.",
    "autoApprove": "nothing is approved in advance by it.",
}


def imported(root: MappingNode, problems: Problems, notes: list[str]) -> MappingNode:
    """The same servers in our own form; a root that has none of theirs is returned as it is."""
    found = [key for key in root.entries if key in FORMS]
    if not found:
        return root

    others = [key for key in root.entries if key in OWN_KEYS or key in found[1:]]
    for key in others:
        problems.add(
            root.entries[key].place,
            f'this stands beside "{found[0]}", but a file has one form. '
            "Move it into a file of its own, and name both files.",
        )

    read = {*found, *others, "$schema"}
    left_out = [key for key in root.entries if key not in read]
    if left_out:
        names = ", ".join(shown(key) for key in left_out[:MAX_NAMED])
        more = ", …" if left_out[MAX_NAMED:] else ""
        notes.append(str(Problem(replace(root.place, line=0), f"left out: {names}{more}.")))

    servers = _Servers(problems, notes).read(root.entries[found[0]])
    return mapping_node({"upstreams": servers}, root.place)


def legal_name(name: str) -> str:
    """The name itself where it can be an upstream's, else one made of it, always the same."""
    legal = name if _LEGAL_NAME.fullmatch(name) else _ILLEGAL.sub("-", name).strip("-")
    if legal == _RESERVED:
        return f"{legal}-server"

    if _LEGAL_NAME.fullmatch(legal):
        return legal

    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:6]
    return f"{legal[:25] or 'server'}-{digest}"


class _Servers:
    """Turns each server into an upstream; gathers what is wrong and what is left out."""

    def __init__(self, problems: Problems, notes: list[str]) -> None:
        self._problems = problems
        self._notes = notes

    def read(self, servers: Node) -> Node:
        """All the servers, by legal names."""
        if not isinstance(servers, MappingNode):
            text = f"{kind(servers)} stands where a mapping of servers belongs."
            return self._refused(servers, text)

        upstreams: dict[str, Node] = {}
        names: dict[str, str] = {}
        for name, server in servers.entries.items():
            legal = legal_name(name)
            if legal in upstreams:
                both = f"{shown(names[legal])} and {shown(name)}"
                self._problems.add(
                    server.place, f'{both} would both be named "{legal}". Rename one.'
                )
                continue

            if legal != name:
                self._note(server.place, f'it is named "{legal}" here.')

            names[legal] = name
            upstreams[legal] = self._upstream(server)

        return mapping_node(upstreams, servers.place)

    def _upstream(self, server: Node) -> Node:
        if not isinstance(server, MappingNode):
            return self._refused(server, f"{kind(server)} stands where a server belongs.")

        taken: dict[str, Node] = {}
        if "command" in server.entries:
            taken["command"] = self._argv(server.entries["command"], server.entries.get("args"))

        for key, node in server.entries.items():
            self._take(key, node, taken)

        rules = _tool_rules(server)
        if rules.entries:
            taken["tools"] = rules

        return mapping_node(self._useful(taken), server.place)

    def _take(self, key: str, node: Node, taken: dict[str, Node]) -> None:
        """Carry one key of a server over into `taken`, or note why not."""
        if key in _KEPT:
            taken[_KEPT[key]] = self._translated(node)
        elif key in _TRANSPORT_KEYS:
            self._take_transport(node, taken)
        elif key == "disabled":
            taken["enabled"] = self._enabled(node)
        elif key not in _READ_APART:
            self._note(node.place, _WHY_UNUSED.get(key, "this has no use here."))

    def _argv(self, command: Node, args: Node | None) -> Node:
        """The command and its arguments as one list; nothing is ever split."""
        if args is None or _is_nothing(args):
            args = list_node((), command.place)

        if not isinstance(args, ListNode):
            return self._refused(args, f"{kind(args)} stands where a list of arguments belongs.")

        first = command.items if isinstance(command, ListNode) else (command,)
        return self._translated(list_node((*first, *args.items), command.place))

    def _take_transport(self, node: Node, taken: dict[str, Node]) -> None:
        value = node.value if isinstance(node, ScalarNode) else None
        if value in _TRANSPORTS:
            taken["transport"] = ScalarNode(_TRANSPORTS[value], node.place)
        elif value != "stdio":
            subject = shown(value) if isinstance(value, str) else kind(node)
            self._problems.add(node.place, f"{subject} is no transport. Use stdio, http or sse.")

    def _enabled(self, node: Node) -> Node:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return replace(node, value=not node.value)

        return self._refused(node, f"{kind(node)} is neither true nor false.")

    def _useful(self, taken: dict[str, Node]) -> dict[str, Node]:
        """Without what only the other kind of server has, and variables set to nothing."""
        useless = ("headers", "transport") if "command" in taken else ("env", "cwd")
        if ("command" in taken) != ("url" in taken):
            for key in [key for key in useless if key in taken]:
                self._note(taken.pop(key).place, "this has no use for such a server.")

        env = taken.get("env")
        if isinstance(env, MappingNode):
            kept = {key: node for key, node in env.entries.items() if not _is_nothing(node)}
            taken["env"] = mapping_node(kept, env.place)
            for node in env.entries.values():
                if _is_nothing(node):
                    self._note(node.place, "a variable set to nothing is left out.")

        return taken

    def _translated(self, node: Node) -> Node:
        """The same values with the variables of editors written as ours, or filled in."""
        if isinstance(node, MappingNode):
            entries = {key: self._translated(child) for key, child in node.entries.items()}
            return replace(node, entries=entries)

        if isinstance(node, ListNode):
            return replace(node, items=tuple(self._translated(item) for item in node.items))

        if not isinstance(node.value, str) or "${" not in node.value:
            return node

        return self._translated_text(node, node.value)

    def _translated_text(self, node: ScalarNode, text: str) -> ScalarNode:
        asked = [match[2] for match in _VARIABLE.finditer(text) if match[1] == "input"]
        for name in asked:
            variable = _ILLEGAL.sub("_", name).replace("-", "_").upper()
            self._problems.add(
                node.place,
                f"an editor would ask a person for {shown(name)}. "
                f"Write ${{{variable}}} instead, and set that variable.",
            )

        if asked:
            return replace(node, is_broken=True)

        base = node.place.source.base
        return replace(node, value=_VARIABLE.sub(lambda match: _ours(match, base), text))

    def _refused(self, node: Node, text: str) -> ScalarNode:
        self._problems.add(node.place, text)
        return ScalarNode("", node.place, is_broken=True)

    def _note(self, place: Place, text: str) -> None:
        self._notes.append(str(Problem(place, text)))


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


def _tool_rules(server: MappingNode) -> MappingNode:
    """`tools` lists globs to offer, `disabledTools` the exact names of tools to hide."""
    rules: dict[str, Node] = {}
    allow, deny = server.entries.get("tools"), server.entries.get("disabledTools")
    if allow is not None:
        rules["allow"] = allow

    if isinstance(deny, ListNode):
        rules["deny"] = replace(deny, items=tuple(_glob(item) for item in deny.items))
    elif deny is not None:
        rules["deny"] = deny

    return mapping_node(rules, server.place)


def _glob(node: Node) -> Node:
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return replace(node, value=glob.escape(node.value))

    return node


def _ours(match: re.Match[str], base: Path) -> str:
    """What one variable of an editor is for us; unknown ones stay, and are refused later."""
    if match[1] == "env":
        return f"${{{match[2]}}}"

    known = {
        "workspaceFolder": str(base),
        "workspaceFolderBasename": base.name,
        "userHome": str(Path.home()),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    return escaped(known[match[3]]) if match[3] in known else match.group()
