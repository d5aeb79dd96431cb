"""The channel to a child process: what it brings, what it survives, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest

from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    Limits,
    Options,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.command import Command
from bridge.upstream.stdio import StdioChannel, open_stdio
from tests.leftovers import held, no_more_than
from tests.processes import is_alive, started
from tests.waiting import eventually

Odd = Callable[..., list[str]]

HASTE = Limits(close_grace=0.2)
PATIENT = Options(timeout=60)


def nothing(method: str, params: dict[str, Any]) -> None:
    """Ignore a notification."""


def opened(argv: list[str], limits: Limits = HASTE, **more: Any) -> Any:
    return open_stdio(Command(tuple(argv), **more), nothing, limits)


async def odd(channel: StdioChannel, options: Options = PATIENT, **args: Any) -> dict[str, Any]:
    return await channel.request("tools/call", {"name": "odd", "arguments": args}, options)


async def echo(channel: StdioChannel, text: str) -> str:
    params = {"name": "echo", "arguments": {"text": text}}
    answer = await channel.request("tools/call", params, PATIENT)
    return str(answer["structuredContent"]["text"])


def journal_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_stray_text_and_broken_bytes_do_not_hide_the_answer(odd_server: Odd) -> None:
    async with opened(odd_server("noise")) as channel:
        answer = await odd(channel)

        assert answer["content"] == [{"type": "text", "text": "after the noise"}]
        assert await echo(channel, "still here") == "still here"


async def test_line_over_the_limit_ends_the_server_at_once(odd_server: Odd) -> None:
    limits = Limits(message_bytes=1024 * 1024, close_grace=0.2)
    async with opened(odd_server("oversized", "--size", "8000000"), limits) as channel:
        with pytest.raises(ChannelError, match="a line of more than 1048576 bytes") as raised:
            await odd(channel)

        assert raised.value.sent
        assert not channel.is_open


async def test_line_under_the_limit_arrives_whole(odd_server: Odd) -> None:
    async with opened(odd_server("oversized", "--size", "8000000")) as channel:
        answer = await odd(channel)

        assert len(answer["content"][0]["text"]) == 8_000_000


@pytest.mark.parametrize("way", ["half", "dies"])
async def test_server_that_ends_mid_call_fails_the_call_at_once(odd_server: Odd, way: str) -> None:
    async with opened(odd_server(way)) as channel:
        with pytest.raises(ChannelError, match="closed its output") as raised:
            await odd(channel)

        assert raised.value.sent
        with pytest.raises(ChannelError) as later:
            await odd(channel)

        assert not later.value.sent

    if way == "dies":
        assert "exit code 3" in channel.closed_because
        assert channel.closed_because.endswith("it last said: odd: out of memory")


async def test_all_waiting_calls_fail_together_when_the_server_ends(odd_server: Odd) -> None:
    failed: list[ChannelError] = []

    async def wait_for_ever(channel: StdioChannel) -> None:
        with pytest.raises(ChannelError) as raised:
            await odd(channel, way="silent")

        failed.append(raised.value)

    async with opened(odd_server("silent")) as channel, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(wait_for_ever, channel)

        await eventually(lambda: len(channel._correlator) == 20)
        with pytest.raises(ChannelError):
            await odd(channel, way="dies")

    assert len(failed) == 20
    assert all(error.sent for error in failed)


async def test_request_without_answer_times_out_and_the_server_is_told(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with opened(odd_server("silent", "--journal", str(journal))) as channel:
        with pytest.raises(RequestTimeout) as raised:
            await odd(channel, Options(timeout=0.2))

        assert raised.value.sent
        await echo(channel, "next")

    cancelled = [m for m in journal_of(journal) if m.get("method") == "notifications/cancelled"]
    assert [m["params"] for m in cancelled] == [{"requestId": 1, "reason": "timed out"}]


async def test_cancelled_caller_tells_the_server_and_the_next_call_works(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with opened(odd_server("silent", "--journal", str(journal))) as channel:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(odd, channel)
            await eventually(lambda: len(channel._correlator) == 1)
            tasks.cancel_scope.cancel()

        assert await echo(channel, "next") == "next"

    cancelled = [m for m in journal_of(journal) if m.get("method") == "notifications/cancelled"]
    assert [m["params"]["requestId"] for m in cancelled] == [1]


async def test_answer_too_deep_to_read_fails_its_own_call_only(odd_server: Odd) -> None:
    async with opened(odd_server("deep")) as channel:
        with pytest.raises(ChannelError, match="not JSON that can be read"):
            await odd(channel)

        assert await echo(channel, "next") == "next"


async def test_wrong_and_repeated_answers_reach_nobody_else(odd_server: Odd) -> None:
    async with opened(odd_server("wrong-id")) as channel:
        assert (await odd(channel))["content"][0]["text"] == "right"
        assert (await odd(channel, way="twice"))["content"][0]["text"] == "first"
        assert await echo(channel, "next") == "next"
        assert channel._correlator.late_answers >= 5


async def test_stderr_is_drained_and_kept_within_bounds(odd_server: Odd) -> None:
    limits = Limits(stderr_lines=5, stderr_line_bytes=100, close_grace=0.2)
    async with opened(odd_server("flood", "--size", "4000000"), limits) as channel:
        assert (await odd(channel))["content"][0]["text"] == "flooded"

    assert 0 < len(channel.stderr) <= 5
    assert max(len(line) for line in channel.stderr) <= 100


async def test_configured_secret_is_not_in_what_the_server_is_said_to_have_said() -> None:
    script = "import os, sys; sys.stderr.write('bad token ' + os.environ['TOKEN']); sys.exit(1)"
    async with opened([sys.executable, "-c", script], env={"TOKEN": "s3cr3t-value"}) as channel:
        await channel.wait_closed()

    assert channel.closed_because.endswith("it last said: bad token ***")


@pytest.mark.parametrize("length", [12, 150, 200])
@pytest.mark.parametrize("before", [0, 90, 99, 100, 190])
async def test_no_part_of_a_secret_is_shown_where_a_line_is_cut(before: int, length: int) -> None:
    secret, limits = ("s3cr3t-" * length)[:length], Limits(stderr_line_bytes=100, close_grace=0.2)
    line = f"'.' * {before} + os.environ['TOKEN'] * 900 + chr(10)"
    script = f"import os, sys; sys.stderr.write({line}); sys.stdout.write({line}); sys.exit(1)"
    argv = [sys.executable, "-c", script]
    async with opened(argv, limits, env={"TOKEN": secret}) as channel:
        await channel.wait_closed()
        await eventually(lambda: channel.stderr)

    assert secret[:6] not in channel.closed_because
    assert len(channel.stderr[0]) <= 100


async def test_error_answer_keeps_code_message_and_data(odd_server: Odd) -> None:
    async with opened(odd_server("noise")) as channel:
        with pytest.raises(RpcError) as raised:
            await channel.request("no/such", {}, PATIENT)

    assert raised.value.error == {"code": -32601, "message": "Method not found"}


async def test_more_requests_than_the_bound_are_refused_and_harm_nothing(odd_server: Odd) -> None:
    limits = Limits(in_flight=2, close_grace=0.2)
    async with opened(odd_server("silent"), limits) as channel:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(odd, channel)
            tasks.start_soon(odd, channel)
            await eventually(lambda: len(channel._correlator) == 2)
            with pytest.raises(ChannelBusy):
                await echo(channel, "one too many")

            tasks.cancel_scope.cancel()

        assert await echo(channel, "next") == "next"


async def test_child_sees_the_inherited_few_and_the_configured_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    seen = tmp_path / "seen"
    script = (
        "import json, os; fds = sorted(map(int, os.listdir('/proc/self/fd')))[:-1]; "
        f"open({str(seen)!r}, 'w').write(json.dumps([dict(os.environ), fds, os.getcwd()]))"
    )
    command = {"env": {"UNITS": "metric"}, "cwd": tmp_path}
    async with opened([sys.executable, "-c", script], **command) as channel:
        await channel.wait_closed()

    environment, fds, cwd = json.loads(seen.read_text())
    assert environment["UNITS"] == "metric"
    assert environment["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    assert "canary" not in seen.read_text()
    assert fds == [0, 1, 2]
    assert cwd == str(tmp_path)


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-file"])
async def test_missing_program_is_named_and_was_not_run(program: str) -> None:
    with pytest.raises(ChannelError, match=f'command not found: "{program}"') as raised:
        async with opened([program]):
            pass

    assert not raised.value.sent


async def test_missing_working_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match="is not a directory"):
        async with opened(["true"], cwd=tmp_path / "nowhere"):
            pass


async def test_server_that_ignores_every_request_to_end_is_ended_with_its_descendants(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with opened(odd_server("stubborn", "--journal", str(journal))) as channel:
        await channel.request("tools/list", {}, PATIENT)
        grandchild = journal_of(journal)[0]["grandchild"]
        server = psutil.Process(grandchild).ppid()
        assert is_alive(grandchild)

    assert not is_alive(grandchild)
    assert not is_alive(server)


async def test_server_that_ends_by_itself_leaves_no_orphan(odd_server: Odd) -> None:
    script = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '600'], start_new_session=True); "
        "print(p.pid, file=sys.stderr)"
    )
    async with opened([sys.executable, "-c", script]) as channel:
        await channel.wait_closed()

    orphan = int(channel.stderr[0])
    assert not is_alive(orphan)


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux; elsewhere EOF ends it")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_survives_the_sudden_end_of_its_owner(
    odd_server: Odd, tmp_path: Path, ending: signal.Signals
) -> None:
    journal = tmp_path / "journal"
    argv = odd_server("stubborn", "--journal", str(journal))
    script = (
        "import anyio\n"
        "from bridge.upstream.channel import Limits\n"
        "from bridge.upstream.command import Command\n"
        "from bridge.upstream.stdio import open_stdio\n"
        "async def main():\n"
        f"    opened = open_stdio(Command({tuple(argv)!r}), print, Limits())\n"
        "    async with opened as channel:\n"
        "        await channel.request('tools/list', {})\n"
        "        print('up', flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    async with started([sys.executable, "-c", script]) as running:
        await eventually(lambda: "up" in running.output())
        grandchild = journal_of(journal)[0]["grandchild"]
        family = [grandchild, *(p.pid for p in psutil.Process(running.pid).children(True))]
        assert len(family) >= 3
        os.kill(running.pid, ending)
        await eventually(lambda: not any(is_alive(pid) for pid in family))


async def test_start_that_is_cancelled_leaves_nothing(odd_server: Odd) -> None:
    before = held()

    async def start() -> None:
        async with opened(odd_server("noise")):
            pass

    for steps in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()

            tasks.cancel_scope.cancel()

    await no_more_than(before)


async def test_many_cycles_leave_no_task_descriptor_or_child(odd_server: Odd) -> None:
    async def cycle() -> None:
        async with opened(odd_server("noise")) as channel:
            await echo(channel, "x")

    await cycle()
    before, threads = held(), threading.active_count()  # asyncio may watch each child from one
    for _ in range(5):
        await cycle()

    await no_more_than(before)
    await eventually(lambda: threading.active_count() <= threads)
