"""A server that says whatever it is told is heard through bridge as it spoke."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.differential.compare import Pair
from tests.differential.rig import CHECKS, rigged
from tests.differential.talk import ERAS, Era
from tests.differential.wire import Transport

EXAMPLES = 60
OVER: dict[Era, Transport] = {"legacy": "http", "modern": "stdio"}
"""How clients reach the bridge before a server of each era."""


@pytest.fixture(scope="module", params=ERAS)
def explore(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], list[Pair]]]:
    era: Era = request.param
    place = tmp_path_factory.mktemp("generated")
    with rigged(place, OVER[era], era, at_random=False) as explore:
        yield explore


@pytest.mark.parametrize("kind", [kind for kind, *_ in CHECKS])
def test_whatever_is_said_arrives_as_it_was(
    explore: Callable[[str, int], list[Pair]], kind: str
) -> None:
    pairs = explore(kind, EXAMPLES)

    assert all(pair.compared > 1 for pair in pairs)
