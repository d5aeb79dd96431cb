from __future__ import annotations

from tests.conformance.report import Judged, table
from tests.conformance.suite import Check, Leg, Scenario

GOOD = Scenario("ping", 1)
WARNED = Scenario("caching", 1, warned=(Check("hint", "no hint"),))
BAD = Scenario("tools-list", 3, failed=(Check("order", "no order"), Check("names", "no names")))
EMPTY = Scenario("initialize", 0)


def judged(
    *scenarios: Scenario, expected: int | None = None, code: int | None = 0, **excused: str
) -> Judged:
    count = len(scenarios) if expected is None else expected
    names = {name.replace("_", "-").replace("--", ":"): why for name, why in excused.items()}
    return Judged("crossed", "h11", Leg("2025-11-25", count, scenarios, code), names)


def test_a_warning_is_no_problem_and_a_failure_is_one() -> None:
    assert judged(GOOD, WARNED, BAD).problems == ["tools-list failed"]


def test_a_scenario_without_any_check_has_failed_and_one_that_did_not_apply_has_not() -> None:
    assert judged(EMPTY, Scenario("sse", 0, noted=2)).problems == ["initialize failed"]


def test_a_missing_scenario_is_a_problem() -> None:
    assert judged(GOOD, expected=2).problems == ["1 of 2 scenarios have a result"]


def test_an_excused_scenario_may_fail_and_the_requirements_with_it() -> None:
    assert judged(BAD, code=1, tools_list="cannot").problems == []


def test_excused_checks_excuse_a_scenario_only_if_no_other_check_failed() -> None:
    one = judged(BAD, tools_list__order="cannot")
    both = judged(BAD, tools_list__order="cannot", tools_list__names="cannot")

    assert one.problems == ["tools-list failed"]
    assert both.problems == []


def test_an_excuse_for_what_did_not_fail_is_a_problem() -> None:
    assert judged(GOOD, ping="cannot").problems == ['"ping" is excused and did not fail']


def test_failed_requirements_are_a_problem_where_nothing_is_excused() -> None:
    assert judged(GOOD, code=1).problems == ["--requirements 2025-11-25 exited with 1"]


def test_the_table_says_why_something_failed_or_warned() -> None:
    lines = table(judged(GOOD, WARNED, BAD)).splitlines()

    assert lines[0] == (
        "2025-11-25 · crossed · h11: 3 scenarios, 1 pass, 1 warn, 1 fail; --requirements exit 0"
    )
    assert [line.split()[0] for line in lines[1:]] == [
        "pass",
        "warn",
        "hint:",
        "fail",
        "order:",
        "names:",
    ]
