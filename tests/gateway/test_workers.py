"""`bridge serve --workers N`: one address, several processes, whichever a request lands on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from mcp import Client

from tests import nursery
from tests.processes import Running, is_alive, started
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
SERVERS = ROOT / "tests" / "servers"
PLAIN = str(SERVERS / "plain.py")
ASKING = str(SERVERS / "asking.py")
LIBRARY = ("-m", "tests.servers.library", "--era")
TOOLS = ["tests.gateway.worker_tools:worker", "tests.gateway.worker_tools:guarded"]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream"}
KEY = "io.modelcontextprotocol/"
FORM: dict[str, Any] = {"elicitation": {"form": {}}}
QUESTION = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = ["ask", "elicitation/create", QUESTION]
YES = {"action": "accept", "content": {"approve": True}}

COUNT = 2

pytestmark = pytest.mark.timeout(120)


@dataclass(slots=True)
class Fleet:
    """`bridge serve --workers N`, and connections to each of its processes."""

    running: Running
    url: str
    doors: list[httpx2.AsyncClient] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The address without the path."""
        return self.url.removesuffix("/mcp")

    def processes(self) -> set[int]:
        """The ids of the processes that serve, without those that have ended."""
        children = psutil.Process(self.running.pid).children()
        return {one.pid for one in children if "bridge.cli.worker" in " ".join(one.cmdline())}

    def purchases(self) -> str:
        """What was bought, a line each."""
        return Path(self.running.log.name).with_name("purchases").read_text("utf-8")

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.running.pid).children(recursive=True)

    async def at(self, pid: int) -> httpx2.AsyncClient:
        """A connection to this very process."""
        for door in tuple(self.doors):
            try:
                if await served_by(door) == pid:
                    return door
            except httpx2.TransportError:  # the process behind it has died
                self.doors.remove(door)
                await door.aclose()

        for _ in range(200):
            door = httpx2.AsyncClient(base_url=self.root, timeout=60, headers=ACCEPT)
            self.doors.append(door)
            if await served_by(door) == pid:
                return door

        raise AssertionError(f"no connection came to {pid}")

    async def two(self) -> tuple[int, int]:
        """Two of the processes, both of which serve."""
        seen: set[int] = set()

        async def both() -> bool:
            async with httpx2.AsyncClient(base_url=self.root, timeout=60, headers=ACCEPT) as door:
                seen.add(await served_by(door))
                return len(seen) > 1

        await eventually(both)
        one, other, *_ = sorted(seen)
        return one, other


