"""Memory that is searched by words: whose it is, what fits best, and any text as a query."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core.bound import BoundMemory
from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.core.context import InvocationContext, ToolContext
from bridge.core.event import Event
from bridge.core.memory import MemoryEntry
from bridge.core.session import Session
from bridge.errors import StoreError
from bridge.stores.fulltext import SqliteMemoryService

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def memory() -> AsyncIterator[SqliteMemoryService]:
    async with SqliteMemoryService() as service:
        yield service


def talk(*texts: str, user: str = "ann", app: str = "app", id: str = "s1") -> Session:
    """A session in which that was said, a minute apart."""
    events = [
        Event(
            id=f"{id}-{number}",
            author="user" if number % 2 == 0 else "agent",
            timestamp=THEN + timedelta(minutes=number),
            content=Content("user", (Part(text=text),)),
        )
        for number, text in enumerate(texts)
    ]
    return Session(id, user, app, events=events)


async def found(memory: SqliteMemoryService, query: str, user: str = "ann") -> list[str]:
    return [str(entry.content.parts[0].text) for entry in await memory.search("app", user, query)]


async def test_what_was_said_is_found_with_who_said_it_and_when(
    memory: SqliteMemoryService,
) -> None:
    session = talk("How warm is it in Tokyo?", "It is 22 degrees in Tokyo.")
    await memory.add_session(session)

    assert await memory.search("app", "ann", "degrees") == [
        MemoryEntry(session.events[1].content, "agent", THEN + timedelta(minutes=1))
    ]


async def test_nothing_is_remembered_at_first(memory: SqliteMemoryService) -> None:
    assert await memory.search("app", "ann", "anything") == []


@pytest.mark.spec("13.18")
@pytest.mark.spec("system-57")
async def test_one_user_never_finds_what_is_anothers(memory: SqliteMemoryService) -> None:
    await memory.add_session(talk("my secret colour is red", user="ann"))
    await memory.add_session(talk("my secret colour is blue", user="bob"))
    await memory.add_session(talk("my secret colour is green", user="ann", app="app2"))

    assert await found(memory, "secret colour red blue green") == ["my secret colour is red"]
    assert await found(memory, "red", user="bob") == []
    session = Session("s9", "bob", "app")
    run = InvocationContext(session, memory=BoundMemory(memory, "app", "bob"))
    (entry,) = await ToolContext(run).search_memory("colour")
    assert entry.content.parts[0].text == "my secret colour is blue"


async def test_an_owner_cannot_be_named_in_a_query(memory: SqliteMemoryService) -> None:
    await memory.add_session(talk("red", user="ann"))
    await memory.add_session(talk("red", user="bob"))

    assert len(await memory.search("app", "bob", 'red) OR owner:* OR words:("red')) == 1


async def test_what_fits_best_comes_first(memory: SqliteMemoryService) -> None:
    await memory.add_session(
        talk(
            "Hangzhou weather, Hangzhou weather",
            "the weather in Hangzhou is rainy",
            "the weather was mild and the train was late and nobody minded it at all",
            "the report is about the budget",
        )
    )

    assert await found(memory, "Hangzhou weather") == [
        "Hangzhou weather, Hangzhou weather",
        "the weather in Hangzhou is rainy",
        "the weather was mild and the train was late and nobody minded it at all",
    ]


async def test_of_what_fits_equally_well_the_newest_comes_first(
    memory: SqliteMemoryService,
) -> None:
    session = talk("red one", "red two")
    await memory.add_session(session)

    assert await found(memory, "red") == ["red two", "red one"]


@pytest.mark.parametrize(
    ("said", "query", "fits"),
    [
        ("The REPORTS were bought", "report", True),
        ("Café in Zürich", "cafe zurich", True),
        ("杭州天气怎么样", "天气", True),
        ("杭州天气怎么样", "今天杭州热吗", True),
        ("杭州天气怎么样", "上海", False),
        ("東京の天気は晴れです", "天気", True),
        ("오늘 날씨가 좋다", "날씨", True),
        ("雨", "雨", True),
        ("call +81-3-1234 now", "1234", True),
        ("a b c", "d", False),
        ("AI辅助编程", "ai", True),
        ("underscored_name", "name", True),
    ],
)
async def test_words_are_compared_as_people_write_them(
    memory: SqliteMemoryService, said: str, query: str, fits: bool
) -> None:
    await memory.add_session(talk(said))

    assert await found(memory, query) == [said] * fits


async def test_a_session_that_is_added_again_is_known_once_and_grows(
    memory: SqliteMemoryService,
) -> None:
    await memory.add_session(talk("red one"))
    await memory.add_session(talk("red one", "red two"))
    await memory.add_session(talk("red one", "red two"))
    await memory.add_session(talk("red three", id="s2"))

    assert sorted(await found(memory, "red")) == ["red one", "red three", "red two"]


async def test_what_was_only_thought_called_or_answered_is_not_remembered(
    memory: SqliteMemoryService,
) -> None:
    def of(part: Part, **given: Any) -> Event:
        return Event(content=Content("model", (part,)), **given)

    events = [
        of(Part(text="red thought", thought=True)),
        of(Part(function_call=FunctionCall("1", "red", {"red": "red"}))),
        of(Part(function_response=FunctionResponse("1", "red", {"red": "red"}))),
        of(Part(inline_data=Blob("red", b"red"))),
        of(Part(text="red partial"), partial=True),
        of(Part(text="?!")),
        Event(),
        of(Part(text="red speech")),
    ]
    await memory.add_session(Session("s1", "ann", "app", events=events))

    assert await found(memory, "red thought partial") == ["red speech"]


async def test_no_more_is_found_than_was_asked_for() -> None:
    async with SqliteMemoryService(most_found=3) as memory:
        await memory.add_session(talk(*["red"] * 10))

        assert len(await memory.search("app", "ann", "red")) == 3


OPERATORS = ['"', "'", "*", "NEAR(", "a OR", "NOT", "words:", "-", "^a", "(", "\0", "\ud800", "{}"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(OPERATORS) | st.text(max_size=8), max_size=6).map(" ".join))
def test_any_text_is_a_query_and_any_text_can_be_remembered(text: str) -> None:
    async def remember_and_search() -> int:
        async with SqliteMemoryService() as memory:
            await memory.add_session(talk(text, "nothing of the kind"))
            return len(await memory.search("app", "ann", text))

    assert anyio.run(remember_and_search) in (0, 1, 2)


async def test_a_query_may_be_very_long(memory: SqliteMemoryService) -> None:
    await memory.add_session(talk("red"))

    many = " ".join(map(str, range(100_000)))
    assert await found(memory, f"red {many}") == ["red"]
    assert await found(memory, f"{many} red") == []
    assert await found(memory, f"{' '.join(map(str, range(64)))} red") == []


@pytest.mark.parametrize("query", ["", "  ", "?!", "…", "_"])
async def test_a_query_without_words_fits_nothing(memory: SqliteMemoryService, query: str) -> None:
    await memory.add_session(talk("red ?!"))

    assert await found(memory, query) == []


async def test_a_file_remembers_when_the_process_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "memory.db"
    async with SqliteMemoryService(path) as memory:
        await memory.add_session(talk("red"))

    async with SqliteMemoryService(path) as memory, SqliteMemoryService(path) as other:
        await other.add_session(talk("red too", id="s2"))
        assert sorted(await found(memory, "red")) == ["red", "red too"]

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_is_in_memory_is_gone_once_it_is_closed() -> None:
    memory = SqliteMemoryService()
    await memory.add_session(talk("red"))
    await memory.aclose()

    assert await found(memory, "red") == []
    await memory.aclose()
    await memory.aclose()


async def test_many_may_add_and_search_at_once(memory: SqliteMemoryService) -> None:
    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(memory.add_session, talk("red", id=f"s{number}"))
            group.start_soon(memory.search, "app", "ann", "red")

    assert len(await memory.search("app", "ann", "red")) == 20


async def test_a_session_of_nobody_is_refused(memory: SqliteMemoryService) -> None:
    with pytest.raises(StoreError, match="the user id is missing"):
        await memory.add_session(talk("red", user=""))

    with pytest.raises(StoreError, match="the user id is missing"):
        await memory.search("app", "", "red")


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("this is no database, however long it may be " * 100)

    async with SqliteMemoryService(path) as memory:
        with pytest.raises(StoreError, match=r"the memory cannot be used: .*not a database"):
            await memory.search("app", "ann", "red")
