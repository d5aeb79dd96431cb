"""Large results through a whole gateway: shown in part, read in ranges, lost in no part."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from bridge.config.load import load
from bridge.gateway.serving import serve_settings
from tests import nursery
from tests.downstream.fronts import listening
from tests.gateway.functions import lines
from tests.processes import started
from tests.servers.large import LINES, PICTURE, RESULTS, ROWS, WIDE
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = str(ROOT / "tests" / "servers" / "large.py")
LOCAL = "tests.gateway.functions:lines"
ERAS = ("legacy", "modern")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
KEY = "io.modelcontextprotocol/"
SAID_MODERN = {
    f"{KEY}protocolVersion": MODERN,
    f"{KEY}clientInfo": {"name": "t", "version": "1"},
    f"{KEY}clientCapabilities": {},
}
MIB = 1024 * 1024


class Door:
    """One client of an HTTP front, in one era; gives every result as it came over the wire."""

    def __init__(self, http: httpx2.AsyncClient, era: str) -> None:
        self.http = http
        self.era = era
        self.headers: dict[str, str] = {}

    async def begin(self) -> Door:
        """Shake hands, in the era that has that."""
        if self.era == "legacy":
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t"}}
            answer = await self._post("initialize", hello)
            self.capabilities = answer.json()["result"]["capabilities"]
            self.headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
            self.headers["MCP-Protocol-Version"] = LEGACY
        else:
            self.capabilities = (await self.ask("server/discover"))["result"]["capabilities"]

        return self

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole response to a request."""
        if self.era == "modern":
            named = params.get("uri") or params.get("name")
            self.headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            self.headers |= {"Mcp-Name": named} if named else {}
            params["_meta"] = SAID_MODERN

        response: dict[str, Any] = (await self._post(method, params)).json()
        return response

    async def call(self, tool: str) -> dict[str, Any]:
        """A tool's result."""
        result: dict[str, Any] = (await self.ask("tools/call", name=tool))["result"]
        return result

    async def read(self, uri: str) -> list[dict[str, Any]]:
        """What a resource holds."""
        response = await self.ask("resources/read", uri=uri)
        contents: list[dict[str, Any]] = response["result"]["contents"]
        return contents

    async def whole(self, uri: str) -> str:
        """A resource, read as the notes in it say."""
        text, following = "", [{"uri": uri}]
        while following:
            part, *following = await self.read(following[0]["uri"])
            assert len(part["text"].encode()) <= MIB
            text += part["text"]

        return text

    async def _post(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/mcp", json=message, headers=self.headers)


def config(place: Path, era: str, **more: Any) -> Path:
    path = place / "bridge.yaml"
    large = {"command": nursery.server(SERVER, era), "prefix": "", "connect_timeout": "60s"}
    results = {"directory": str(place), **more.pop("results", {})}
    settings = {"upstreams": {"large": large}, **more, "results": results}
    path.write_text(json.dumps(settings), "utf-8")
    return path


@asynccontextmanager
async def served(place: Path, era: str, **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A gateway over the server of large answers, and a connection to its HTTP front."""
    settings = load([config(place, era, **more)])
    accept = {"Accept": "application/json, text/event-stream"}
    async with listening(partial(serve_settings, settings, "http", None, 0)) as url:
        root = url.removesuffix("/mcp")
        async with httpx2.AsyncClient(base_url=root, timeout=60, headers=accept) as http:
            yield http


def directories(place: Path) -> list[Path]:
    return list(place.glob("bridge-results-*"))


def without_era(result: dict[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in result.get("_meta", {}).items() if not k.startswith(KEY)}
    return {k: v for k, v in result.items() if k != "resultType"} | {"_meta": meta}


def shown(text: str, uri: str, most: int = 4096, span: str = "60 min") -> str:
    return (
        f"{text[:most]}\n\n[bridge: this is cut. Characters 0 to {most} of {len(text)} are shown. "
        f"The whole, {len(text)} characters, is kept for {span} as the resource {uri} ; read on "
        f"with {uri}?offset={most}&length=65536 (in characters).]"
    )


@pytest.mark.parametrize("back", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_large_text_is_shown_in_part_and_read_whole(
    tmp_path: Path, era: str, back: str
) -> None:
    async with served(tmp_path, back) as http:
        door = await Door(http, era).begin()
        result = without_era(await door.call("lines"))
        uri = result["_meta"]["bridge/kept"]["/content/0/text"]
        whole = await door.whole(uri)
        part = await door.read(f"{uri}?offset=1048570&length=20")

    link = {
        "type": "resource_link",
        "uri": uri,
        "name": "lines-result",
        "description": "The whole: 5242880 characters; ?offset=…&length=… for less",
        "mimeType": "text/plain",
        "size": 5 * MIB,
    }
    assert result == {
        "content": [{"type": "text", "text": shown(LINES, uri)}, link],
        "isError": True,
        "unknown": {"kept": [1]},
        "_meta": {"example.com/trace": "t-1", "bridge/kept": {"/content/0/text": uri}},
    }
    assert whole == LINES
    span = {"offset": 1048570, "length": 20, "total": 5 * MIB}
    assert part == [
        {
            "uri": f"{uri}?offset=1048570&length=20",
            "mimeType": "text/plain",
            "text": LINES[1048570:1048590],
            "_meta": {"bridge/range": span},
        }
    ]


async def test_characters_of_any_width_are_read_at_any_place(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, "modern").begin()
        result = await door.call("wide")
        uri = result["content"][1]["uri"]
        whole = await door.whole(uri)
        [part] = await door.read(f"{uri}?length=9&offset=777777")
        [end] = await door.read(f"{uri}?offset={len(WIDE)}")

    assert whole == WIDE
    assert part["text"] == WIDE[777777:777786]
    assert end["text"] == ""


@pytest.mark.parametrize("era", ERAS)
async def test_small_results_and_pictures_are_untouched(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, era).begin()
        small, picture = await door.call("small"), await door.call("picture")
        both = await door.call("both")

    assert without_era(small) == {**RESULTS["small"], "_meta": {}}
    assert without_era(picture) == {**RESULTS["picture"], "_meta": {}}
    [before, image, cut, link, after] = both["content"]
    assert (before["text"], image, after["text"]) == ("before", PICTURE, "after")
    assert cut["text"] == shown(LINES, link["uri"])
    assert both["_meta"]["bridge/kept"] == {"/content/2/text": link["uri"]}


async def test_structured_content_that_was_promised_keeps_its_shape(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, "modern").begin()
        result, rows = await door.call("promised"), await door.call("promised_rows")
        kept = result["_meta"]["bridge/kept"]
        text = await door.whole(kept["/content/0/text"])
        structured = json.loads(await door.whole(kept["/structuredContent"]))

    note = "\n\n[bridge: this is cut. The whole structured content is JSON: "
    said = f"{note}{kept['/structuredContent']}]"
    assert result["structuredContent"] == {"result": LINES[:4096] + said}
    assert (text, structured) == (LINES, {"result": LINES})
    assert without_era(rows) == {**RESULTS["promised_rows"], "_meta": {}}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stock_client_takes_what_is_cut(tmp_path: Path, mode: Any) -> None:
    async with (
        served(tmp_path, "legacy") as http,
        Client(f"{http.base_url}/mcp".replace("//mcp", "/mcp"), mode=mode) as client,
    ):
        result = await client.call_tool("promised", {})
        link = result.content[1]
        read = await client.read_resource(f"{link.uri}?offset=8&length=8")  # type: ignore[union-attr]

    assert result.structured_content is not None
    assert result.structured_content["result"].startswith(LINES[:4096])
    assert read.contents[0].text == LINES[8:16]  # type: ignore[union-attr]


async def test_structured_content_that_was_not_promised_is_left_out(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, "modern").begin()
        result = await door.call("rows")
        kept = result["_meta"]["bridge/kept"]
        whole = await door.whole(kept["/structuredContent"])

    [preview, link] = result["content"]
    assert "structuredContent" not in result
    assert json.loads(whole) == {"rows": ROWS}
    assert preview["text"] == shown(whole, link["uri"])
    assert (link["mimeType"], link["uri"]) == ("application/json", kept["/structuredContent"])


async def test_many_small_texts_go_out_as_one(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, "modern").begin()
        result = await door.call("many")
        whole = await door.whole(result["_meta"]["bridge/kept"]["/content"])

    picture, *rest = RESULTS["many"]["content"]
    assert [one["type"] for one in result["content"]] == ["image", "text", "resource_link"]
    assert result["content"][0] == picture
    assert json.loads(whole) == {"content": rest}
    assert result["content"][1]["text"].startswith('3000 blocks, as JSON:\n{"content":[')


@pytest.mark.parametrize("era", ERAS)
async def test_large_resource_is_cut_and_an_app_is_not(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, era).begin()
        [cut] = await door.read("big://lines")
        [app] = await door.read("ui://app")
        response = await door.ask("resources/read", uri="big://lines")
        kept = response["result"]["_meta"]["bridge/kept"]["/contents/0/text"]
        whole = await door.whole(kept)

    assert cut["uri"] == "big://lines"
    assert cut["text"].startswith(f"{LINES[:4096]}\n\n[bridge: this is cut. Characters 0 to 4096 ")
    assert whole == LINES
    assert app == {"uri": "ui://app", "text": f"<html>{LINES}</html>"}


@pytest.mark.parametrize("era", ERAS)
async def test_how_to_read_is_declared_and_listed(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, era).begin()
        listed = (await door.ask("resources/templates/list"))["result"]["resourceTemplates"]
        resources = (await door.ask("resources/list"))["result"]["resources"]

    assert "resources" in door.capabilities
    assert [one["uriTemplate"] for one in listed] == ["bridge://results/{id}{?offset,length}"]
    assert [one["uri"] for one in resources] == ["big://lines", "big://small", "ui://app"]


@pytest.mark.parametrize("era", ERAS)
async def test_where_no_server_has_resources_only_reading_is_declared(
    tmp_path: Path, era: str
) -> None:
    async with served(tmp_path, "modern", upstreams={}, tools=[LOCAL]) as http:
        door = await Door(http, era).begin()
        listed = await door.ask("resources/list")
        result = await door.call("lines")
        [kept] = set(result["_meta"]["bridge/kept"].values())
        whole = await door.whole(kept)
        followed = await door.ask("resources/subscribe", uri=kept)

    assert door.capabilities == {"tools": {"listChanged": True}, "resources": {}}
    assert listed["result"]["resources"] == []
    assert json.loads(whole) == {"result": lines()}
    assert followed["error"]["code"] == -32601


@pytest.mark.parametrize("era", ERAS)
async def test_no_resources_are_declared_where_nothing_is_kept_and_no_server_has_any(
    tmp_path: Path, era: str
) -> None:
    whole = {"max_size": "off"}
    async with served(tmp_path, era, upstreams={}, tools=[LOCAL], results=whole) as http:
        door = await Door(http, era).begin()
        answers = [
            await door.ask("resources/list"),
            await door.ask("resources/read", uri="bridge://results/x"),
            await door.ask("resources/subscribe", uri="bridge://results/x"),
        ]

    assert door.capabilities == {"tools": {"listChanged": True}}
    assert [answer["error"]["code"] for answer in answers] == [-32601] * 3


async def test_others_the_expired_and_the_unknown_read_the_same(tmp_path: Path) -> None:
    async with served(tmp_path, "modern", results={"total": "6MiB", "keep": "5m"}) as http:
        one, other = await Door(http, "legacy").begin(), await Door(http, "legacy").begin()
        first = (await one.call("lines"))["content"][1]["uri"]
        anothers = await other.ask("resources/read", uri=first)
        mine = await one.whole(first)
        second = (await one.call("lines"))["content"][1]["uri"]  # there is room for one alone
        gone = await one.ask("resources/read", uri=first)
        never = await one.ask("resources/read", uri="bridge://results/" + "x" * 24)
        modern = await (await Door(http, "modern").begin()).ask("resources/read", uri=second)
        broken = await one.ask("resources/read", uri=f"{second}?offset=x")
        behind = await one.ask("resources/read", uri=f"{second}?offset=9999999")

    def refused(uri: str, code: int) -> dict[str, Any]:
        text = (
            f'resource "{uri}" not found: a large result is kept for 5 min, for the client that '
            "got it, and less long where newer ones need the room. Make the call again"
        )
        return {"code": code, "message": text, "data": {"uri": uri}}

    assert mine == LINES
    assert anothers["error"] == refused(first, -32002)
    assert gone["error"] == refused(first, -32002)
    assert never["error"] == refused("bridge://results/" + "x" * 24, -32002)
    assert modern["error"] == refused(second, -32602)
    assert (broken["error"]["code"], behind["error"]["code"]) == (-32602, -32602)


async def test_results_go_with_their_session(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as http:
        door = await Door(http, "legacy").begin()
        await door.call("lines")
        [directory] = directories(tmp_path)
        kept = list(directory.iterdir())
        await http.delete("/mcp", headers=door.headers)
        left = list(directory.iterdir())
        modes = (directory.stat().st_mode & 0o777,)

    assert (len(kept), left, modes) == (1, [], (0o700,))
    assert directories(tmp_path) == []


async def test_nothing_is_done_where_it_is_off(tmp_path: Path) -> None:
    async with served(tmp_path, "modern", results={"max_size": "off"}) as http:
        door = await Door(http, "modern").begin()
        result = await door.call("promised")
        listed = (await door.ask("resources/templates/list"))["result"]["resourceTemplates"]

    assert without_era(result) == {**RESULTS["promised"], "_meta": {}}
    assert listed == []


async def test_any_of_several_processes_reads_what_one_has_kept(tmp_path: Path) -> None:
    path = config(tmp_path, "modern")
    argv = [sys.executable, "-m", "bridge", "serve", str(path), "--port", "0", "--workers", "2"]
    async with started(argv, cwd=ROOT) as running:

        def address() -> str:
            found = [line for line in running.output().splitlines() if " serves " in line]
            return found[0].split()[-1] if found else ""

        url = await eventually(address, 120)
        uri, read = "", set[str]()
        for _ in range(20):  # each connection lands on one of them
            accept = {"Accept": "application/json, text/event-stream"}
            root = url.removesuffix("/mcp")
            async with httpx2.AsyncClient(base_url=root, timeout=60, headers=accept) as http:
                door = await Door(http, "modern").begin()
                uri = uri or (await door.call("lines"))["content"][1]["uri"]
                read.add((await door.read(uri))[0]["text"])

    assert read == {LINES[: MIB - 1024]}
    assert directories(tmp_path) == []
