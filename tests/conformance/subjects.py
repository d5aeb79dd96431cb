"""What the suite is run against: our conformance server, alone or behind bridge.

- `direct`: the server, for both eras.
- `bridge`: bridge in front of that same server; it may speak either era to it.
- `mirrored`: bridge in front of the server pinned to the era that the suite speaks.
- `crossed`: bridge in front of the server pinned to the other era.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from tests.conformance.suite import ROOT, Era
from tests.processes import started, unused_port

Subject: TypeAlias = Literal["direct", "bridge", "mirrored", "crossed"]
Parser: TypeAlias = Literal["h11", "httptools"]

SUBJECTS: tuple[Subject, ...] = ("direct", "bridge", "mirrored", "crossed")
PARSERS: tuple[Parser, ...] = ("h11", "httptools")

SAME: Mapping[Era, str] = {"2025-11-25": "legacy", "2026-07-28": "modern"}
OTHER: Mapping[Era, str] = {"2025-11-25": "modern", "2026-07-28": "legacy"}

BRIDGE = "import sys; {hide}; from bridge.__main__ import main; sys.exit(main())"
HIDE: Mapping[Parser, str] = {
    "h11": "sys.modules['httptools'] = None",  # uvicorn takes httptools wherever it finds it
    "httptools": "import httptools",
}


@asynccontextmanager
async def serving(subject: Subject, era: Era, parser: Parser) -> AsyncIterator[str]:
    """A running subject; yields the URL of its endpoint.

    `parser` is what reads HTTP where the suite connects.
    """
    if subject == "direct":
        async with _server((), parser) as url:
            yield url

        return

    pins: Mapping[Subject, Sequence[str]] = {
        "mirrored": ("--era", SAME[era]),
        "crossed": ("--era", OTHER[era]),
    }
    async with _server(pins.get(subject, ()), "h11") as upstream, _bridge(upstream, parser) as url:
        yield url


@asynccontextmanager
async def _server(pin: Sequence[str], parser: Parser) -> AsyncIterator[str]:
    port = unused_port()
    module = [sys.executable, "-m", "tests.servers.everything"]
    argv = [*module, "--port", str(port), "--http", parser, *pin]
    async with started(argv, port=port, cwd=ROOT):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def _bridge(upstream: str, parser: Parser) -> AsyncIterator[str]:
    port = unused_port()
    with tempfile.TemporaryDirectory(prefix="bridge-conformance-") as place:
        config = _write_config(Path(place, "bridge.yaml"), upstream)
        program = BRIDGE.format(hide=HIDE[parser])
        argv = [sys.executable, "-c", program, "serve", str(config), "--port", str(port)]
        async with started(argv, {"PYTHONPATH": str(ROOT)}, port=port, cwd=ROOT):
            yield f"http://127.0.0.1:{port}/mcp"


def _write_config(path: Path, upstream: str) -> Path:
    config = {"upstreams": {"everything": {"url": upstream, "prefix": ""}}}
    path.write_text(json.dumps(config), "utf-8")  # JSON is YAML
    return path
