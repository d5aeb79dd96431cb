"""The demo server, as the SDK's own client meets it, in both eras."""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.sse import sse_client

from bridge.demo.server import demo_server
from tests.clients import ERAS, Mode, over_stdio
from tests.processes import started

pytestmark = pytest.mark.embedding  # the demo comes with the base install

TOOLS = ["buy_report", "forecast", "get_weather", "radar", "storm_alert"]


@pytest.fixture(params=ERAS)
def mode(request: pytest.FixtureRequest) -> Mode:
    """How the client opens the conversation: each era once."""
    chosen: Mode = request.param
    return chosen


def in_process(mode: Mode) -> Client:
    return Client(demo_server("metric", pace=0), mode=mode)


async def call(client: Client, name: str, **args: Any) -> dict[str, Any]:
    result = await client.call_tool(name, args)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_the_demo_offers_five_tools_and_is_quiet_on_stderr(
    demo_command: list[str], mode: Mode, tmp_path: Path
) -> None:
    async with over_stdio(demo_command, mode, stderr=tmp_path / "stderr") as client:
        version = client.protocol_version
        listed = await client.list_tools()
        await call(client, "get_weather", city="Tokyo")
        await call(client, "storm_alert", city="Tokyo")
        await call(client, "get_weather")

    assert version == ERAS[mode]
    assert sorted(tool.name for tool in listed.tools) == TOOLS
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.parametrize(
    ("env", "values"),
    [
        ({}, {"units": "metric", "temperature": 21.0, "wind": 9.0}),
        ({"UNITS": "imperial"}, {"units": "imperial", "temperature": 69.8, "wind": 5.6}),
    ],
)
async def test_the_weather_is_structured_in_the_units_asked_for(
    demo_command: list[str], env: dict[str, str], values: dict[str, Any]
) -> None:
    async with over_stdio(demo_command, env=env) as client:
        answer = await call(client, "get_weather", city="tokyo")

    same = {"city": "Tokyo", "humidity": 66, "condition": "clear"}
    assert answer["structuredContent"] == {**same, **values}


async def test_a_forecast_reports_its_progress_day_by_day(
    demo_command: list[str], mode: Mode
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with over_stdio(demo_command, mode, env={"PACE": "0"}) as client:
        args = {"city": "Lima", "days": 3}
        answer = await client.call_tool("forecast", args, progress_callback=hear)

    assert heard == [(1, 3, "day 1 of 3"), (2, 3, "day 2 of 3"), (3, 3, "day 3 of 3")]
    assert answer.structured_content is not None
    assert [day["day"] for day in answer.structured_content["days"]] == [1, 2, 3]


async def test_every_structured_answer_fits_the_schema_that_was_announced(mode: Mode) -> None:
    checked = []
    async with in_process(mode) as client:
        for tool in (await client.list_tools()).tools:
            if tool.output_schema is not None:
                answer = await call(client, tool.name, city="Lima")
                Draft202012Validator(tool.output_schema).validate(answer["structuredContent"])
                checked.append(tool.name)

    assert sorted(checked) == ["buy_report", "forecast", "get_weather"]


async def test_the_radar_is_a_picture_that_opens(mode: Mode) -> None:
    async with in_process(mode) as client:
        answer = await call(client, "radar", city="Reykjavik")

    caption, picture = answer["content"]
    assert caption == {"type": "text", "text": "Rain around Reykjavik now."}
    assert picture["mimeType"] == "image/png"
    rows = read_png(base64.b64decode(picture["data"]))
    assert len(rows) == 160
    assert len({pixel for row in rows for pixel in row}) > 4, "an almost empty picture"


async def test_every_report_bought_has_a_receipt_of_its_own(mode: Mode) -> None:
    async with in_process(mode) as client:
        receipts = [
            (await call(client, "buy_report", city="Lima"))["structuredContent"]["receipt"]
            for _ in range(2)
        ]

    assert receipts == ["R-0001", "R-0002"]


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("storm_alert", {"city": "Lima"}, "the storm service has no data for Lima; try again"),
        ("get_weather", {"city": "Atlantis"}, "no weather for 'Atlantis'; known cities: Berlin,"),
        ("radar", {"city": "Atlantis"}, "no weather for 'Atlantis'; known cities: Berlin,"),
        ("forecast", {"city": "Lima", "days": 8}, "less than or equal to 7"),
        ("buy_report", {}, "Field required"),
    ],
)
async def test_a_call_that_fails_says_why(
    mode: Mode, name: str, args: dict[str, Any], reason: str
) -> None:
    async with in_process(mode) as client:
        answer = await call(client, name, **args)

    assert answer["isError"] is True
    assert reason in answer["content"][0]["text"]


async def test_the_demo_listens_for_streamable_http(
    demo_command: list[str], mode: Mode, free_port: Callable[[], int]
) -> None:
    port = free_port()
    command = [*demo_command, "--transport", "http", f"--port={port}"]
    async with (
        started(command, port=port),
        Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client,
    ):
        answer = await call(client, "get_weather", city="Lima")
        version = client.protocol_version

    assert version == ERAS[mode]
    assert answer["structuredContent"]["condition"] == "fog"


async def test_the_demo_listens_for_http_with_sse(
    demo_command: list[str], mode: Mode, free_port: Callable[[], int]
) -> None:
    port = free_port()
    command = [*demo_command, "--transport", "sse", f"--port={port}"]
    async with (
        started(command, port=port),
        Client(sse_client(f"http://127.0.0.1:{port}/sse"), mode=mode) as client,
    ):
        answer = await call(client, "get_weather", city="Lima")
        version = client.protocol_version

    assert version == ERAS[mode]
    assert answer["structuredContent"]["condition"] == "fog"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("UNITS", "kelvin", "UNITS is 'kelvin'; it must be metric or imperial"),
        ("PACE", "fast", "PACE is 'fast'; it must be a number of seconds"),
    ],
)
def test_a_setting_that_makes_no_sense_ends_the_demo_with_a_reason(
    demo_command: list[str], name: str, value: str, reason: str
) -> None:
    env = {**os.environ, name: value}
    ended = subprocess.run(demo_command, env=env, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr


def read_png(data: bytes) -> list[bytes]:
    """The rows of an 8-bit palette PNG; every length and checksum in it is verified."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, rest = {}, data[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body = rest[4:8], rest[8 : 8 + length]
        (checksum,) = struct.unpack(">I", rest[8 + length : 12 + length])
        assert checksum == zlib.crc32(kind + body), kind
        chunks[kind] = body
        rest = rest[12 + length :]

    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 3)
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == height * (width + 1)
    rows = [pixels[y * (width + 1) + 1 : (y + 1) * (width + 1)] for y in range(height)]
    assert max(max(row) for row in rows) < len(chunks[b"PLTE"]) // 3
    return rows
