"""`bridge chat` as a person has it, on a terminal, and as a script has it, through pipes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from bridge.cli.app import run
from tests import nursery
from tests.cli.terminal import CONTROL_C, CONTROL_D, CONTROL_U, ROOT, Terminal
from tests.processes import is_alive, started, unused_port
from tests.waiting import eventually

AGENT = "configs/agent.yaml"
PROVIDER = ROOT / "tests" / "servers" / "chat_completions.py"
SHOP = [{"function": "tests.cli.shop:sell", "confirm": True}]

YOU, DECIDE, EDIT = "you> ", "[y/N/e(dit)] ", "New arguments (JSON): "
WEATHER = "What is the weather in Tokyo?"
IN_TOKYO = "(scripted) In Tokyo it is 21.0 °C, clear.\n"
BUY = "Buy a report on Tokyo."
BOUGHT = "(scripted) The report on {} is bought for 4.5 EUR, receipt R-0001.\n"
REFUSED = (
    '(scripted) weather__buy_report gave nothing: the call of "buy_report" was rejected; '
    "nothing ran.\n"
)


def demo() -> dict[str, Any]:
    command = nursery.server("-m", "bridge.demo")
    return {"command": command, "tools": {"confirm": ["buy_report"]}}


@dataclass(frozen=True, slots=True)
class Desk:
    """A place of one's own to chat in: where sessions rest, and what the shop has sold."""

    place: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def env(self) -> dict[str, str]:
        return {"XDG_STATE_HOME": str(self.place), "SHOP_NOTES": str(self.place / "notes")}

    @property
    def sold(self) -> list[str]:
        notes = self.place / "notes"
        return notes.read_text("utf-8").splitlines() if notes.exists() else []

    def config(self, **settings: Any) -> str:
        path = self.place / "bridge.yaml"
        path.write_text(json.dumps(settings), "utf-8")
        return str(path)

    def chat(self, *words: str, typed: str = "", **env: str) -> Said:
        """One chat in this process, with these lines as its input."""
        with self.patch.context() as patch:
            patch.delenv("COLUMNS", raising=False)  # what runs the tests may say how wide it is
            for name, value in {**self.env, **env}.items():
                patch.setenv(name, value)

            patch.chdir(ROOT)
            patch.setattr(sys, "stdin", io.StringIO(typed))
            code = run(["chat", *words])

        return Said(code, *self.capsys.readouterr())

    def process(self, *words: str, typed: str = "") -> Said:
        """One chat in a process of its own, through pipes."""
        ended = subprocess.run(
            [sys.executable, "-m", "bridge", "chat", *words],
            input=typed,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
            env={**os.environ, **self.env},
            timeout=100,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def terminal(self, *words: str, columns: int = 200, **env: str) -> Terminal:
        """One chat on a terminal of its own."""
        return Terminal("chat", *words, env={**self.env, **env}, columns=columns)


@dataclass(frozen=True, slots=True)
class Said:
    """What a chat ended with, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return Desk(tmp_path, monkeypatch, capsys)


# The scripted walk.


def test_lines_that_come_in_say_what_is_said_and_decide_what_is_asked(desk: Desk) -> None:
    lima = '{"city": "Lima"}'
    answers = ["y", "n", "", f"e\n{lima}", f"e {lima}", "what?\ne {bad\ne\n\nYES", "no"]
    typed = [f"{BUY}\n{answer}\n" for answer in answers]

    said = desk.process(AGENT, typed=f"{WEATHER}\n{''.join(typed)}{WEATHER}\n")

    receipt = "(scripted) The report on {} is bought for 4.5 EUR, receipt R-000{}.\n"
    assert said.out.splitlines(keepends=True) == [
        IN_TOKYO,
        receipt.format("Tokyo", 1),
        REFUSED,
        REFUSED,
        receipt.format("Lima", 2),
        receipt.format("Lima", 3),
        receipt.format("Tokyo", 4),
        REFUSED,
        IN_TOKYO,
    ]
    assert said.code == 0


def test_everything_but_the_agents_words_is_shown_beside_them(desk: Desk) -> None:
    said = desk.chat(AGENT, typed=f"{BUY}\ny\nIs a storm coming in London?\n")

    failure = "the storm service has no data for London; try again later"
    assert [line for line in said.err.splitlines() if "begins" not in line] == [
        "No model is configured, so the answers are scripted.",
        '→ weather__buy_report {"city": "Tokyo"}',
        "? weather__buy_report waits for a person's yes",
        "weather__buy_report asks for your approval:",
        "  upstream: weather",
        "  tool: buy_report",
        "  arguments:",
        "    {",
        '      "city": "Tokyo"',
        "    }",
        '← weather__buy_report {"receipt": "R-0001", "city": "Tokyo", "price": 4.5, '
        '"currency": "EUR"}',
        '→ weather__storm_alert {"city": "London"}',
        "✗ weather__storm_alert failed: Tool execution failed. Details: "
        f"Error executing tool storm_alert: {failure}",
    ]


def test_bad_edit_is_told_and_asked_again(desk: Desk) -> None:
    said = desk.chat(AGENT, typed=f'{BUY}\ne {{bad\ne [1]\ne {{"city": 5}}\ne {{"a": NaN}}\nn\n')

    told = [line for line in said.err.splitlines() if line.startswith("✗")]
    assert told[0].startswith("✗ that is not JSON: ")
    assert told[1] == '✗ arguments are a JSON object, like {"city": "Tokyo"}'
    assert told[2].startswith('✗ the edited arguments of "weather__buy_report" do not fit: "city"')
    assert told[3].startswith("✗ that is not JSON: ")
    assert len(told) == 5
    assert said.out == REFUSED


def test_person_at_a_terminal_walks_through_the_demo(desk: Desk) -> None:
    with desk.terminal(AGENT) as terminal:
        assert "the answers are scripted" in terminal.shows(YOU)
        terminal.type(WEATHER)
        asked = terminal.shows(YOU)
        terminal.type(BUY)
        terminal.shows(DECIDE)
        terminal.type("y")
        approved = terminal.shows(YOU)
        terminal.type(BUY)
        terminal.shows(DECIDE)
        terminal.type("n")
        refused = terminal.shows(YOU)
        terminal.type(BUY)
        terminal.shows(DECIDE)
        terminal.type("e")
        assert terminal.shows('{"city": "Tokyo"}').endswith(EDIT + '{"city": "Tokyo"}')
        terminal.type(CONTROL_U + '{"city": "Lima"}')
        edited = terminal.shows(YOU)
        terminal.type("", end=CONTROL_D)

        assert terminal.ends() == 0

    assert '→ weather__get_weather {"city": "Tokyo"}\n' in asked
    assert f"clerk> {IN_TOKYO}" in asked
    assert f"clerk> {BOUGHT.format('Tokyo')}" in approved
    assert f"clerk> {REFUSED}" in refused
    assert 'receipt": "R-0002", "city": "Lima"' in edited


def test_arguments_are_edited_where_they_stand(desk: Desk) -> None:
    with desk.terminal(AGENT) as terminal:
        terminal.shows(YOU)
        terminal.type(BUY)
        terminal.shows(DECIDE)
        terminal.type("e")
        terminal.shows('{"city": "Tokyo"}')
        terminal.type("\x7f" * 7 + 'Lima"}')

        assert BOUGHT.format("Lima") in terminal.shows(YOU)


def test_what_was_typed_before_the_question_is_no_answer_to_it(desk: Desk) -> None:
    with desk.terminal(desk.config(upstreams={"weather": demo()})) as terminal:
        terminal.shows(YOU)
        terminal.type("The forecast for Berlin, and buy a report on Berlin.")
        terminal.shows("… weather__forecast 1/3 day 1 of 3")
        terminal.type("y")
        terminal.shows(DECIDE)
        terminal.type("n")

        assert "was rejected; nothing ran" in terminal.shows(YOU)


# What a person is shown.


def test_what_hides_in_arguments_is_shown_and_approved_as_it_is(desk: Desk) -> None:
    config = desk.config(tools=SHOP)
    hidden = "Li\u202ema\u200b\u001b[2J\u007f\u3164"

    said = desk.chat(config, typed=f"sell {json.dumps({'city': hidden})}\ny\n")

    assert r'"city": "Li\u202ema\u200b\u001b[2J\u007f\u3164"' in said.err
    assert set("\u202e\u200b\u001b\u007f").isdisjoint(said.err + said.out)
    assert desk.sold == [f"{hidden} 1"]


def test_long_arguments_are_shortened_in_passing_and_whole_where_they_are_approved(
    desk: Desk,
) -> None:
    config, city = desk.config(tools=SHOP), "x" * 500

    said = desk.chat(config, typed=f'sell {{"city": "{city}"}}\nn\n', COLUMNS="60")

    in_passing, *_ = [line for line in said.err.splitlines() if line.startswith("→")]
    assert re.fullmatch(r'→ sell \{"city": "x+… \(\+\d+ characters\)', in_passing)
    assert 50 < len(in_passing) <= 60
    assert f'      "city": "{city}"' in said.err.splitlines()


@pytest.mark.parametrize(("env", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_left_out_where_nobody_wants_it(
    desk: Desk, env: dict[str, str], is_coloured: bool
) -> None:
    with desk.terminal(desk.config(tools=SHOP), **env) as terminal:
        terminal.shows(YOU)
        terminal.type('sell {"city": "Tokyo"}')
        terminal.shows(DECIDE)

        assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.raw)) is is_coloured


def test_line_is_no_longer_than_the_terminal_is_wide(desk: Desk) -> None:
    with desk.terminal(desk.config(tools=SHOP), columns=70) as terminal:
        terminal.shows(YOU)
        terminal.type(f'sell {{"city": "{"x" * 100}"}}')
        shown = terminal.shows(DECIDE).splitlines()

    (called,) = [line for line in shown if line.startswith("→")]
    assert 60 < len(called) <= 70
    assert called.endswith("characters)")


def test_upstream_that_is_missing_is_named(desk: Desk) -> None:
    gone = {"command": ["no-such-program"]}
    said = desk.chat(desk.config(upstreams={"gone": gone}, tools=SHOP), "-m", "hello")

    assert 'upstream "gone" is not available: command not found: "no-such-program"' in said.err
    assert "on offer: sell." in said.out
    assert said.code == 0


def test_tool_that_asks_by_itself_is_shown_with_what_it_says_and_gets_its_answer(
    desk: Desk,
) -> None:
    config = desk.config(tools=["tests.cli.shop:reserve"])

    said = desk.chat(config, typed='reserve {"city": "Lima"}\ny\nreserve {"city": "Lima"}\nn\n')

    assert said.err.splitlines()[2:13] == [
        '→ reserve {"city": "Lima"}',
        "? reserve waits for a person's yes",
        "reserve asks for your approval:",
        "  it says: A table costs 5 EUR.",
        "  arguments:",
        "    {",
        '      "city": "Lima"',
        "    }",
        "  it shows:",
        "    {",
        '      "price": 5',
    ]
    assert said.out == (
        "(scripted) reserve says: a table in Lima for 5.\n(scripted) reserve says: no table.\n"
    )


# Ctrl-C and Ctrl-D.


def test_interrupt_ends_the_turn_and_the_next_one_runs(desk: Desk) -> None:
    slow = {**demo(), "env": {"PACE": "60"}}
    with desk.terminal(desk.config(upstreams={"weather": slow})) as terminal:
        terminal.shows(YOU)
        terminal.type("The forecast for Berlin")
        terminal.shows("→ weather__forecast")
        terminal.type("", end=CONTROL_C)
        stopped = terminal.shows(YOU)
        terminal.type(WEATHER)
        went_on = terminal.shows(YOU)
        terminal.type("", end=CONTROL_C)
        terminal.shows("Ctrl-C again, or Ctrl-D, leaves.")
        terminal.shows(YOU)
        terminal.type("", end=CONTROL_C)

        assert terminal.ends() == 130

    assert "Stopped. A call was running: it may have been done." in stopped
    assert IN_TOKYO in went_on


async def test_second_interrupt_leaves_and_nothing_is_left_behind(desk: Desk) -> None:
    slow = {**demo(), "command": [sys.executable, "-m", "bridge.demo"], "env": {"PACE": "60"}}
    with desk.terminal(desk.config(upstreams={"weather": slow})) as terminal:
        terminal.shows(YOU)
        children = psutil.Process(terminal.process.pid).children(recursive=True)
        terminal.type("The forecast for Berlin")
        terminal.shows("→ weather__forecast")
        terminal.type("", end=CONTROL_C)
        terminal.shows(YOU)
        terminal.type("", end=CONTROL_C)

        assert terminal.ends() == 130

    assert children
    await eventually(lambda: not any(is_alive(child.pid) for child in children))


def test_interrupt_at_a_question_keeps_it_and_an_empty_line_asks_again(desk: Desk) -> None:
    with desk.terminal(AGENT) as terminal:
        terminal.shows(YOU)
        terminal.type(BUY)
        terminal.shows(DECIDE)
        terminal.type("", end=CONTROL_C)
        kept = terminal.shows(YOU)
        terminal.type("")
        terminal.shows(DECIDE)
        terminal.type("y")

        assert BOUGHT.format("Tokyo") in terminal.shows(YOU)

    assert "Not run, and not refused: weather__buy_report." in kept


def test_turn_that_was_cut_off_is_taken_up_by_an_empty_line(desk: Desk) -> None:
    slow = {**demo(), "env": {"PACE": "60"}}
    with desk.terminal(desk.config(upstreams={"weather": slow})) as terminal:
        terminal.shows(YOU)
        terminal.type("The forecast for Berlin")
        terminal.shows("→ weather__forecast")
        terminal.process.kill()

    with desk.terminal(desk.config(upstreams={"weather": demo()})) as terminal:
        assert "The last turn was cut off" in terminal.shows(YOU)
        terminal.type("")
        terminal.shows("(scripted)")


# Sessions.


def test_approved_call_runs_once_although_the_process_that_asked_was_killed(desk: Desk) -> None:
    config = desk.config(tools=SHOP)
    with desk.terminal(config, "--session", "shop") as terminal:
        terminal.shows(YOU)
        terminal.type('sell {"city": "Tokyo"}')
        terminal.shows(DECIDE)
        terminal.process.kill()
        terminal.process.wait()

    first = desk.process(config, "--session", "shop", typed="y\n")
    second = desk.process(config, "--session", "shop", typed="y\n")

    assert '"city": "Tokyo"' in first.err
    assert first.out == "(scripted) sell says: sold 1 of Tokyo.\n"
    assert "asks for your approval" not in second.err
    assert desk.sold == ["Tokyo 1"]


def test_message_that_waits_for_a_person_ends_with_1_and_is_decided_later(desk: Desk) -> None:
    config = desk.config(tools=SHOP)

    waiting = desk.chat(config, "--session", "s", "--message", 'sell {"city": "Lima"}')
    listed = desk.chat(config, "--list", "--json")
    decided = desk.chat(config, "--session", "s", typed='e {"city": "Lima", "copies": 3}\n')

    assert (waiting.code, waiting.out) == (1, "")
    assert "Not run, and not refused: sell." in waiting.err
    assert "bridge chat … --session s" in waiting.err
    (session,) = json.loads(listed.out)["sessions"]
    assert (session["session"], session["waiting"], session["events"]) == ("s", ["sell"], 4)
    assert decided.out == "(scripted) sell says: sold 3 of Lima.\n"
    assert desk.sold == ["Lima 3"]


def test_what_comes_through_a_pipe_beside_a_message_decides_nothing(desk: Desk) -> None:
    said = desk.chat(desk.config(tools=SHOP), "-m", 'sell {"city": "Lima"}', typed="y\n")

    assert (said.code, said.out) == (1, "")
    assert desk.sold == []


def test_end_of_the_input_at_a_question_keeps_it_and_ends_with_1(desk: Desk) -> None:
    config = desk.config(tools=SHOP)

    said = desk.chat(config, typed='sell {"city": "Lima"}\n')

    assert (said.code, said.out) == (1, "")
    assert "asks for your approval" in desk.chat(config, typed="").err
    assert desk.sold == []


def test_message_asks_the_person_who_is_there(desk: Desk) -> None:
    with desk.terminal(AGENT, "-m", BUY) as terminal:
        terminal.shows(DECIDE)
        terminal.type("y")

        assert terminal.ends() == 0
        assert BOUGHT.format("Tokyo") in terminal.screen


def test_message_may_come_through_a_pipe(desk: Desk) -> None:
    said = desk.chat(desk.config(tools=SHOP), "--message", "-", typed='sell {"city":\n"Lima"}\n')

    assert '→ sell {"city": "Lima"}' in said.err
    assert said.code == 1


def test_sessions_are_apart_and_listed_newest_first(desk: Desk) -> None:
    config = desk.config(tools=SHOP)
    desk.chat(config, "-m", "Hi")
    desk.chat(config, "--session", "other", "-m", "Hello")
    desk.chat(config, "--new", "-m", "Hi")
    desk.chat(config, "--session", "other", "-m", "Hello again")

    listed = json.loads(desk.chat(config, "--list", "--json").out)
    printed = desk.chat(config, "--list").out.splitlines()

    sessions = {one["session"]: (one["events"], one["first_words"]) for one in listed["sessions"]}
    (made,) = sessions.keys() - {"default", "other"}
    assert list(sessions) == ["other", made, "default"]
    assert sessions == {"other": (4, "Hello"), made: (2, "Hi"), "default": (2, "Hi")}
    assert [line.split()[0] for line in printed] == ["session", "other", made, "default"]


def test_new_session_takes_no_name_that_is_taken(desk: Desk) -> None:
    config = desk.config(tools=SHOP)
    desk.chat(config, "--session", "mine", "-m", "Hello")

    said = desk.chat(config, "--session", "mine", "--new", "-m", "Hello")

    assert said == Said(
        2, "", 'bridge: --new: there is a session "mine"; go on with it, or choose another name\n'
    )


# For machines.


def test_events_are_printed_as_json_lines(desk: Desk) -> None:
    said = desk.chat(AGENT, "--json", typed=f"{BUY}\ny\n")

    whole = [event for event in said.events if not event.get("partial")]
    kinds = [
        (event["author"], *(key for part in event["content"]["parts"] for key in part))
        for event in whole
    ]
    assert kinds == [
        ("user", "text"),
        ("clerk", "functionCall"),
        ("clerk", "functionResponse"),
        ("clerk", "functionCall"),
        ("user", "functionResponse"),
        ("clerk", "functionResponse"),
        ("clerk", "text"),
    ]
    question = whole[3]["content"]["parts"][0]["functionCall"]
    assert question["name"] == "adk_request_confirmation"
    pieces = [event for event in said.events if event.get("partial")]
    told = "".join(piece["content"]["parts"][0]["text"] for piece in pieces)
    assert told == whole[-1]["content"]["parts"][0]["text"]
    assert said.code == 0


# With a model.


@dataclass(frozen=True, slots=True)
class Provider:
    """A model's provider that says what it is told to."""

    url: str

    async def script(self, *steps: dict[str, Any]) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            (await client.put(f"{self.url}/script", json=steps)).raise_for_status()

    async def heard(self) -> list[dict[str, Any]]:
        async with httpx.AsyncClient(trust_env=False) as client:
            return [one["body"] for one in (await client.get(f"{self.url}/heard")).json()]

    @property
    def agent(self) -> dict[str, Any]:
        model = {"base_url": f"{self.url}/v1", "model": "small", "api_key": "sk-secret-key"}
        return {"name": "clerk", "model": {"openai_compatible": model}}


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    port = unused_port()
    async with started([sys.executable, str(PROVIDER), "--port", str(port)], port=port):
        yield Provider(f"http://127.0.0.1:{port}/main")


async def test_of_two_parallel_calls_one_runs_and_the_refused_one_reaches_the_model_as_an_error(
    desk: Desk, provider: Provider
) -> None:
    tokyo, lima = {"city": "Tokyo"}, {"city": "Lima"}
    await provider.script(
        {
            "say": "Let me see.",
            "calls": [
                {"id": "c1", "name": "weather__get_weather", "arguments": tokyo},
                {"id": "c2", "name": "sell", "arguments": lima},
                {"id": "c3", "name": "weather__buy_report", "arguments": lima},
            ],
        },
        {"say": "One was sold, one was not."},
    )
    config = desk.config(upstreams={"weather": demo()}, tools=SHOP, agent=provider.agent)

    asked = desk.chat(config, "--session", "s", "-m", "Sell me something.")
    decided = desk.chat(config, "--session", "s", typed="y\nn\n")

    assert (asked.code, asked.out) == (1, "Let me see.\n")
    assert "← weather__get_weather" in asked.err
    assert (decided.code, decided.out) == (0, "One was sold, one was not.\n")
    assert desk.sold == ["Lima 1"]
    first, second = await provider.heard()
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    answers = {
        message["tool_call_id"]: json.loads(message["content"])
        for message in second["messages"]
        if message["role"] == "tool"
    }
    assert answers["c1"]["output"]["city"] == "Tokyo"
    assert answers["c2"] == {"result": "sold 1 of Lima"}
    assert answers["c3"] == {"error": 'the call of "buy_report" was rejected; nothing ran'}


async def test_text_is_shown_while_the_model_still_speaks(desk: Desk, provider: Provider) -> None:
    await provider.script({"think": "Hm. So.", "say": "One two", "then": "hang"}, {"say": "Three."})
    with desk.terminal(desk.config(tools=SHOP, agent=provider.agent)) as terminal:
        terminal.shows(YOU)
        terminal.type("Count.")
        counted = terminal.shows("clerk> One two")
        terminal.type("", end=CONTROL_C)
        stopped = terminal.shows(YOU)
        terminal.type("Go on.")
        went_on = terminal.shows(YOU)

    assert counted.count("… thinking") == 1
    assert "Stopped. An empty line goes on." in stopped
    assert "clerk> Three.\n" in went_on


async def test_model_that_fails_is_told_and_the_conversation_goes_on(
    desk: Desk, provider: Provider
) -> None:
    failure = {"status": 400, "json": {"error": {"message": "no such model"}}}
    await provider.script(failure, failure, {"say": "Here I am."})
    config = desk.config(tools=SHOP, agent=provider.agent)

    alone = desk.chat(config, "-m", "Hello?")
    several = desk.chat(config, typed="Hello?\nAre you there?\n")

    assert (alone.code, alone.out) == (1, "")
    assert "no such model" in alone.err
    assert "Traceback" not in alone.err
    assert (several.code, several.out) == (1, "Here I am.\n")
    assert "sk-secret-key" not in alone.err + several.err


async def test_turn_asks_the_model_no_more_often_than_the_settings_allow(
    desk: Desk, provider: Provider
) -> None:
    call = {"id": "c", "name": "nobody", "arguments": {}}
    await provider.script(*[{"calls": [call]}] * 3)
    config = desk.config(tools=SHOP, agent={**provider.agent, "max_steps": 2})

    said = desk.chat(config, "-m", "Go round in circles.")

    assert (said.code, said.out) == (1, "")
    assert 'bridge: "clerk" asked its model 2 times and is not done' in said.err
    assert len(await provider.heard()) == 2


# Wrong usage.


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([AGENT, "--session", "a b"], "--session: use 1 to 64 letters"),
        ([AGENT, "-m", " "], "--message: there is nothing in it to say"),
        (["no-such.yaml"], "no-such.yaml"),
    ],
)
def test_wrong_usage_is_said_in_a_line(desk: Desk, words: list[str], text: str) -> None:
    said = desk.chat(*words)

    assert (said.code, said.out) == (2, "")
    assert text in said.err


