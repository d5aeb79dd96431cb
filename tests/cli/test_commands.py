"""The command line: what it prints, where, and what it ends with."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.app import run
from bridge.version import VERSION

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = str(ROOT / "configs" / "demo.yaml")
EXACTING = str(ROOT / "tests" / "servers" / "exacting.py")
TOKYO = '{"city": "Tokyo"}'

Said = pytest.CaptureFixture[str]


def write(place: Path, upstreams: dict[str, Any], **more: Any) -> str:
    path = place / "bridge.yaml"
    path.write_text(json.dumps({"upstreams": upstreams, **more}), "utf-8")
    return str(path)


def test_tools_lists_name_upstream_era_and_confirmation(capsys: Said) -> None:
    assert run(["tools", DEMO, "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    rows = {row["tool"]: row for row in printed["tools"]}
    assert set(rows) == {
        "weather__get_weather",
        "weather__forecast",
        "weather__radar",
        "weather__buy_report",
        "weather__storm_alert",
    }
    assert {row["upstream"] for row in rows.values()} == {"weather"}
    assert {row["era"] for row in rows.values()} == {"modern"}
    assert rows["weather__buy_report"]["confirmation"] == "always"
    assert rows["weather__get_weather"]["confirmation"] == "no"
    assert printed["upstreams"][0]["state"] == "ready"
    assert printed["problems"] == []


def test_tools_shows_what_is_missing_and_why_and_serves_the_rest(
    tmp_path: Path, capsys: Said
) -> None:
    config = write(
        tmp_path,
        {
            "weather": {"command": ["python", "-m", "bridge.demo"]},
            "gone": {"command": ["no-such-program"]},
        },
    )

    assert run(["tools", config]) == 0

    said = capsys.readouterr()
    assert "weather__get_weather" in said.out
    assert 'upstream "gone" is not available: command not found: "no-such-program"' in said.err
    assert "next attempt in" in said.err


def test_tools_says_which_models_are_not_offered_a_tool_and_why(
    tmp_path: Path, capsys: Said
) -> None:
    config = write(tmp_path, {"x": {"command": ["python", EXACTING], "prefix": ""}})

    assert run(["tools", config, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tools"]
    assert run(["tools", config]) == 0
    said = capsys.readouterr()

    free = 'at "/properties/labels": the names of its properties are free, which strict cannot say'
    lost = 'at "/properties/n": "$ref": "#/$defs/lost" leads to no schema'
    assert {row["tool"]: row["quarantined"] for row in rows} == {
        "book": {},
        "label": {"openai-strict": free},
        "lost": {"openai": lost, "openai-strict": lost, "gemini": lost, "anthropic": lost},
    }
    assert said.err.splitlines()[1:] == [
        f'tool "label" is not offered to models that read openai-strict: {free}',
        'tool "lost" is not offered to models that read openai, openai-strict, gemini, anthropic: '
        f"{lost}",
    ]
    assert [line.split()[0] for line in said.out.splitlines()] == ["tool", "book", "label", "lost"]


def test_call_prints_the_structured_answer(capsys: Said) -> None:
    assert run(["call", DEMO, "weather__get_weather", TOKYO]) == 0

    assert json.loads(capsys.readouterr().out)["city"] == "Tokyo"


def test_call_as_json_prints_the_answer_as_it_came(capsys: Said) -> None:
    assert run(["call", DEMO, "weather__radar", TOKYO, "--json"]) == 0

    content = json.loads(capsys.readouterr().out)["content"]
    assert [block["type"] for block in content] == ["text", "image"]


def test_call_shows_progress_beside_the_answer(capsys: Said) -> None:
    assert run(["call", DEMO, "weather__forecast", '{"city": "Tokyo", "days": 2}']) == 0

    said = capsys.readouterr()
    assert "… 1/2 day 1 of 2" in said.err
    assert len(json.loads(said.out)["days"]) == 2


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([DEMO, "weather__get_wether", TOKYO], 2, 'did you mean "weather__get_weather"?'),
        ([DEMO, "weather__get_weather", "{bad"], 2, "the arguments are not JSON"),
        ([DEMO, "weather__get_weather", "[]"], 2, "must be a JSON object"),
        ([DEMO, "weather__get_weather", "{}"], 1, "city"),
        (["no-such.yaml", "x", "{}"], 2, "no-such.yaml"),
        ([DEMO, "weather__storm_alert", TOKYO], 1, "no data for Tokyo"),
        ([DEMO, "weather__buy_report", TOKYO], 1, "needs a person's yes"),
        ([DEMO], 2, "Missing argument"),
    ],
)
def test_call_that_fails_says_so_in_a_line_and_ends_with_its_code(
    capsys: Said, words: list[str], code: int, text: str
) -> None:
    assert run(["call", *words]) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert text in said.err
    assert "Traceback" not in said.err


def test_guarded_call_runs_with_yes_given_beforehand(capsys: Said) -> None:
    assert run(["call", DEMO, "weather__buy_report", TOKYO, "--yes"]) == 0

    assert json.loads(capsys.readouterr().out)["receipt"] == "R-0001"


def test_interrupt_at_the_question_ends_at_once_and_runs_nothing() -> None:
    ended, screen = at_a_terminal(["call", DEMO, "weather__buy_report", TOKYO], "\x03")

    assert ended == 130
    assert "R-0001" not in screen
    assert "Traceback" not in screen


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_person_at_a_terminal_is_shown_the_arguments_and_decides(answer: str, code: int) -> None:
    ended, screen = at_a_terminal(["call", DEMO, "weather__buy_report", TOKYO], answer)

    assert ended == code
    assert '"city": "Tokyo"' in screen
    assert "server: weather\r\ntool: buy_report\r\n" in screen
    assert "[y/N]" in screen
    assert ("R-0001" in screen) == (code == 0)


def at_a_terminal(words: list[str], answer: str) -> tuple[int, str]:
    """Run bridge on a terminal of its own and answer its question."""
    ours, theirs = pty.openpty()
    own_terminal = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    own_terminal += "os.execv(sys.executable, [sys.executable, '-m', 'bridge', *sys.argv[1:]])"
    process = subprocess.Popen(
        [sys.executable, "-c", own_terminal, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = b""
    try:
        while b"[y/N]" not in screen:
            screen += os.read(ours, 4096)

        os.write(ours, answer.encode() if answer == "\x03" else answer.encode() + b"\n")
        while True:
            try:
                screen += os.read(ours, 4096)
            except OSError:  # the terminal's other end is closed
                break

        return process.wait(60), screen.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_check_says_everything_that_is_wrong_at_once(tmp_path: Path, capsys: Said) -> None:
    config = write(tmp_path, {"a b": {"command": []}, "c": {"urll": "https://x.example"}})

    assert run(["check", config]) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert all(line.startswith(f"bridge: {config}:") for line in lines)
    assert any('Did you mean "url"' in line for line in lines)


def test_check_of_a_good_file_says_so(capsys: Said) -> None:
    assert run(["check", DEMO]) == 0
    assert capsys.readouterr().out == "ok: 1 upstream, 0 local tools\n"


def test_live_check_shows_what_each_server_answers(
    tmp_path: Path, capsys: Said, odd_server: Any
) -> None:
    config = write(
        tmp_path,
        {
            "weather": {"command": ["python", "-m", "bridge.demo"]},
            "prose": {"command": odd_server("exit"), "connect_timeout": "30s"},
        },
    )

    assert run(["check", config, "--live"]) == 1

    said = capsys.readouterr()
    assert "ODD_TOKEN is not set" in " ".join(said.out.split())
    assert "ready" in said.out
    assert "1 of 2 upstreams" in said.err


def test_live_check_fails_where_tools_hide_each_other_or_cannot_be_listed(
    tmp_path: Path, capsys: Said, odd_server: Any
) -> None:
    bare = {"prefix": "", "command": odd_server("plain")}
    config = write(tmp_path, {"a": bare, "b": bare, "c": {"command": odd_server("same-cursor")}})

    assert run(["check", config, "--live"]) == 1

    said = capsys.readouterr().err
    assert 'two tools are named "echo"' in said
    assert "repeats the list cursor" in said


def test_check_as_json_says_what_is_configured(tmp_path: Path, capsys: Said) -> None:
    config = write(
        tmp_path,
        {
            "one": {"command": ["python", "-m", "bridge.demo"]},
            "two": {"url": "https://mcp.example.com/?key=canary", "enabled": False},
        },
    )

    assert run(["check", config, "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "notes": [],
        "upstreams": [
            {"name": "one", "kind": "command", "enabled": True},
            {"name": "two", "kind": "url", "enabled": False},
        ],
        "problems": [],
    }


def test_check_tells_at_once_what_would_not_be_served(tmp_path: Path, capsys: Said) -> None:
    config = write(tmp_path, {}, tools=["no_such:f", "gone:f"], serve={"http": {"host": "0.0.0.0"}})

    assert run(["check", config, "--json"]) == 2

    assert len(json.loads(capsys.readouterr().out)["problems"]) == 3


def test_version_is_printed(capsys: Said) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"bridge {VERSION}\n"


def test_help_names_what_belongs_where(capsys: Said) -> None:
    assert run(["call", "--help"]) == 0

    shown = capsys.readouterr().out
    assert all(word in shown for word in ("CONFIG", "TOOL", "ARGS_JSON"))


def test_a_local_tool_that_raises_what_it_likes_is_no_fault_of_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    text = """
class Broken:
    name, description, is_long_running = "broken", "Breaks.", False
    def declaration(self): return None
    async def run(self, ctx, args): raise LookupError("it is gone")
