"""What shows only once a configuration is put together is told with the rest, place by place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bridge.config.settings import HttpSettings
from bridge.downstream.names import WILDCARDS, is_loopback, names_of
from bridge.errors import ConfigError
from bridge.gateway.checking import load_checked

MINE = "tests.gateway.functions"


def wrong(place: Path, text: str, **environ: str) -> list[str]:
    """What is wrong with a file of that text, without the file's name."""
    path = place / "bridge.yaml"
    path.write_text(text, "utf-8")
    try:
        load_checked([path], environ)
    except ConfigError as exc:
        return [line.replace(str(path), "bridge.yaml") for line in exc.problems]

    return []


def test_everything_is_told_at_once_with_what_the_settings_themselves_have_wrong(
    tmp_path: Path,
) -> None:
    lines = wrong(
        tmp_path,
        f"""\
upstreams:
  a: {{command: [x], tools: {{confirm: "no_such:policy"}}}}
  off: {{command: [x], enabled: false, tools: {{confirm: "gone:policy"}}}}
tools:
  - no_such.module:f
  - function: {MINE}:absent
    confirm: {MINE}:drop_not
  - os:sep
  - {{function: "{MINE}:add", confirm: "os:getcwd"}}
serve:
  http: {{host: 0.0.0.0, allowed_hosts: ["x:*"]}}
  bogus: 1
""",
    )

    assert lines == [
        'bridge.yaml:2: upstreams.a.tools.confirm: cannot import "no_such": '
        "ModuleNotFoundError: No module named 'no_such'. Correct the name, or what it names.",
        'bridge.yaml:5: tools[0]: cannot import "no_such.module": '
        "ModuleNotFoundError: No module named 'no_such'. Correct the name, or what it names.",
        f'bridge.yaml:6: tools[1].function: module "{MINE}" has no function "absent". '
        "Correct the name, or what it names.",
        f'bridge.yaml:7: tools[1].confirm: module "{MINE}" has no function "drop_not". '
        "Correct the name, or what it names.",
        'bridge.yaml:8: tools[2]: no tool can be made of "os:sep": tool "str": '
        "'/' is not a function. Correct the name, or what it names.",
        'bridge.yaml:9: tools[3].confirm: "os:getcwd" decides about confirmation, and so takes '
        "a tool's name and arguments: too many positional arguments. "
        "Correct the name, or what it names.",
        'bridge.yaml:11: serve.http.allowed_hosts[0]: "x:*" is no host. '
        'Leave the ":*" out: a name without a port stands for any port.',
        'bridge.yaml:11: serve.http.host: "0.0.0.0" can be reached from other machines, and no '
        'token is configured. Write "token: ${BRIDGE_TOKEN}" beside it, or listen on 127.0.0.1.',
        "bridge.yaml:12: serve.bogus: this key is not known. Known here: name, startup_wait, http, "
        "state, audit, audit_arguments, metrics, tracing.",
    ]


def test_a_module_that_ends_the_program_is_a_reference_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    [line] = wrong(tmp_path, "tools: [leaving:f]")

    assert 'cannot import "leaving": SystemExit: 3' in line


def test_what_a_variable_holds_is_not_shown(tmp_path: Path) -> None:
    text = 'tools: ["${TOOL}"]\nserve: {http: {host: "${HOST}"}}'

    lines = wrong(tmp_path, text, TOOL="canary_module:f", HOST="canary.example")

    assert len(lines) == 2
    assert "canary" not in str(lines)


