"""Names and globs that match no tool are told; before a listing nothing is known to be wrong."""

from __future__ import annotations

import logging

import pytest

from bridge.core.context import local_context
from bridge.tools.catalog import Catalog
from bridge.tools.checked import CheckedToolset, literally
from bridge.tools.function import function_tool
from bridge.tools.toolsets import CombinedToolset, ConfirmedToolset, StaticToolset

CTX = local_context()


def read_page(number: int) -> int:
    """Read."""
    return number


def pages(name: str = "pages") -> StaticToolset:
    return StaticToolset([function_tool(read_page)], name=name)


async def test_what_matches_no_tool_is_one_line_a_key_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = {
        "allow": ["read_*", "write_*"],
        "confirm": ["drop_*", "wipe"],
        "rename": literally(["a*b", "read_page"]),
        "deny": [],
    }
    toolset = CheckedToolset(pages(), expected)
    assert toolset.problems == ()

    with caplog.at_level(logging.WARNING):
        listing = await toolset.tools(CTX)
        assert await toolset.tools(CTX) is listing

    assert toolset.problems == (
        'allow: no tool here is named "write_*", so it has no effect',
        'confirm: no tool here is named "drop_*", "wipe", so it has no effect',
        'rename: no tool here is named "a*b", so it has no effect',
    )
    assert len(caplog.records) == 3


async def test_problems_reach_the_catalog_through_every_wrapper() -> None:
    checked = CheckedToolset(pages(), {"confirm": ["drop"]})
    catalog = Catalog(CombinedToolset([ConfirmedToolset(checked, ["drop"]), pages("others")]))

    await catalog.refresh(CTX)

    said = '"pages": confirm: no tool here is named "drop", so it has no effect'
    assert [one for one in catalog.problems if "drop" in one] == [said]