broken = Broken()
"""
    (tmp_path / "breaking.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    config = write(tmp_path, {}, tools=["breaking:broken"])

    assert run(["call", config, "broken"]) == 1

    assert capsys.readouterr().err == 'bridge: "broken" failed: LookupError: it is gone\n'


def test_port_that_is_none_is_refused(capsys: Said) -> None:
    assert run(["serve", DEMO, "--port", "99999"]) == 2


def test_call_of_an_upstream_that_is_down_is_no_usage_error(tmp_path: Path, capsys: Said) -> None:
    config = write(tmp_path, {"gone": {"command": ["no-such-program"]}})

    assert run(["call", config, "gone__tool", "{}"]) == 1
    assert "no-such-program" in capsys.readouterr().err


def test_serve_without_a_configuration_names_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["serve"]) == 2

    assert capsys.readouterr().err == (
        "bridge: no configuration: there is no bridge.yaml here; name a file, or try: "
        "bridge serve --demo\n"
    )


def test_serve_refuses_an_unknown_transport(capsys: Said) -> None:
    assert run(["serve", DEMO, "--transport", "carrier-pigeon"]) == 2
    assert '"carrier-pigeon" is not one of http, stdio, sse' in capsys.readouterr().err


def test_serve_refuses_to_listen_beyond_this_machine_without_a_token(capsys: Said) -> None:
    assert run(["serve", DEMO, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "token" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["serve"], ["tools"], ["call"], ["check"]])
def test_help_is_there_for_every_command(command: list[str], capsys: Said) -> None:
    assert run([*command, "--help"]) == 0
    assert "Usage:" in capsys.readouterr().out


def test_mcp_json_of_another_client_is_read_as_it_is(tmp_path: Path, capsys: Said) -> None:
    server = {"command": sys.executable, "args": ["-m", "bridge.demo"]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"weather": server}}), "utf-8")

    assert run(["tools", str(config), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tools"]) == 5


def test_without_its_extra_the_script_says_what_to_install(tmp_path: Path) -> None:
    hide = (
        "import sys; sys.modules['typer'] = None; "
        "from bridge.__main__ import main; sys.exit(main())"
    )
    ended = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)

    assert ended.returncode == 2
    assert ended.stderr == (
        'bridge: the command line needs more: pip install "mcp-agent-bridge[gateway]"\n'
    )
