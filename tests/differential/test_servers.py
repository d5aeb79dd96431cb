"""Servers answer through bridge as they do directly, but for the declared rewrites.

Here each server is asked over one transport; `python -m tests.differential` asks over all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.differential.compare import Pair
from tests.differential.plan import alone, together
from tests.differential.servers import KINDS, Server, servers
from tests.servers.install import Unavailable

pytestmark = pytest.mark.timeout(600)  # the servers may have to be installed


def available(*names: str) -> list[Server]:
    try:
        return servers(names)
    except Unavailable as exc:
        if os.environ.get("CI"):
            raise

        pytest.skip(str(exc))


def shown(pairs: Sequence[Pair]) -> list[str]:
    return [
        f"{pair.server} {pair.upstream} → {pair.transport} → {pair.client}: {line}"
        for pair in pairs
        for one in pair.differences
        for line in one.lines()
    ]


@pytest.mark.npm
async def test_all_servers_behind_one_bridge_answer_as_they_do_directly(tmp_path: Path) -> None:
    pairs = await together(available(*KINDS), ["http"], tmp_path)

    assert shown(pairs) == []
    assert sum(pair.compared for pair in pairs) > 300


async def test_server_over_http_answers_as_it_does_directly(tmp_path: Path) -> None:
    pairs = await alone(available("ours")[1], ["sse"], tmp_path)

    assert shown(pairs) == []


@pytest.mark.npm
async def test_server_over_sse_answers_as_it_does_directly(tmp_path: Path) -> None:
    pairs = await alone(available("everything")[2], ["stdio"], tmp_path)

    assert shown(pairs) == []
