"""The suite itself: what it takes for a difference, and what it declares to be none."""

from __future__ import annotations

from tests.differential.addressing import Addressing, Member, View
from tests.differential.compare import Pair, parted
from tests.differential.requests import Request
from tests.differential.rewrites import OWN, STAMP, expected
from tests.differential.talk import Era

CALL = Request("tools/call", {"name": "a"})


def view(era: Era, addressing: Addressing | None = None) -> View:
    return View(Member("work", "work__"), era, addressing or Addressing())


def test_numbers_that_python_takes_for_equal_are_different() -> None:
    pair = Pair("", "", "http", "modern")
    for one, other in ((1, 1.0), (1, True), (0, False), (0.0, -0.0)):
        pair.compare("it", {"result": one}, {"result": other})

    assert [one.lines() for one in pair.differences] == [
        ["it: .result is 1.0, not 1"],
        ["it: .result is true, not 1"],
        ["it: .result is false, not 0"],
        ["it: .result is -0.0, not 0.0"],
    ]


def test_what_is_lost_or_new_is_named_with_its_place() -> None:
    assert list(parted({"a": [{"b": 1}]}, {"a": [{"c": None}]})) == [
        ".a[0].b is lost: 1",
        ".a[0].c is new: null",
    ]


def test_error_in_words_of_bridges_own_has_to_have_one_of_its_codes() -> None:
    expected = {"error": {"code": [-32602], "message": OWN}}
    pair = Pair("", "", "http", "modern")
    pair.compare("right", expected, {"error": {"code": -32602, "message": "no"}})
    pair.compare("wrong", expected, {"error": {"code": -32603, "message": "no"}})
    pair.compare("more", expected, {"error": {"code": -32602, "message": "no", "data": 1}})
    pair.compare("none", expected, {"result": {}})

    assert [one.what for one in pair.differences] == ["wrong", "more", "none"]


def test_result_gets_the_fields_of_the_clients_era_and_loses_those_of_the_other() -> None:
    stamp = "io.modelcontextprotocol/serverInfo"
    told = {"result": {"content": [], "resultType": "complete", "_meta": {stamp: {}, "a": 1}}}

    legacy = {"content": [], "_meta": {"a": 1}}
    assert expected(view("legacy"), CALL, told) == {"result": legacy}
    modern = {"content": [], "resultType": "complete", "_meta": {stamp: STAMP, "a": 1}}
    assert expected(view("modern"), CALL, told) == {"result": modern}


def test_uri_that_two_upstreams_have_says_whose_it_is_wherever_it_stands() -> None:
    claimed = Addressing(frozenset({"x://a"}), listed=frozenset({"x://a"}), is_alone=False)
    link = {"type": "resource_link", "uri": "x://a", "name": "a"}
    inside = {"type": "resource", "resource": {"uri": "x://a", "text": "x://a"}}

    changed = expected(view("legacy", claimed), CALL, {"result": {"content": [link, inside]}})

    shown = "work+x://a"
    assert changed["result"]["content"] == [
        {**link, "uri": shown},
        {"type": "resource", "resource": {"uri": shown, "text": "x://a"}},
    ]
