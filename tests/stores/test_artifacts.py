"""What every artifact service does, in memory and in a folder alike; and what a folder holds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.core.bound import BoundArtifacts
from bridge.core.content import Blob, FunctionCall, Part
from bridge.core.context import InvocationContext, ToolContext
from bridge.core.session import Session, SessionKey
from bridge.core.stores import ArtifactService
from bridge.errors import ArtifactNotFound, StoreError
from bridge.stores.files import FileArtifactService
from bridge.stores.parts import LARGEST_ARTIFACT
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
KEY = SessionKey("app", "u1", "s1")
SAVES = 100
PNG = Part(inline_data=Blob("image/png", bytes(range(256)) * 3))


def written(text: str) -> Part:
    return Part(text=text)


async def test_each_save_is_a_new_version_and_the_newest_is_loaded(
    artifacts: ArtifactService,
) -> None:
    assert await artifacts.save(KEY, "a.txt", written("one")) == 1
    assert await artifacts.save(KEY, "a.txt", written("two")) == 2
    assert await artifacts.save(KEY, "b.txt", written("other")) == 1

    assert await artifacts.load(KEY, "a.txt") == written("two")
    assert await artifacts.load(KEY, "a.txt", 1) == written("one")
    assert list(await artifacts.versions(KEY, "a.txt")) == [1, 2]
    assert list(await artifacts.list(KEY)) == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    "part",
    [
        PNG,
        written(""),
        written("line one\nline two\r\n天气 \ud800 \0"),
        Part(inline_data=Blob("", b"")),
        Part(inline_data=Blob("text/plain\n", b"\n\n{}\n"), thought=True),
        Part(function_call=FunctionCall("1", "f", {"n": 2**70})),
        Part(text="hm", thought=True, thought_signature=b"\xff"),
    ],
    ids=["bytes", "empty", "odd text", "no bytes", "newlines", "call", "thought"],
)
async def test_a_part_comes_back_whole(artifacts: ArtifactService, part: Part) -> None:
    await artifacts.save(KEY, "a", part)

    assert await artifacts.load(KEY, "a") == part


@pytest.mark.parametrize("version", [None, 1, 0, -1, 2**70])
async def test_what_is_not_there_is_not_found(
    artifacts: ArtifactService, version: int | None
) -> None:
    await artifacts.save(KEY, "a", written("a"))
    await artifacts.save(KEY, "a", written("a"))
    await artifacts.delete(KEY, "a", 1)

    with pytest.raises(ArtifactNotFound, match='"b"'):
        await artifacts.load(KEY, "b", version)

    with pytest.raises(ArtifactNotFound, match='"b"'):
        await artifacts.versions(KEY, "b")

    if version is not None:
        with pytest.raises(ArtifactNotFound, match='"a"'):
            await artifacts.load(KEY, "a", version)


async def test_nothing_has_been_saved_at_first(artifacts: ArtifactService) -> None:
    assert list(await artifacts.list(KEY)) == []
    await artifacts.delete(KEY, "a")
    with pytest.raises(ArtifactNotFound):
        await artifacts.load(KEY, "a")


@pytest.mark.parametrize(
    "other",
    [SessionKey("app2", "u1", "s1"), SessionKey("app", "u2", "s1"), SessionKey("app", "u1", "s2")],
    ids=["app", "user", "session"],
)
async def test_a_sessions_artifacts_are_its_own(
    artifacts: ArtifactService, other: SessionKey
) -> None:
    await artifacts.save(KEY, "a", written("mine"))

    assert list(await artifacts.list(other)) == []
    with pytest.raises(ArtifactNotFound):
        await artifacts.load(other, "a")


async def test_a_users_artifacts_are_in_all_sessions_of_that_user_alone(
    artifacts: ArtifactService,
) -> None:
    mine, theirs = SessionKey("app", "u1", "s2"), SessionKey("app", "u2", "s1")
    await artifacts.save(KEY, "user:photo", written("one"))
    await artifacts.save(KEY, "a", written("a"))

    assert await artifacts.save(mine, "user:photo", written("two")) == 2

    assert await artifacts.load(KEY, "user:photo") == written("two")
    assert list(await artifacts.list(KEY)) == ["a", "user:photo"]
    assert list(await artifacts.list(mine)) == ["user:photo"]
    assert list(await artifacts.list(theirs)) == []
    await artifacts.delete(mine, "user:photo")
    assert list(await artifacts.list(KEY)) == ["a"]


async def test_a_session_that_is_called_user_is_a_session(artifacts: ArtifactService) -> None:
    await artifacts.save(SessionKey("app", "u1", "user"), "a", written("mine"))

    assert list(await artifacts.list(KEY)) == []


async def test_versions_are_deleted_one_by_one_or_all_at_once(artifacts: ArtifactService) -> None:
    for text in ("one", "two", "three"):
        await artifacts.save(KEY, "a", written(text))

    await artifacts.delete(KEY, "a", 2)
    await artifacts.delete(KEY, "a", 2)
    await artifacts.delete(KEY, "a", 9)
    assert list(await artifacts.versions(KEY, "a")) == [1, 3]
    assert await artifacts.load(KEY, "a") == written("three")

    await artifacts.delete(KEY, "a")
    assert list(await artifacts.list(KEY)) == []

    await artifacts.save(KEY, "a", written("anew"))
    await artifacts.delete(KEY, "a", 1)
    assert list(await artifacts.list(KEY)) == []


@pytest.mark.spec("system-53")
async def test_saves_of_one_name_at_the_same_time_get_different_versions(
    artifacts: ArtifactService,
) -> None:
    saved: dict[int, str] = {}

    async def save(text: str) -> None:
        saved[await artifacts.save(KEY, "a", written(text))] = text

    async with anyio.create_task_group() as group:
        for number in range(SAVES):
            group.start_soon(save, str(number))

    assert sorted(saved) == list(range(1, SAVES + 1))
    for version, text in saved.items():
        assert await artifacts.load(KEY, "a", version) == written(text)


async def test_a_save_while_all_is_deleted_is_whole_or_not_at_all(
    artifacts: ArtifactService,
) -> None:
    async def save() -> None:
        for _ in range(20):
            assert await artifacts.save(KEY, "a", PNG) >= 1

    async def forget() -> None:
        for _ in range(20):
            await artifacts.delete(KEY, "a")

    async with anyio.create_task_group() as group:
        group.start_soon(save)
        group.start_soon(forget)

    await artifacts.save(KEY, "a", PNG)
    for version in await artifacts.versions(KEY, "a"):
        assert await artifacts.load(KEY, "a", version) == PNG


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "n" * 1025], ids=ascii)
async def test_a_name_that_names_nothing_is_refused(artifacts: ArtifactService, name: str) -> None:
    for use in (
        lambda: artifacts.save(KEY, name, written("a")),
        lambda: artifacts.load(KEY, name),
        lambda: artifacts.versions(KEY, name),
        lambda: artifacts.delete(KEY, name),
    ):
        with pytest.raises(StoreError, match="the artifact name"):
            await use()


@pytest.mark.parametrize("key", [SessionKey("app", "u1"), SessionKey("", "u", "s")], ids=str)
async def test_a_key_that_names_nothing_is_refused(
    artifacts: ArtifactService, key: SessionKey
) -> None:
    for use in (
        lambda: artifacts.save(key, "a", written("a")),
        lambda: artifacts.load(key, "user:a"),
        lambda: artifacts.list(key),
    ):
        with pytest.raises(StoreError, match="is missing"):
            await use()


async def test_what_is_too_large_is_refused(artifacts: ArtifactService) -> None:
    large = Part(inline_data=Blob("video/mp4", bytes(LARGEST_ARTIFACT + 1)))

    with pytest.raises(StoreError, match='artifact "a" has 67108865 bytes, over 67108864'):
        await artifacts.save(KEY, "a", large)

    assert list(await artifacts.list(KEY)) == []


@pytest.mark.spec("13.17")
async def test_a_tools_saves_are_noted_with_the_services_versions(
    artifacts: ArtifactService,
) -> None:
    await artifacts.save(KEY, "weather.txt", written("rain"))
    session = Session(KEY.session_id, KEY.user_id, KEY.app_name)
    bound = BoundArtifacts(artifacts, session.key)
    ctx = ToolContext(InvocationContext(session, artifacts=bound), "call-1")

    assert await ctx.artifacts.save("weather.txt", written("sun")) == 2

    assert ctx.actions.artifact_delta == {"weather.txt": 2}
    assert await ctx.artifacts.load("weather.txt") == written("sun")
    assert await ctx.artifacts.load_version("weather.txt", 1) == written("rain")
    assert list(await ctx.artifacts.list()) == ["weather.txt"]


# --- in a folder ---------------------------------------------------------------------------


def letters_below(root: Path) -> set[str]:
    """Every letter of every path in a folder."""
    return set().union(*(part for path in root.rglob("*") for part in path.relative_to(root).parts))


NASTY = st.sampled_from(
    ["..", "../../x", "/etc/passwd", ".", "a/b", "a\\b", "-rf", "~", "user:../x", "con", "x\n"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(name=NASTY | st.text(min_size=1, max_size=20), user=NASTY)
def test_no_name_is_ever_part_of_a_path(tmp_path: Path, name: str, user: str) -> None:
    root = tmp_path / "artifacts"
    key = SessionKey("../..", user, "/")

    async def save_and_load() -> Part:
        artifacts = FileArtifactService(root)
        await artifacts.save(key, name, written(name))
        return await artifacts.load(key, name)

    try:
        assert anyio.run(save_and_load) == written(name)
    except StoreError:
        assert "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name)

    assert [path.name for path in tmp_path.iterdir()] in ([], ["artifacts"])
    assert letters_below(root) <= {*"0123456789abcdef", *"user"}


async def test_nobody_else_may_read_what_is_saved(tmp_path: Path) -> None:
    root = tmp_path / "artifacts"
    await FileArtifactService(root).save(KEY, "a", PNG)

    modes = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in [root, *root.rglob("*")]
    }
    assert modes == {(True, 0o700), (False, 0o600)}


async def test_another_instance_finds_what_was_saved(tmp_path: Path) -> None:
    await FileArtifactService(tmp_path).save(KEY, "a", PNG)

    anew = FileArtifactService(tmp_path)
    assert list(await anew.list(KEY)) == ["a"]
    assert await anew.load(KEY, "a") == PNG


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def only_file(root: Path) -> Path:
    (path,) = files(root)
    return path


async def test_a_link_in_place_of_a_version_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b'{"name":"a","part":{"text":""}}\nsecret')
    artifacts = FileArtifactService(tmp_path / "artifacts")
    await artifacts.save(KEY, "a", written("a"))
    path = only_file(tmp_path / "artifacts")
    path.unlink()
    path.symlink_to(secret)

    with pytest.raises(StoreError, match="the artifact folder cannot be used"):
        await artifacts.load(KEY, "a")

    assert await artifacts.save(KEY, "a", written("b")) == 2
    await artifacts.delete(KEY, "a")
    assert secret.exists()


async def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    artifacts = FileArtifactService(tmp_path / "artifacts")
    await artifacts.save(KEY, "a", written("a"))
    folder = only_file(tmp_path / "artifacts").parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    for use in (
        lambda: artifacts.load(KEY, "a"),
        lambda: artifacts.save(KEY, "a", written("b")),
        lambda: artifacts.list(KEY),
        lambda: artifacts.delete(KEY, "a"),
    ):
        with pytest.raises(StoreError, match="the artifact folder cannot be used"):
            await use()

    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


async def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    artifacts = FileArtifactService(tmp_path)
    await artifacts.save(KEY, "a", written("a"))
    path = only_file(tmp_path)
    path.unlink()
    os.mkfifo(path)

    with anyio.fail_after(PATIENCE), pytest.raises(StoreError, match="is no file of ours"):
        await artifacts.load(KEY, "a")


async def test_a_save_that_was_cut_off_leaves_nothing_that_shows(tmp_path: Path) -> None:
    artifacts = FileArtifactService(tmp_path)
    await artifacts.save(KEY, "a", written("a"))
    (only_file(tmp_path).parent / ".cut-off").write_bytes(b"half")

    assert list(await artifacts.versions(KEY, "a")) == [1]
    await artifacts.delete(KEY, "a")
    assert files(tmp_path) == []


SAVER = """
import sys, pathlib, anyio
from bridge.core.content import Part
from bridge.core.session import SessionKey
from bridge.stores.files import FileArtifactService

async def main():
    artifacts = FileArtifactService(pathlib.Path(sys.argv[1]))
    for _ in range(25):
        print(await artifacts.save(SessionKey("app", "u1", "s1"), "a", Part(text=sys.argv[2])))

anyio.run(main)
"""


def test_processes_that_save_one_name_get_different_versions(tmp_path: Path) -> None:
    command: list[Any] = [sys.executable, "-c", SAVER, tmp_path]
    savers = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for n in range(4)
    ]
    written_lines = [saver.communicate(timeout=PATIENCE)[0].split() for saver in savers]

    versions = sorted(int(line) for lines in written_lines for line in lines)
    assert versions == list(range(1, 101))