NAMED_TWICE = "two tools would be named"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (  # two upstreams' new names
            """\
upstreams:
  a: {command: [x], prefix: "", tools: {rename: {search: find}}}
  b:
    command: [x]
    prefix: ""
    tools: {rename: {lookup: find}}
""",
            ["6: upstreams.b.tools.rename.lookup"],
        ),
        (  # a new name and a tool of that very name, in one upstream
            "upstreams: {a: {command: [x], tools: {allow: [find, s], rename: {s: find}}}}",
            ["1: upstreams.a.tools.allow[0]"],
        ),
        (  # two upstreams that offer one name without renaming
            """\
upstreams:
  a: {command: [x], prefix: "", tools: {allow: [find]}}
  b: {command: [x], prefix: "", tools: {allow: [find]}}
""",
            ["3: upstreams.b.tools.allow[0]"],
        ),
        (f"tools:\n- {MINE}:add\n- {MINE}:add\n", ["3: tools[1]"]),
        (f"tools:\n- {MINE}:add\n- {{function: {MINE}:drop, name: add}}\n", ["3: tools[1].name"]),
        (
            f"""\
tools: [{{function: "{MINE}:drop", name: a__find}}]
upstreams: {{a: {{command: [x], tools: {{rename: {{s: find}}}}}}}}
""",
            ["2: upstreams.a.tools.rename.s"],
        ),
        # Nothing collides: other prefixes, not offered, switched off, one tool written twice.
        (
            """\
upstreams:
  a: {command: [x], tools: {rename: {search: find}, allow: [search, other, other, "g*"]}}
  b: {command: [x], tools: {rename: {search: find}}}
  c: {command: [x], prefix: a__, tools: {rename: {s: find}, deny: [s]}}
  d: {command: [x], prefix: a__, tools: {rename: {s: find}, allow: [t]}}
  e: {command: [x], prefix: a__, enabled: false, tools: {rename: {s: find}}}
""",
            [],
        ),
    ],
)
def test_two_tools_that_would_have_one_name_are_told(
    tmp_path: Path, text: str, places: list[str]
) -> None:
    lines = wrong(tmp_path, text)

    assert all(NAMED_TWICE in line for line in lines)
    assert [line.partition(f": {NAMED_TWICE}")[0] for line in lines] == [
        f"bridge.yaml:{place}" for place in places
    ]


def test_two_new_names_in_one_mapping_are_told_once(tmp_path: Path) -> None:
    text = "upstreams: {a: {command: [x], tools: {rename: {s: find, t: find}}}}"

    assert len(wrong(tmp_path, text)) == 1


@pytest.mark.parametrize(
    ("http", "is_refused"),
    [
        ("{host: 0.0.0.0}", True),
        ('{host: "::"}', True),
        ("{host: app.example.com}", True),
        ("{host: LOCALHOST}", True),
        ("{host: 0.0.0.0, token: t0ken}", False),
        ("{host: 127.0.0.2}", False),
        ('{host: "::1"}', False),
        ("{host: localhost}", False),
        ("{}", False),
    ],
)
def test_other_machines_need_a_token(tmp_path: Path, http: str, is_refused: bool) -> None:
    lines = wrong(tmp_path, f"tools: ['{MINE}:add']\nserve: {{http: {http}}}")

    assert [": serve.http.host: " in line for line in lines] == [True] * is_refused


AUTHORITIES = st.from_regex(r"\A(\[[0-9a-f:.%]{0,6}\]|[a-z0-9_.:*%-]{0,8})(:[0-9*]{0,6})?\Z")


def is_admitted(**http: object) -> bool:
    try:
        HttpSettings.model_validate(http)
    except ValidationError:
        return False

    return True


def is_served(host: str = "127.0.0.1", hosts: tuple[str, ...] = (), *origins: str) -> bool:
    try:
        names_of(host, hosts, origins)
    except ValueError:
        return False

    return True


@given(AUTHORITIES)
def test_the_settings_admit_the_hosts_and_origins_that_the_server_takes(text: str) -> None:
    origin = f"https://{text}"

    assert is_admitted(allowed_hosts=[text]) == is_served(hosts=(text,))
    assert is_admitted(allowed_origins=[origin]) == is_served("127.0.0.1", (), origin)
    if is_admitted(host=text):
        assert text in WILDCARDS or is_served(text)
        assert HttpSettings(host=text).is_loopback == is_loopback(text)


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("x", True),
        ("x:80", True),
        ("[::1]:80", True),
        ("x:*", False),
        ("x:65536", False),
        ("x-", False),
        ("[1:2]", False),
        ("::1", False),
    ],
)
def test_the_server_and_the_settings_agree_on_an_allowed_host(text: str, is_good: bool) -> None:
    assert is_admitted(allowed_hosts=[text]) == is_served(hosts=(text,)) == is_good
