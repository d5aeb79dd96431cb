"""Metrics as Prometheus scrapes them: over real HTTP, read by the parser of its own client."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import anyio
import httpx2
import psutil
import pytest
from mcp import Client
from prometheus_client.parser import text_string_to_metric_families

from bridge.calls.observing import CallRecord, Observers
from bridge.config.load import from_mapping
from bridge.downstream.observed import ObservedHandlers
from bridge.downstream.pages import Load
from bridge.errors import ConfigError
from bridge.gateway.assembly import assemble
from bridge.gateway.metrics import BUCKETS, MOST_TOOLS, OTHERS, Metrics, rendered
from bridge.gateway.observing import METRICS_PATH, observing
from bridge.upstream.status import State, UpstreamStatus
from tests.downstream.fronts import answering, connected, serving, wire
from tests.downstream.offer import Runs, Shelf, everything
from tests.processes import started, unused_port
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
Odd = Callable[..., list[str]]
Figures = Mapping[tuple[str, ...], float]
RECORD = CallRecord(0, 0.02, "local", "", "now", "weather", "get", {}, "ok")
IDLE = Load(0, 0)
STATE = "bridge_upstream_state"
KEY, MODERN = "io.modelcontextprotocol/", "2026-07-28"
LABELS = ("tool", "upstream", "outcome", "state", "decision", "le")


def figures(text: str) -> Figures:
    """Every figure of a page by its name and the values of its labels; none of when it began."""
    return {
        (sample.name, *(sample.labels[key] for key in LABELS if key in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def seen_by(metrics: Metrics, load: Load = IDLE) -> Figures:
    metrics.open(lambda: load)
    return page_of(metrics)


def page_of(*several: Metrics, missing: int | None = None) -> Figures:
    return figures(rendered([one.figures() for one in several], missing)[1].decode())


def calls(found: Figures) -> Figures:
    return {key[1:]: value for key, value in found.items() if key[0] == "bridge_calls_total"}


def test_a_page_that_saw_no_call_shows_what_is_true_now() -> None:
    metrics = Metrics(lambda: [UpstreamStatus("weather", "x", "ready")])

    assert seen_by(metrics, Load(3, 2)) == {
        ("bridge_approvals_total", "asked"): 0,
        ("bridge_approvals_total", "granted"): 0,
        ("bridge_approvals_total", "refused"): 0,
        ("bridge_calls_running",): 3,
        ("bridge_sessions_open",): 2,
        ("bridge_upstream_state", "weather", "idle"): 0,
        ("bridge_upstream_state", "weather", "connecting"): 0,
        ("bridge_upstream_state", "weather", "ready"): 1,
        ("bridge_upstream_state", "weather", "failed"): 0,
    }


def test_calls_are_counted_by_tool_and_how_they_ended() -> None:
    metrics = Metrics(list)

    for record in (RECORD, RECORD, RECORD._replace(kind="unknown"), RECORD._replace(tool="then")):
        metrics.called(record)

    assert calls(seen_by(metrics)) == {
        ("now", "weather", "ok"): 2,
        ("now", "weather", "unknown"): 1,
        ("then", "weather", "ok"): 1,
    }


def test_how_long_calls_took_is_counted_in_buckets() -> None:
    metrics = Metrics(list)

    metrics.called(RECORD)
    metrics.called(RECORD._replace(seconds=2))

    found = seen_by(metrics)
    name = "bridge_call_duration_seconds"
    buckets = {key[-1]: value for key, value in found.items() if key[0] == f"{name}_bucket"}
    assert list(buckets) == [*(str(float(top)) for top in BUCKETS), "+Inf"]
    assert (buckets["0.01"], buckets["0.025"], buckets["1.0"], buckets["2.5"]) == (0, 1, 1, 2)
    assert (found[f"{name}_sum", "now"], found[f"{name}_count", "now"]) == (2.02, 2)


def test_approvals_are_counted() -> None:
    metrics = Metrics(list)

    metrics.called(RECORD._replace(questions=2, approved=True))
    metrics.called(RECORD._replace(questions=1, kind="refused"))

    found = seen_by(metrics)
    decisions = [found["bridge_approvals_total", one] for one in ("asked", "granted", "refused")]
    assert decisions == [3, 1, 1]


def test_a_name_that_is_no_tool_is_no_label() -> None:
    metrics = Metrics(list)

    for number in range(3):
        metrics.called(RECORD._replace(tool=f"made up {number}", upstream="", kind="error"))

    assert calls(seen_by(metrics)) == {("", "", "error"): 3}


def test_tools_that_keep_changing_their_names_are_counted_together_in_the_end() -> None:
    metrics = Metrics(list)

    for number in range(MOST_TOOLS + 3):
        metrics.called(RECORD._replace(tool=f"t{number}"))

    metrics.called(RECORD._replace(tool="t0"))

    found = calls(seen_by(metrics))
    assert len(found) == MOST_TOOLS + 1
    assert (found[OTHERS, OTHERS, "ok"], found["t0", "weather", "ok"]) == (3, 2)


def test_two_gateways_in_one_process_count_for_themselves() -> None:
    one, other = Metrics(list), Metrics(list)

    one.called(RECORD)

    assert calls(seen_by(other)) == {}


def test_what_several_processes_saw_is_added_up() -> None:
    one, other = (Metrics(lambda: [UpstreamStatus("weather", "x", "ready")]) for _ in range(2))
    for metrics in (one, other, other):
        metrics.called(RECORD._replace(questions=1, approved=metrics is one))

    one.open(lambda: Load(3, 2))
    other.open(lambda: Load(1, 0))
    other.called(RECORD._replace(tool="then", seconds=2))

    found = page_of(one, other, missing=1)
    assert calls(found) == {("now", "weather", "ok"): 3, ("then", "weather", "ok"): 1}
    wanted: Figures = {
        ("bridge_approvals_total", "asked"): 3,
        ("bridge_approvals_total", "granted"): 1,
        ("bridge_call_duration_seconds_bucket", "now", "0.01"): 0,
        ("bridge_call_duration_seconds_bucket", "now", "0.025"): 3,
        ("bridge_call_duration_seconds_count", "now"): 3,
        ("bridge_call_duration_seconds_sum", "then"): 2,
        ("bridge_calls_running",): 4,
        ("bridge_sessions_open",): 2,
        ("bridge_upstream_state", "weather", "ready"): 1,
        ("bridge_workers_missing",): 1,
    }
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (("ready", "failed"), "ready"),
        (("failed", "ready"), "ready"),
        (("connecting", "failed"), "connecting"),
        (("idle", "failed"), "failed"),
        (("idle", "idle"), "idle"),
    ],
)
def test_an_upstream_is_in_the_one_state_that_is_furthest(
    states: tuple[State, ...], shown: State
) -> None:
    several = [Metrics(partial(statuses, UpstreamStatus("a", "x", state))) for state in states]

    found = page_of(*several)

    assert [key[2] for key, value in found.items() if key[0] == STATE and value] == [shown]


def statuses(*found: UpstreamStatus) -> tuple[UpstreamStatus, ...]:
    return found


def scraper(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=20)


@asynccontextmanager
async def scraped(runs: Runs, **options: Any) -> AsyncIterator[tuple[str, httpx2.AsyncClient]]:
    """A front with metrics, and somebody who scrapes it."""
    metrics = Metrics(list)
    catalog = await Shelf(*everything(runs)).offered()
    handlers = ObservedHandlers(Observers([metrics]), catalog)
    pages = {METRICS_PATH: metrics}
    async with serving(handlers, pages=pages, **options) as url, scraper(url) as http:
        yield url, http


async def test_a_scrape_shows_calls_sessions_and_approvals() -> None:
    runs = Runs()
    async with scraped(runs) as (url, http):
        yes = answering("accept", approve=True)
        async with (
            connected("http", url, "legacy", yes) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(client.call_tool, "until", {})
            await client.call_tool("buy", {"city": "Oslo"})
            await runs.started.wait()
            answer = await http.get(METRICS_PATH)
            runs.go_on.set()

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = figures(answer.text)
    assert calls(found) == {("buy", "stand-in", "ok"): 1}
    assert (found["bridge_calls_running",], found["bridge_sessions_open",]) == (1, 1)
    assert found["bridge_approvals_total", "granted"] == 1


async def test_metrics_are_behind_the_same_guard_as_everything() -> None:
    async with scraped(Runs(), token="s3cret") as (_, http):
        mine = {"Authorization": "Bearer s3cret"}
        without = await http.get(METRICS_PATH)
        wrong = await http.get(METRICS_PATH, headers={"Authorization": "Bearer other"})
        foreign = await http.get(METRICS_PATH, headers={**mine, "Host": "evil.example.com"})
        posted = await http.post(METRICS_PATH, headers=mine)
        head = await http.head(METRICS_PATH, headers=mine)
        right = await http.get(METRICS_PATH, headers=mine)

    assert [one.status_code for one in (without, wrong, foreign, posted)] == [401, 401, 421, 405]
    assert posted.headers["allow"] == "GET, HEAD"
    assert (head.status_code, head.content) == (200, b"")
    assert (right.status_code, "bridge_calls_running" in right.text) == (200, True)


async def test_without_metrics_there_is_no_such_page() -> None:
    handlers = ObservedHandlers(Observers(), await Shelf().offered())

    async with serving(handlers) as url, scraper(url) as http:
        answer = await http.get(METRICS_PATH)

    assert answer.status_code == 404


async def test_a_gateway_shows_its_calls_and_how_its_upstreams_are(
    tmp_path: Path, odd_server: Odd
) -> None:
    config, port = tmp_path / "bridge.yaml", unused_port()
    upstreams = {
        "odd": {"command": odd_server("noise"), "connect_timeout": "60s"},
        "gone": {"command": ["no-such-program"]},
    }
    config.write_text(json.dumps({"upstreams": upstreams, "serve": {"metrics": True}}), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, port=port, cwd=ROOT):
        url = f"http://127.0.0.1:{port}"
        async with Client(wire("http", f"{url}/mcp"), mode="2026-07-28") as client:
            await client.list_tools()
            await client.call_tool("odd__echo", {"text": "x"})

        async with scraper(url) as http:
            found = figures((await http.get(METRICS_PATH)).text)

    assert calls(found) == {("odd__echo", "odd", "ok"): 1}
    states = {key[1:]: value for key, value in found.items() if key[0] == "bridge_upstream_state"}
    assert {key for key, value in states.items() if value} == {("odd", "ready"), ("gone", "failed")}


@asynccontextmanager
async def door_to(url: str, wanted: int) -> AsyncIterator[tuple[httpx2.AsyncClient, list[int]]]:
    """A connection to that process; and the processes that ran a call on the way to it."""
    ran: list[int] = []
    while True:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            ran.append(await ran_at(http))
            if ran[-1] == wanted:
                yield http, ran
                return


async def ran_at(http: httpx2.AsyncClient) -> int:
    """The process that ran a call."""
    envelope = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": {}}
    params = {"name": "worker", "arguments": {}, "_meta": envelope}
    answer = await http.post(
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "worker",
            "Accept": "application/json, text/event-stream",
        },
    )
    return int(answer.json()["result"]["structuredContent"]["result"])


async def test_with_several_processes_each_shows_the_sums_over_all_that_answer(
    tmp_path: Path, odd_server: Odd
) -> None:
    config, port = tmp_path / "bridge.yaml", unused_port()
    settings = {
        "tools": ["tests.gateway.worker_tools:worker"],
        "upstreams": {"odd": {"command": odd_server("noise"), "connect_timeout": "60s"}},
        "serve": {"metrics": True},
    }
    config.write_text(json.dumps(settings), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]
    one_call = ("worker", "local", "ok")

    async with started([*argv, "--workers", "2"], port=port, cwd=ROOT) as running:
        url = f"http://127.0.0.1:{port}"

        def workers() -> list[int]:
            children = psutil.Process(running.pid).children()
            found = [one.pid for one in children if "bridge.cli.worker" in one.cmdline()]
            return found if len(found) > 1 else []

        one, other = await eventually(workers)
        async with door_to(url, one) as (here, first), door_to(url, other) as (there, more):
            ran = Counter([*first, *more])

            async def is_ready() -> bool:
                found = figures((await here.get(METRICS_PATH)).text)
                return found["bridge_upstream_state", "odd", "ready"] == 1

            await eventually(is_ready)
            pages = [figures((await door.get(METRICS_PATH)).text) for door in (here, there)]
            for page in pages:
                assert calls(page) == {one_call: ran.total()}
                assert page["bridge_call_duration_seconds_count", "worker"] == ran.total()
                assert page["bridge_workers_missing",] == 0
                assert len({key for key in page if key[0] == STATE}) == len(get_args(State))

            os.kill(other, signal.SIGSTOP)
            try:
                page = figures((await here.get(METRICS_PATH)).text)
            finally:
                os.kill(other, signal.SIGCONT)

            assert (calls(page), page["bridge_workers_missing",]) == ({one_call: ran[one]}, 1)
            page = figures((await here.get(METRICS_PATH)).text)
            assert (calls(page), page["bridge_workers_missing",]) == ({one_call: ran.total()}, 0)


TOOLS = {"tools": ["tests.gateway.functions:add"]}


async def test_the_endpoint_cannot_be_where_the_metrics_are() -> None:
    settings = {**TOOLS, "serve": {"metrics": True, "http": {"path": METRICS_PATH}}}

    with pytest.raises(ConfigError, match=r'serve\.http\.path: "/metrics" is where'):
        async with observing(assemble(from_mapping(settings)), "http"):
            pass


async def test_over_stdio_there_is_no_page_and_it_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = from_mapping({**TOOLS, "serve": {"metrics": True}})

    async with observing(assemble(settings), "stdio") as seen:
        assert (bool(seen.observers), dict(seen.pages)) == (False, {})

    [said] = caplog.records
    assert said.getMessage().startswith("serve.metrics has no effect over stdio")


async def test_without_its_package_a_config_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "bridge.gateway.metrics")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    settings = from_mapping({**TOOLS, "serve": {"metrics": True}})

    with pytest.raises(ConfigError) as refused:
        async with observing(assemble(settings), "http"):
            pass

    assert str(refused.value) == 'serve.metrics needs more: pip install "mcp-agent-bridge[gateway]"'
