"""What is wrong with a configuration that shows only once it is put together, all of it at once.

Offline: functions are imported, names are worked out as far as the files tell them, and nothing
is started or connected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bridge.config.load import load
from bridge.config.nodes import ListNode, MappingNode, Node, ScalarNode, at
from bridge.config.problems import Place, Problems, shown
from bridge.config.settings import Settings
from bridge.config.tool_rules import is_reference
from bridge.core.tool import Tool
from bridge.downstream.names import is_loopback, parse_host
from bridge.errors import ConfigError
from bridge.gateway.resolve import named_provider, named_tool
from bridge.tools.names import matcher, offered_name

T = TypeVar("T")

_GLOB_SIGNS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that a tool would be offered under, and where that is written.

    `upstream` is empty for a tool that runs here; `own` tells its tools apart.
    """

    name: str
    upstream: str
    own: str
    is_renamed: bool
    place: Place

    def is_beside(self, other: Claim) -> bool:
        """Whether both may stand: they are one tool; or faults of one mapping, told as such."""
        if self.upstream != other.upstream:
            return False

        return self.own == other.own or (self.is_renamed and other.is_renamed)


def load_checked(paths: Sequence[str | Path], environ: Mapping[str, str] = os.environ) -> Settings:
    """Read settings as `load` does, and see whether everything that they name is there.

    Raises:
        ConfigError: Something is wrong; it holds one sentence for each thing that is.
    """
    return load(paths, environ, further=check_written)


def check_written(root: Node, problems: Problems) -> None:
    """Add what cannot be served as it is written; broken values are left to whoever reads them."""
    claims = [*_local_names(root, problems)]
    for name, upstream in _upstreams(root):
        _found(at(upstream, "tools", "confirm"), named_provider, problems)
        claims += _upstream_names(name, upstream)

    _check_apart(claims, problems)
    _check_reach(root, problems)


def _local_names(root: Node, problems: Problems) -> Iterator[Claim]:
    """The local tools' names; what cannot be made a tool of, or guard one, is a problem."""
    tools = at(root, "tools")
    for index, item in enumerate(tools.items if isinstance(tools, ListNode) else ()):
        function = at(item, "function") if isinstance(item, MappingNode) else item
        tool: Tool | None = _found(function, named_tool, problems)
        _found(at(item, "confirm"), named_provider, problems)
        chosen = at(item, "name")
        if chosen is not None:
            yield Claim(_text(chosen), "", str(index), False, chosen.place)
        elif tool is not None and function is not None:
            yield Claim(tool.name, "", str(index), False, function.place)


def _found(node: Node | None, find: Callable[[str], T], problems: Problems) -> T | None:
    """What a reference leads to; None where it leads nowhere, or where no reference stands."""
    reference = _text(node)
    if node is None or not is_reference(reference):
        return None

    try:
        return find(reference)
    except ConfigError as exc:
        is_secret = isinstance(node, ScalarNode) and node.is_secret
        text = "what the variable holds names nothing that can be used here" if is_secret else exc
        problems.add(node.place, f"{str(text).rstrip('.')}. Correct the name, or what it names.")
        return None


def _upstreams(root: Node) -> Iterator[tuple[str, Node]]:
    upstreams = at(root, "upstreams")
    for name, upstream in upstreams.entries.items() if isinstance(upstreams, MappingNode) else ():
        enabled = at(upstream, "enabled")
        if not isinstance(enabled, ScalarNode) or enabled.value not in (False, "false"):
            yield name, upstream


def _upstream_names(upstream: str, node: Node) -> Iterator[Claim]:
    """The names that an upstream's tools get if it has them: those renamed, and those allowed."""
    written = at(node, "prefix")
    prefix = f"{upstream}__" if written is None else _text(written)
    rename = at(node, "tools", "rename")
    renamed = rename.entries if isinstance(rename, MappingNode) else {}
    is_offered = _offer(node)
    for own, new in renamed.items():
        if is_offered(own) and _text(new):
            yield Claim(offered_name(prefix, _text(new)), upstream, own, True, new.place)

    for own, place in _texts(at(node, "tools", "allow")):
        if own not in renamed and is_offered(own) and not _GLOB_SIGNS & set(own):
            yield Claim(offered_name(prefix, own), upstream, own, False, place)


def _offer(upstream: Node) -> Callable[[str], bool]:
    """Whether a tool of an own name passes the upstream's filters."""
    allow = [text for text, _ in _texts(at(upstream, "tools", "allow"))] or ["*"]
    is_allowed = matcher(allow)
    is_denied = matcher([text for text, _ in _texts(at(upstream, "tools", "deny"))])
    return lambda own: is_allowed(own) and not is_denied(own)


def _check_apart(claims: Sequence[Claim], problems: Problems) -> None:
    taken: dict[str, Claim] = {}
    for claim in claims:
        first = taken.setdefault(claim.name, claim)
        if claim.name and not claim.is_beside(first):
            problems.add(
                claim.place,
                f"two tools would be named {shown(claim.name)}: this one, and the one at "
                f"{first.place}. Give one of them another name or prefix.",
            )


def _check_reach(root: Node, problems: Problems) -> None:
    """No other machine may call without a token; the server would refuse to start."""
    host = at(root, "serve", "http", "host")
    text = _text(host)
    is_host = parse_host(f"[{text}]" if ":" in text else text) is not None
    if host is None or not is_host or is_loopback(text):
        return

    if at(root, "serve", "http", "token") is None:
        is_secret = isinstance(host, ScalarNode) and host.is_secret
        subject = "this host" if is_secret else shown(text)
        problems.add(
            host.place,
            f"{subject} can be reached from other machines, and no token is configured. "
            'Write "token: ${BRIDGE_TOKEN}" beside it, or listen on 127.0.0.1.',
        )


def _texts(node: Node | None) -> list[tuple[str, Place]]:
    items = node.items if isinstance(node, ListNode) else ()
    return [(_text(item), item.place) for item in items if _text(item)]


def _text(node: Node | None) -> str:
    """The text of a node; empty where there is none, or none that can be used."""
    if not isinstance(node, ScalarNode) or node.is_broken:
        return ""

    return node.value if isinstance(node.value, str) else ""
