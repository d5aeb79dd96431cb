"""Who is measured, and the command that starts each: a port goes in the place of `{port}`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench import peers

HERE = Path(__file__).resolve().parent
ECHO = (sys.executable, "-I", "-S", str(HERE / "upstream.py"))
BRIDGE = f"{shlex.quote(sys.executable)} -m bridge serve {{config}} --port {{port}}"

FLOOR = "floor"
OURS = "bridge"
BOTH_ERAS = (FLOOR, OURS, "fastmcp")
"""Who speaks the modern era as well; the others' calls are legacy ones."""

TOKEN = "bench-token-of-no-value"
METRICS: Final = "metrics"
EXTRAS: Mapping[str, dict[str, Any]] = {
    METRICS: {"serve": {"metrics": True}},
    "token": {"serve": {"metrics": True, "http": {"token": TOKEN}}},
    "audit": {"serve": {"metrics": True, "audit": "audit.jsonl"}},
    "tracing": {"serve": {"metrics": True, "tracing": True}},
}
"""What a user may switch on, as settings: metrics, which every measurement has, or more."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured, and with what."""

    work: Path
    peers: Path = peers.HOME
    bridge: str = BRIDGE
    rounds: int = 4
    calls: int = 400
    clients: tuple[int, ...] = (1, 32)
    only: tuple[str, ...] = ()


def contenders(options: Options, upstream: Sequence[str] | str) -> dict[str, list[str]]:
    """Every contender that can run here, in front of a command or, where it can, of a URL."""
    target = [upstream] if isinstance(upstream, str) else list(upstream)
    found = {FLOOR: [sys.executable, "-m", "tests.bench.floor", "{port}", *target]}
    settings = {"url": upstream} if isinstance(upstream, str) else {"command": target}
    found[OURS] = bridge(options, {"echo": settings}, extra=EXTRAS[METRICS])
    found |= _fastmcp(options.peers, target)
    if not isinstance(upstream, str):
        found |= _mcp_proxy(options.peers, target) | _node(options.peers, target)

    return {name: found[name] for name in found if not options.only or name in options.only}


def bridge(
    options: Options,
    upstreams: Mapping[str, Mapping[str, Any]],
    name: str = "BENCH",
    extra: Mapping[str, Any] | None = None,
) -> list[str]:
    """`bridge serve` over these upstreams, as a user runs it, with a gate that never closes.

    The first upstream's tools keep their own names. `extra` are further top-level settings.
    """
    first = next(iter(upstreams))
    full = {
        key: {**one, "tools": {"confirm": ["matches_nothing_*"]}} for key, one in upstreams.items()
    }
    full[first]["prefix"] = ""
    config = options.work / f"{name}.yaml"
    config.write_text(json.dumps({"upstreams": full, **(extra or {})}, indent=2), "utf-8")
    return shlex.split(options.bridge.replace("{config}", shlex.quote(str(config))))


def _fastmcp(place: Path, target: list[str]) -> dict[str, list[str]]:
    python = place / "fastmcp" / "bin" / "python"
    script = str(HERE / "fastmcp_proxy.py")
    return {"fastmcp": [str(python), script, "{port}", *target]} if python.exists() else {}


def _mcp_proxy(place: Path, target: list[str]) -> dict[str, list[str]]:
    program = place / "mcp-proxy" / "bin" / "mcp-proxy"
    flags = ["--port", "{port}", "--log-level", "ERROR", "--", *target]
    return {"mcp-proxy": [str(program), *flags]} if program.exists() else {}


def _node(place: Path, target: list[str]) -> dict[str, list[str]]:
    node, modules = shutil.which("node"), place / "node" / "node_modules"
    if node is None or not modules.exists():
        return {}

    proxy = [node, str(modules / "mcp-proxy" / "dist" / "bin" / "mcp-proxy.mjs")]
    proxy += ["--host", "127.0.0.1", "--port", "{port}", "--server", "stream", "--", *target]
    gateway = [node, str(modules / "supergateway" / "dist" / "index.js")]
    gateway += ["--stdio", shlex.join(target), "--outputTransport", "streamableHttp"]
    gateway += ["--stateful", "--port", "{port}", "--logLevel", "none"]
    return {"npm-mcp-proxy": proxy, "supergateway": gateway}