@contextmanager
def serving(place: Path) -> Iterator[Fleet]:
    """Two upstreams, one of which asks and tells, once more for everybody; and two local tools."""
    patient = {"prefix": "", "connect_timeout": "60s", "cwd": str(ROOT)}
    asking = {**patient, "command": nursery.server(ASKING, "legacy")}
    upstreams = {
        "plain": {**patient, "command": nursery.server(PLAIN)},
        "asking": asking,
        "everybodys": {**asking, "session": "shared", "prefix": "all_"},
        "modern": {**patient, "command": nursery.server(*LIBRARY, "modern"), "prefix": "modern_"},
        "legacy": {**patient, "command": nursery.server(*LIBRARY, "legacy"), "prefix": "legacy_"},
    }
    config = place / "bridge.yaml"
    config.write_text(json.dumps({"upstreams": upstreams, "tools": TOOLS}), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", "0"]
    env = {**os.environ, "PURCHASES": str(place / "purchases")}
    with (place / "log").open("w+b") as log:
        process = subprocess.Popen(
            [*argv, "--workers", str(COUNT)], env=env, cwd=ROOT, stdout=log, stderr=log
        )
        running = Running(process, log)
        try:
            yield Fleet(running, _address(running))
        finally:
            process.terminate()
            process.wait(60)


def _address(running: Running) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and running.process.poll() is None:
        found = [line for line in running.output().splitlines() if " serves " in line]
        if found:
            return found[0].split()[-1]

        time.sleep(0.05)

    raise AssertionError(running.output())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with serving(tmp_path_factory.mktemp("workers")) as one:
        yield one


@pytest.fixture
async def many(shared: Fleet) -> AsyncIterator[Fleet]:
    """The processes that all tests share which end none of them."""
    mine = Fleet(shared.running, shared.url)
    for pid in await mine.two():

        async def is_complete(pid: int = pid) -> bool:
            door = await mine.at(pid)
            session = await begun(door)
            listed = await door.post("/mcp", json=request("tools/list"), headers=session)
            names = {one["name"] for one in listed.json()["result"]["tools"]}
            assert (await door.delete("/mcp", headers=session)).status_code == 200
            return names >= {"pid", "do", "all_do", "modern_grow", "legacy_grow"}

        await eventually(is_complete)

    yield mine
    for door in mine.doors:
        await door.aclose()


def request(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(name: str, number: int = 1, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return request("tools/call", number, name=name, arguments=arguments or {}, **more)


async def begun(door: httpx2.AsyncClient, **capabilities: Any) -> dict[str, str]:
    """The headers of a new legacy session."""
    hello = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": {"name": "t"}}
    answer = await door.post("/mcp", json=request("initialize", 0, **hello))
    assert answer.status_code == 200, answer.text
    headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY}
    await tell(door, headers, "notifications/initialized")
    return headers


async def tell(door: httpx2.AsyncClient, session: dict[str, str], method: str, **p: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": p}
    assert (await door.post("/mcp", json=message, headers=session)).status_code == 202


async def modern(
    door: httpx2.AsyncClient, name: str, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    """What a modern client's call is answered with."""
    envelope = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": FORM}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    body = call(name, 1, arguments, _meta=envelope, **more)
    answer = await door.post("/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


async def served_by(door: httpx2.AsyncClient) -> int:
    return int((await modern(door, "worker"))["structuredContent"]["result"])


def events(text: str) -> list[tuple[str, Any]]:
    """Each event's id and data."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if lines.get("data", "").strip():
            found.append((lines.get("id", ""), json.loads(lines["data"])))

    return found


async def next_event(chunks: AsyncIterator[str]) -> tuple[str, Any]:
    """The next event that holds a message."""
    text = ""
    with anyio.fail_after(60):
        async for chunk in chunks:
            text += chunk
            if text.endswith("\n\n") and (found := events(text)):
                return found[0]

    raise AssertionError(f"the stream ended: {text!r}")


async def heard(chunks: AsyncIterator[str], method: str) -> dict[str, Any]:
    """The next message of that method; what a server tells in between is left out."""
    with anyio.fail_after(60):
        async for chunk in chunks:
            for _, message in events(chunk):
                if message.get("method") == method:
                    found: dict[str, Any] = message
                    return found

    raise AssertionError(f"the stream ended without {method}")


async def test_a_session_is_served_wherever_its_requests_land(many: Fleet) -> None:
    seen: set[str] = set()
    upstream: set[str] = set()
    one_each = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(
        base_url=many.root, timeout=60, headers=ACCEPT, limits=one_each
    ) as http:
        session = await begun(http)

        async def all_seen() -> bool:
            for name, found in (("worker", seen), ("pid", upstream)):
                answer = await http.post("/mcp", json=call(name), headers=session)
                assert answer.status_code == 200, answer.text
                found.add(next(iter(answer.json()["result"]["structuredContent"].values())))

            return len(seen) == COUNT

        await eventually(all_seen)

    assert {int(one) for one in seen} == many.processes()
    assert len(upstream) == 1
    lines = [" ".join(one.cmdline()) for one in many.descendants()]
    assert sum(line.endswith("plain.py") and "guard.py" not in line for line in lines) == 1


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_client_works_with_several_processes(many: Fleet, mode: Any) -> None:
    steps: list[float] = []

    async def progress(done: float, total: float | None, text: str | None) -> None:
        steps.append(done)

    for number in range(6):
        async with Client(many.url, mode=mode) as client:
            said = await client.call_tool("echo", {"text": str(number)})
            await client.call_tool("count", {"to": 3}, progress_callback=progress)

        assert said.content[0].text == str(number)
        assert steps.pop() == 3


async def test_what_a_client_answers_reaches_the_process_that_asked(many: Fleet) -> None:
    one, other = await many.two()
    there = await many.at(other)
    session = await begun(there, **FORM)
    here = await many.at(one)
    asking = here.stream("POST", "/mcp", json=call("do", 1, {"do": [ASK]}), headers=session)
    async with asking as response:
        chunks = response.aiter_text()
        _, question = await next_event(chunks)
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
        there = await many.at(other)
        assert (await there.post("/mcp", json=reply, headers=session)).status_code == 202
        _, answer = await next_event(chunks)

    assert question["method"] == "elicitation/create"
    assert answer["result"]["structuredContent"]["replies"] == [{"result": YES}]

    # The upstream session that is this client's alone is one, too, and ends with the client.
    alone = set()
    for pid in (one, other):
        door = await many.at(pid)
        done = await door.post("/mcp", json=call("do", 2), headers=session)
        alone.add(done.json()["result"]["structuredContent"]["pid"])

    [server] = alone
    assert is_alive(server)
    door = await many.at(one)
    assert (await door.delete("/mcp", headers=session)).status_code == 200
    await eventually(lambda: not is_alive(server))


async def test_a_session_that_is_ended_anywhere_is_ended_everywhere(many: Fleet) -> None:
    one, other = await many.two()
    session = await begun(await many.at(one))
    for pid in (one, other):
        door = await many.at(pid)
        assert (await door.post("/mcp", json=request("ping"), headers=session)).status_code == 200

    door = await many.at(other)
    assert (await door.delete("/mcp", headers=session)).status_code == 200
    for pid in (one, other):
        door = await many.at(pid)
        for verb in ("POST", "GET", "DELETE"):
            body = request("ping") if verb == "POST" else None
            after = await door.request(verb, "/mcp", json=body, headers=session)
            assert (pid, verb, after.status_code) == (pid, verb, 404)


async def test_a_call_is_cancelled_from_another_process(many: Fleet) -> None:
    one, other = await many.two()
    session = await begun(await many.at(one))

    async def heard() -> list[str]:
        answer = await modern(await many.at(other), "heard")
        return [part["text"] for part in answer["content"]]

    async def wait() -> None:
        door = await many.at(one)
        await door.post("/mcp", json=call("wait", 7), headers=session)

    async def is_heard(what: str) -> bool:
        return what in await heard()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await eventually(lambda: is_heard("wait began"))
        door = await many.at(other)
        await tell(door, session, "notifications/cancelled", requestId=7)
        await eventually(lambda: is_heard("wait ended"))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_changes_are_told_on_the_one_stream(many: Fleet, era: str) -> None:
    one, other = await many.two()
    session = await begun(await many.at(one))

    others = await begun(await many.at(other))

    async def asked(
        pid: int, method: str, who: dict[str, str] = session, **params: Any
    ) -> dict[str, Any]:
        door = await many.at(pid)
        answer = await door.post("/mcp", json=request(method, **params), headers=who)
        result: dict[str, Any] = answer.json()["result"]
        return result

    async def done(pid: int, tool: str) -> Any:
        answer = await asked(pid, "tools/call", name=f"{era}_{tool}", arguments={})
        return answer.get("structuredContent")

    async def follows_nothing(pid: int) -> bool:
        return await done(pid, "followed") == {}

    listed = [one["uri"] for one in (await asked(other, "resources/list"))["resources"]]
    uri = f"{era}+shared://text" if f"{era}+shared://text" in listed else "shared://text"
    far = await many.at(other)
    async with far.stream("GET", "/mcp", headers=session) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        chunks = stream.aiter_text()
        assert await asked(other, "resources/subscribe", uri=uri) == {}
        assert await asked(other, "resources/subscribe", others, uri=uri) == {}
        if era == "legacy":  # the server is asked once for all
            assert await done(one, "followed") == {"shared://text": 1}

        await done(other, "touch")
        news = await heard(chunks, "notifications/resources/updated")
        assert news["params"]["uri"] == uri
        assert await asked(one, "resources/unsubscribe", uri=uri) == {}
        assert era == "modern" or await done(one, "followed") == {"shared://text": 1}
        assert await asked(one, "resources/unsubscribe", others, uri=uri) == {}
        await eventually(lambda: follows_nothing(other))
        await done(one, "grow")
        await heard(chunks, "notifications/prompts/list_changed")


async def test_a_log_level_holds_wherever_it_was_set(many: Fleet) -> None:
    one, other = await many.two()
    session = await begun(await many.at(one))
    for pid in (one, other):
        door = await many.at(pid)
        assert (await door.post("/mcp", json=request("ping"), headers=session)).status_code == 200

    door = await many.at(other)
    level = request("logging/setLevel", 2, level="warning")
    assert (await door.post("/mcp", json=level, headers=session)).json()["result"] == {}
    logs = [
        ["tell", "notifications/message", {"level": level, "data": level}]
        for level in ("info", "error")
    ]
    for pid in (one, other):
        door = await many.at(pid)
        told = await door.post("/mcp", json=call("all_do", 3, {"do": logs}), headers=session)
        said = [one.get("params", {}).get("data") for _, one in events(told.text)]
        assert said == ["error", None]


async def test_a_response_is_resumed_over_another_process(many: Fleet) -> None:
    one, other = await many.two()
    session = await begun(await many.at(other), **FORM)
    door = await many.at(one)
    asking = door.stream("POST", "/mcp", json=call("do", 1, {"do": [ASK]}), headers=session)
    async with asking as response:
        name, question = await next_event(response.aiter_text())

    reply = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
    door = await many.at(one)
    assert (await door.post("/mcp", json=reply, headers=session)).status_code == 202
    for pid in (other, one):
        door = await many.at(pid)
        rest = await door.get("/mcp", headers={**session, "Last-Event-ID": name})
        [(_, answer)] = events(rest.text)
        assert answer["result"]["structuredContent"]["replies"] == [{"result": YES}]


async def test_half_a_character_goes_between_processes_and_harms_none(many: Fleet) -> None:
    one, other = await many.two()
    hello = {"protocolVersion": LEGACY, "capabilities": FORM, "clientInfo": {"name": "@"}}
    door = await many.at(one)
    answer = await door.post("/mcp", **halved(request("initialize", 0, **hello)))
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY}
    door = await many.at(other)  # which gets a copy of the session, with the client's name
    assert (await door.post("/mcp", json=request("ping"), headers=session)).status_code == 200

    asking = door.stream("POST", "/mcp", json=call("all_do", 1, {"do": [ASK]}), headers=session)
    async with asking as response:
        chunks = response.aiter_text()
        _, question = await next_event(chunks)
        for place in (one, other):
            reply = {"jsonrpc": "2.0", "id": question["id"], "result": {**YES, "note": "@"}}
            sent = await (await many.at(place)).post("/mcp", **halved(reply, session))
            assert sent.status_code == 202

        _, answer = await next_event(chunks)

    [reply] = answer["result"]["structuredContent"]["replies"]
    assert reply == {"result": {**YES, "note": "\ufffd"}}
    for place in (one, other):
        told = await (await many.at(place)).post("/mcp", json=call("all_do", 2), headers=session)
        assert not told.json()["result"].get("isError")


def halved(message: dict[str, Any], headers: Mapping[str, str] = {}) -> dict[str, Any]:
    """A POST of the message, in which "@" stands for half a character."""
    content = json.dumps(message).replace("@", "\\ud800")
    return {"content": content, "headers": {"Content-Type": "application/json", **headers}}


async def test_a_yes_is_good_for_one_run_wherever_it_is_brought(many: Fleet) -> None:
    pids = one, other = await many.two()
    for first, second in ((one, other), (other, one)):
        asked = await modern(await many.at(first), "buy", {"city": f"{first}"})
        brought = {
            "requestState": asked["requestState"],
            "inputResponses": {"approval": YES},
        }
        kinds: list[str] = []

        async def bring(pid: int, city: str, brought: Any = brought, k: Any = kinds) -> None:
            answer = await modern(await many.at(pid), "buy", {"city": city}, **brought)
            k.append(answer["resultType"])

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(bring, second, f"{first}")

        assert sorted(kinds) == ["complete", "input_required", "input_required"]
        await bring(first, f"{first}")
        assert kinds[-1] == "input_required"

        # The mark outside the seal cannot be exchanged for another process's.
        state = asked["requestState"]
        mark = state.removeprefix("bridge1.").partition("-")[0]
        for number in range(1, 4):
            forged = {**brought, "requestState": state.replace(mark, f"w{number}", 1)}
            for pid in pids:
                answer = await modern(await many.at(pid), "buy", {"city": f"{first}"}, **forged)
                assert answer["resultType"] == "input_required"

    assert many.purchases().split() == [str(one), str(other)]


async def test_a_call_that_waits_for_an_answer_gets_it_from_any_process(many: Fleet) -> None:
    one, other = await many.two()
    asked = await modern(await many.at(one), "do", {"do": [ASK]})
    [key] = asked["inputRequests"]
    brought = {"requestState": asked["requestState"], "inputResponses": {key: YES}}
    answer = await modern(await many.at(other), "do", {"do": [ASK]}, **brought)
    assert answer["structuredContent"]["replies"] == [{"result": YES}]


async def test_a_process_that_dies_takes_its_own_sessions_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path) as many:
        one, other = await many.two()
        lost, kept = await begun(await many.at(one)), await begun(await many.at(other))

        async def upstream(pid: int) -> str:
            text: str = (await modern(await many.at(pid), "pid"))["content"][0]["text"]
            assert text.isdigit()
            return text

        before = await eventually(lambda: upstream(other))
        door = await many.at(other)
        for session in (lost, kept):
            assert (
                await door.post("/mcp", json=request("ping"), headers=session)
            ).status_code == 200

        psutil.Process(one).kill()

        async def is_lost() -> bool:
            door = await many.at(other)
            gone = await door.post("/mcp", json=request("ping"), headers=lost)
            going = await door.post("/mcp", json=request("ping"), headers=kept)
            assert going.status_code == 200
            return gone.status_code == 404

        await eventually(is_lost)
        for door in many.doors:
            await door.aclose()

        many.doors.clear()
        await eventually(lambda: len(many.processes() - {one}) == 2)
        [new] = many.processes() - {one, other}
        there: list[int] = []

        async def serves() -> bool:
            async with httpx2.AsyncClient(base_url=many.root, timeout=60, headers=ACCEPT) as door:
                there.append(await served_by(door))
                return new in there

        await eventually(serves)
        door = await many.at(new)
        assert (await door.post("/mcp", json=request("ping"), headers=kept)).status_code == 200
        assert (await door.post("/mcp", json=request("ping"), headers=lost)).status_code == 404
        assert await eventually(lambda: upstream(new)) == before
        for door in many.doors:
            await door.aclose()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_nothing_is_left_when_it_ends(tmp_path: Path, how: signal.Signals) -> None:
    with serving(tmp_path) as many:
        left = many.descendants()
        assert len(left) >= 4
        sockets = {Path(one.laddr) for one in left_sockets(many.running.pid)}
        directories = {path.parent for path in sockets}
        many.running.process.send_signal(how)
        code = await anyio.to_thread.run_sync(many.running.process.wait)

        expected = {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}
        assert code == expected[how], many.running.output()
        await eventually(lambda: not [one for one in left if is_alive(one.pid)])
        assert directories
        await eventually(lambda: not [one for one in directories if one.exists()])
        assert many.running.output().count(" serves ") == 1


def left_sockets(pid: int) -> list[Any]:
    """The Unix sockets that a process listens on."""
    found = psutil.Process(pid).net_connections("unix")
    return [one for one in found if str(one.laddr).endswith(".sock")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--workers", "0"], "--workers: 0 processes cannot serve: write 1 or more"),
        (["--workers", "2", "--transport", "stdio"], "over stdio one process serves all"),
        (["--workers", "2", "--transport", "sse"], "over sse one process serves all"),
    ],
)
async def test_what_several_processes_cannot_do_is_refused(
    tmp_path: Path, more: list[str], said: str
) -> None:
    config = tmp_path / "bridge.yaml"
    config.write_text(
        json.dumps({"upstreams": {"plain": {"command": nursery.server(PLAIN)}}}), "utf-8"
    )
    argv = [sys.executable, "-m", "bridge", "serve", str(config), *more]
    async with started(argv, cwd=ROOT) as running:
        code = await anyio.to_thread.run_sync(running.process.wait)
        assert (code, said in running.output()) == (2, True), running.output()


async def test_a_port_that_another_bridge_serves_is_taken(many: Fleet, tmp_path: Path) -> None:
    port = many.url.rpartition(":")[2].partition("/")[0]
    config = tmp_path / "bridge.yaml"
    config.write_text(
        json.dumps({"upstreams": {"plain": {"command": nursery.server(PLAIN)}}}), "utf-8"
    )
    argv = [sys.executable, "-m", "bridge", "serve", str(config)]
    more = ["--workers", "2", "--port", port]
    async with started([*argv, *more], cwd=ROOT) as second:
        code = await anyio.to_thread.run_sync(second.process.wait)
        assert (code, "is in use" in second.output()) == (2, True), second.output()
