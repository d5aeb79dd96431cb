"""The audit: a line for each call, whatever happens to the file."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp import Client

from bridge.calls.observing import CallRecord
from bridge.core.confirmation import json_hash
from bridge.errors import ConfigError
from bridge.gateway.audit import LOOK_SECONDS, AuditLog, arguments_hash
from tests.downstream.fronts import wire
from tests.processes import started, unused_port

ROOT = Path(__file__).resolve().parent.parent.parent
Odd = Callable[..., list[str]]
WHEN = 1_800_000_000.25
RECORD = CallRecord(
    WHEN, 0.0123456789, "token:1", "mark", "now", "weather", "get", {"city": "Oslo"}, "ok"
)
LINE = {
    "time": "2027-01-15T08:00:00.250Z",
    "principal": "token:1",
    "session": "mark",
    "tool": "now",
    "upstream": "weather",
    "own_name": "get",
    "outcome": "ok",
    "seconds": 0.012346,
    "arguments_sha256": json_hash({"city": "Oslo"}),
}


@contextmanager
def audit(path: Path, **options: Any) -> Iterator[AuditLog]:
    made = AuditLog(path, **options)
    try:
        yield made
    finally:
        made.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_call_is_one_line_that_holds_no_argument(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    with audit(path) as log:
        log.called(RECORD)
        log.called(RECORD._replace(kind="error", code=-32602, session=""))

    assert lines(path) == [LINE, {**LINE, "session": "", "outcome": "error", "code": -32602}]
    assert "Oslo" not in path.read_text("utf-8")


def test_arguments_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    with audit(path, arguments=True) as log:
        log.called(RECORD)

    assert lines(path) == [{**LINE, "arguments": {"city": "Oslo"}}]


def test_the_time_of_a_call_is_to_the_millisecond(tmp_path: Path) -> None:
    path, moments = tmp_path / "audit.jsonl", (0.0, 0.9999, 1.25, WHEN + 60)

    with audit(path) as log:
        for when in moments:
            log.called(RECORD._replace(when=when))

    assert [line["time"] for line in lines(path)] == [
        "1970-01-01T00:00:00.000Z",
        "1970-01-01T00:00:00.999Z",
        "1970-01-01T00:00:01.250Z",
        "2027-01-15T08:01:00.250Z",
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53 - 1, 2**53, -(2**53), 0])
    | st.floats()
    | st.text()
    | st.text(st.characters(min_codepoint=0, max_codepoint=0x9F))
    | st.sampled_from(["\ud83d", "\x7f", "\u2028", "NaN", '"\\/']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@example({"b": {"z": 1, "a": 2}, "a": [{"y": 1, "x": 2}]})
@given(
    st.dictionaries(
        st.text() | st.sampled_from(["", "\0", "\0a", "a", "é", "𝄞", "\ue000"]), JSON, max_size=6
    )
)
def test_the_hash_of_arguments_is_the_one_that_approvals_name(arguments: dict[str, Any]) -> None:
    try:
        expected = json_hash(arguments)
    except ValueError:
        expected = None

    assert arguments_hash(arguments) == expected


def test_a_yes_is_written_with_the_hash_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    with audit(path) as log:
        log.called(RECORD._replace(questions=2, approved=True, approval="ab12"))
        log.called(RECORD._replace(approved=True))

    assert lines(path) == [
        {**LINE, "questions": 2, "approved": "ab12"},
        {**LINE, "approved": None},
    ]


@pytest.mark.parametrize(
    "arguments",
    [{"half": "\ud83d"}, {"number": float("nan")}, {"line": "one\ntwo\u2028three\x85four"}],
    ids=["half", "number", "line"],
)
def test_no_argument_escapes_the_audit_or_its_line(
    arguments: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"

    with audit(path, arguments=True) as log:
        log.called(RECORD._replace(tool="\ud83d", arguments=arguments))

    [line] = path.read_bytes().removesuffix(b"\n").split(b"\n")
    assert json.loads(line)["tool"] == "\ud83d"
    assert json.loads(line)["arguments"].keys() == arguments.keys()


def test_a_file_that_is_made_is_its_owners_alone_and_one_that_is_there_is_continued(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.jsonl"
    before = os.umask(0)
    try:
        with audit(path) as log:
            log.called(RECORD)
    finally:
        os.umask(before)

    with audit(path) as log:
        log.called(RECORD)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines(path) == [LINE, LINE]


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path, old = tmp_path / "audit.jsonl", tmp_path / "audit.1"

    with audit(path) as log:
        log.called(RECORD)
        path.rename(old)
        log.called(RECORD._replace(tool="soon"))
        log.called(RECORD._replace(tool="later", when=WHEN + LOOK_SECONDS))

    assert [line["tool"] for line in lines(old)] == ["now", "soon"]
    assert [line["tool"] for line in lines(path)] == ["later"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_replaced_is_left_for_the_new_one(tmp_path: Path) -> None:
    path, old = tmp_path / "audit.jsonl", tmp_path / "audit.1"

    with audit(path) as log:
        log.called(RECORD)
        path.rename(old)
        path.touch()
        log.called(RECORD._replace(tool="later", when=WHEN + LOOK_SECONDS))

    assert [line["tool"] for line in lines(path)] == ["later"]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A disk that is full, as far as this process can tell: no file grows beyond `size` bytes."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_full_disk_is_told_of_once_and_what_is_missing_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"

    with audit(path) as log, caplog.at_level(logging.ERROR, "bridge"):
        log.called(RECORD)
        with largest_file(path.stat().st_size + 20):
            for _ in range(3):
                log.called(RECORD)

        log.called(RECORD)

    first, cut, last = path.read_text("utf-8").splitlines()
    assert (json.loads(first), json.loads(last)) == (LINE, LINE)
    assert cut == first[:20]
    said = [one.getMessage() for one in caplog.records]
    assert said == [
        f'the audit "{path}" cannot be written, calls go on: no space for a whole line',
        f'the audit "{path}" is written again; 3 lines are missing',
    ]


@pytest.mark.parametrize("where", ["missing/audit.jsonl", "."])
def test_a_place_that_cannot_be_written_is_a_config_error(where: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'^serve\.audit: ".*" cannot be written \(.+\): name a'):
        AuditLog(tmp_path / where)


def test_what_is_no_file_is_a_config_error_and_makes_nobody_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(ConfigError, match=r"serve\.audit: "):
        AuditLog(pipe)

    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ConfigError, match="no regular file"):
            AuditLog(pipe)
    finally:
        os.close(reader)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_gateway_writes_down_every_call_of_its_clients(
    mode: str, tmp_path: Path, odd_server: Odd
) -> None:
    config, port = tmp_path / "bridge.yaml", unused_port()
    upstreams = {"odd": {"command": odd_server("noise"), "connect_timeout": "60s"}}
    serve = {"audit": "audit.jsonl", "http": {"token": "canary-token"}}
    config.write_text(json.dumps({"upstreams": upstreams, "serve": serve}), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, port=port, cwd=ROOT):
        inner = wire("http", f"http://127.0.0.1:{port}/mcp", "canary-token")
        async with Client(inner, mode=mode) as client:
            await client.call_tool("odd__echo", {"text": "canary-argument"})

    [line] = lines(tmp_path / "audit.jsonl")
    told = {key: line[key] for key in ("tool", "upstream", "own_name", "outcome")}
    assert told == {"tool": "odd__echo", "upstream": "odd", "own_name": "echo", "outcome": "ok"}
    assert line["principal"].startswith("token:")
    assert line["arguments_sha256"] == json_hash({"text": "canary-argument"})
    assert "canary" not in (tmp_path / "audit.jsonl").read_text("utf-8")