def test_without_a_configuration_the_demo_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["chat"]) == 2
    assert capsys.readouterr().err == (
        "bridge: no configuration: there is no bridge.yaml here; name a file, or try: "
        "bridge chat --demo\n"
    )


def test_demo_needs_no_file(desk: Desk) -> None:
    assert desk.chat("--demo", "-m", WEATHER).out == IN_TOKYO


def test_store_that_is_no_database_is_named(desk: Desk) -> None:
    (desk.place / "agent.db").write_text("not a database, but long enough to be read as one" * 50)

    said = desk.chat(desk.config(tools=SHOP, agent={"store": "agent.db"}), "-m", "Hello")

    assert (said.code, said.out) == (1, "")
    assert f'the sessions in "{desk.place / "agent.db"}" cannot be used' in said.err


def test_help_tells_how_a_question_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chat", "--help"]) == 0

    told = " ".join(capsys.readouterr().out.split())
    for word in ("y runs it", "N or Enter refuses it", "--session", "--list", "Ctrl-D"):
        assert word in told


def test_help_of_the_command_line_loads_no_agent() -> None:
    program = (
        "import sys; from bridge.cli.app import run; run(['--help']); "
        "print([m for m in sys.modules if m.startswith(('bridge.agents', 'sqlalchemy'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ended.stdout.splitlines()[-1] == "[]"
