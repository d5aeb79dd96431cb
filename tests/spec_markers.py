"""A pytest plugin that writes down which numbered cases the collected tests name.

`pytest --collect-only -p tests.spec_markers --spec-markers FILE` writes a JSON list of pairs
`[test, case]`. What is deselected counts, for it has been collected, too.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOUND = pytest.StashKey[list[tuple[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write them."""
    parser.addoption("--spec-markers", metavar="FILE", type=Path, help="write the named cases")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing is found yet."""
    config.stash[FOUND] = []


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note the markers of a test, wherever they were put: on it, its module or a parameter."""
    for mark in item.iter_markers("spec"):
        # What is no plain id is noted as it stands, and so is found to be no case's.
        cases = mark.args if mark.args and not mark.kwargs else (mark,)
        item.config.stash[FOUND] += [(item.nodeid, str(case)) for case in cases]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write them all."""
    place: Path | None = session.config.getoption("--spec-markers")
    if place is not None:
        place.write_text(json.dumps(session.config.stash[FOUND]), "utf-8")
