"""Standard streams that are closed, full or odd: one line says so, and the exit code is right."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = str(ROOT / "configs" / "demo.yaml")
NESTED = "PYTHON -c \"print('['*200000 + ']'*200000)\""
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
)
WEATHER = f"call {DEMO} weather__get_weather"

if not Path("/dev/full").exists():
    pytest.skip("needs /dev/full", allow_module_level=True)


def ended(line: str, **environ: str) -> tuple[int, str, str]:
    """What a shell line with `bridge` in it ends with: its code, standard output and error."""
    python = shlex.quote(sys.executable)
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("BRIDGE", "PYTHON -m bridge").replace("PYTHON", python)],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check_one_line(ended: tuple[int, str, str], code: int, said: str) -> None:
    """The command ended with that code, no answer, and one complaint with those words in it."""
    got, out, err = ended
    complaints = [line for line in err.splitlines() if line.startswith("bridge: ")]
    assert (got, out) == (code, "")
    assert len(complaints) == 1
    assert said in complaints[0]
    assert "fault in bridge" not in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"BRIDGE {WEATHER} - <&-", 2, "standard input is closed"),
        (f"BRIDGE serve {DEMO} --transport stdio <&-", 2, "standard input is closed"),
        (f"BRIDGE chat {DEMO} -m - <&-", 2, "standard input is closed"),
        (f"printf '\\377' | BRIDGE {WEATHER} -", 2, "not UTF-8"),
        (f"{NESTED} | BRIDGE {WEATHER} -", 2, "nested too deeply"),
        (f'BRIDGE {WEATHER} "$(printf \'{{"city": "\\377"}}\')"', 2, "not UTF-8"),
        (f'BRIDGE call {DEMO} weather__buy_report \'{{"city": "Rome"}}\' <&-', 1, "no terminal"),
        (f"BRIDGE serve {DEMO} --host 'bad host'", 2, '--host: "bad host" is no host'),
        (f"BRIDGE serve {DEMO} --host '[::1]'", 2, "without brackets"),
        (f"BRIDGE serve {DEMO} --host ''", 2, '--host: "" is no host'),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(line: str, code: int, said: str) -> None:
    check_one_line(ended(line), code, said)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"BRIDGE check {DEMO} >/dev/full", 1, "cannot be written to standard output: No space"),
        (f"BRIDGE check {DEMO} --json >/dev/full", 1, "cannot be written to standard output"),
        (f"BRIDGE tools {DEMO} >/dev/full", 1, "cannot be written to standard output: No space"),
        (f"BRIDGE check {DEMO} >&-", 1, "cannot be written to standard output: Bad file"),
        ("BRIDGE check no-such.yaml >/dev/full", 2, "there is no such file"),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_written_is_said_in_one_line(
    line: str, code: int, said: str, unbuffered: str
) -> None:
    check_one_line(ended(line, PYTHONUNBUFFERED=unbuffered), code, said)


def test_a_client_that_cannot_be_answered_over_stdio_is_said_in_one_line() -> None:
    serve = [sys.executable, "-m", "bridge", "serve", DEMO, "--transport", "stdio"]
    with (
        open("/dev/full", "wb") as full,
        subprocess.Popen(serve, stdin=PIPE, stdout=full, stderr=PIPE, cwd=ROOT) as process,
    ):
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(INITIALIZE.encode() + b"\n")
        process.stdin.flush()
        try:
            err = process.stderr.read().decode()
            assert process.wait(60) == 1
        finally:
            process.kill()

    assert "bridge: the client cannot be reached over stdio: No space left" in err
    assert "fault in bridge" not in err


@pytest.mark.parametrize("to", ["2>/dev/full", ">&- 2>&- <&-"])
def test_where_nobody_can_be_told_the_exit_code_says_it(to: str) -> None:
    assert ended(f"BRIDGE check no-such.yaml {to}") == (2, "", "")
    assert ended(f"BRIDGE check {DEMO} --nonsense {to}") == (2, "", "")


def test_a_reader_that_has_read_enough_is_no_failure() -> None:
    got, out, err = ended(f"BRIDGE tools {DEMO} --json | head -c 1; exit 0")

    assert (got, out) == (0, "{")
    assert "bridge: " not in err


ODD = r"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "half", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "caf\u00e9 \ud800!"}]},
    }
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked.get("method") in answers:
        answer["result"] = answers[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("alphabet", ["utf-8", "ascii"])
def test_an_answer_with_half_a_character_is_printed_escaped(tmp_path: Path, alphabet: str) -> None:
    (tmp_path / "odd.py").write_text(ODD, "utf-8")
    config = tmp_path / "bridge.yaml"
    odd = {"command": [sys.executable, str(tmp_path / "odd.py")]}
    config.write_text(json.dumps({"upstreams": {"odd": odd}}), "utf-8")

    plain = ended(f"BRIDGE call {config} odd__half", PYTHONIOENCODING=alphabet)
    as_json = ended(f"BRIDGE call {config} odd__half --json", PYTHONIOENCODING=alphabet)

    accent = "é" if alphabet == "utf-8" else "\\xe9"
    assert plain == (0, f"caf{accent} \\ud800!\n", "")
    assert as_json[0] == 0
    assert json.loads(as_json[1])["content"][0]["text"] == "café \ud800!"
