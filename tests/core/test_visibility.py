"""What of a history a model may see, by branch and by isolation scope."""

from __future__ import annotations

import pytest

from bridge.core.event import Event
from bridge.core.visibility import sees_branch, sees_scope, turn_start, visible


@pytest.mark.spec("13.14")
@pytest.mark.parametrize(
    ("own", "other", "seen"),
    [
        ("branch1.task1", "branch1", True),
        ("branch1.task1", "branch1.task1", True),
        ("branch1.task1", "", True),
        ("branch1.task1", "branch12", False),
        ("branch1.task1", "branch2", False),
        ("branch1.task1", "branch1.task2", False),
        ("branch1", "branch1.task1", False),
        ("agent_00", "agent_0", False),
        ("", "branch2", True),
    ],
)
def test_a_branch_sees_itself_and_its_ancestors(own: str, other: str, seen: bool) -> None:
    assert sees_branch(own, other) is seen


@pytest.mark.spec("13.15")
@pytest.mark.parametrize(
    ("own", "other", "seen"),
    [
        ("task-1", "task-1", True),
        ("task-1", "", False),
        ("task-1", "task-2", False),
        ("", "", True),
        ("", "task-1", False),
    ],
)
def test_an_isolation_scope_sees_itself_alone(own: str, other: str, seen: bool) -> None:
    assert sees_scope(own, other) is seen


def said(author: str, branch: str = "", isolation_scope: str = "") -> Event:
    return Event(author=author, branch=branch, isolation_scope=isolation_scope)


@pytest.mark.spec("system-58")
def test_an_event_is_seen_where_both_branch_and_scope_let_it_through() -> None:
    events = [
        said("user"),
        said("sibling", branch="root.sibling"),
        said("parent", branch="root"),
        said("me", branch="root.me"),
        said("me", branch="root.me", isolation_scope="task-1"),
    ]

    assert visible(events, "root.me", "") == [events[0], events[2], events[3]]
    assert visible(events, "root.me", "task-1") == [events[4]]


@pytest.mark.spec("13.16")
def test_a_turn_starts_at_the_newest_visible_word_of_others() -> None:
    unscoped = [said("user"), said("me"), said("user", isolation_scope="task-1")]
    siblings = [said("user", branch="root.me"), said("sibling", branch="root.sibling")]
    others = [said("user"), said("me"), said("helper"), said("me")]

    assert turn_start(unscoped, "me", "", "") == 0
    assert turn_start(unscoped, "me", "", "task-1") == 2
    assert turn_start(siblings, "me", "root.me", "") == 0
    assert turn_start(others, "me", "", "") == 2


def test_a_history_that_nobody_else_is_in_is_one_turn() -> None:
    assert turn_start([said("me"), said("me")], "me", "", "") == 0
    assert turn_start([], "me", "", "") == 0


def test_the_user_starts_a_turn_of_an_agent_that_is_called_user() -> None:
    assert turn_start([said("user"), said("user")], "user", "", "") == 1
