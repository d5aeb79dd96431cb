"""Files: read within bounds, laid over each other, with paths and problems of their own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.config.load import load
from bridge.config.settings import Settings
from bridge.errors import ConfigError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield


def write(name: str, text: str) -> str:
    """A file of settings in the current directory."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return name


def problems(*names: str | Path, environ: dict[str, str] | None = None) -> list[str]:
    """What is said of these files."""
    with pytest.raises(ConfigError) as refused:
        load(names, environ or {})

    return list(refused.value.problems)


def loaded(*names: str | Path) -> Settings:
    return load(names, {})


WEATHER = "upstreams: {weather: {command: [python, -m, bridge.demo]}}\n"


def test_one_path_need_not_be_in_a_list() -> None:
    name = write("bridge.yaml", WEATHER)
    assert load(name) == load(Path(name)) == load([name])


def test_no_path_at_all_is_refused() -> None:
    assert problems() == ["no file of settings is named. Name at least one."]


def test_later_files_lie_over_earlier_ones() -> None:
    write(
        "base.yaml",
        """
        upstreams:
          weather: {command: [python, -m, bridge.demo], env: {A: a, B: b}, timeout: 5s}
          docs: {url: "https://example.com/mcp", tools: {allow: [a, b], confirm: true}}
        tools: ["a:b"]
        """,
    )
    write(
        "mine.yaml",
        """
        upstreams:
          weather: {env: {B: c, D: d}, timeout: 7s}
          docs: {tools: {allow: [c]}, enabled: false}
          third: {command: [x]}
        tools: ["c:d"]
        serve: {name: mine}
        """,
    )

    settings = loaded("base.yaml", "mine.yaml")

    weather, docs = settings.upstreams["weather"], settings.upstreams["docs"]
    assert list(settings.upstreams) == ["weather", "docs", "third"]
    assert dict(weather.env) == {"A": "a", "B": "c", "D": "d"}
    assert (weather.command, weather.timeout) == (("python", "-m", "bridge.demo"), 7.0)
    assert (docs.tools.allow, docs.tools.confirm, docs.enabled) == (("c",), True, False)
    assert [tool.function for tool in settings.tools] == ["c:d"]
    assert settings.serve.name == "mine"


def test_a_file_of_ours_lies_over_a_foreign_one() -> None:
    write("mcp.json", '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    write("rules.yaml", "upstreams: {time: {tools: {confirm: true}}}")

    time = loaded("mcp.json", "rules.yaml").upstreams["time"]

    assert (time.command, time.tools.confirm) == (("uvx", "mcp-server-time"), True)


def test_a_problem_is_said_of_the_file_its_value_came_from() -> None:
    write("base.yaml", "upstreams:\n  weather:\n    command: [x]\n    timeout: 5\n")
    write(
        "mine.yaml", "\nupstreams:\n  weather:\n    enabled: maybe\n    url: https://example.com\n"
    )

    assert problems("base.yaml", "mine.yaml") == [
        'base.yaml:4: upstreams.weather.timeout: 5 has no unit. Write "5s" for seconds, '
        "or use ms, m or h.",
        'mine.yaml:4: upstreams.weather.enabled: "maybe" is neither true nor false. '
        "Write true or false.",
        "mine.yaml:5: upstreams.weather.url: an upstream has a command or a url, "
        "and this one has both. Remove one.",
    ]


def test_a_variable_that_is_laid_over_need_not_be_set() -> None:
    write("base.yaml", 'upstreams: {docs: {url: "${NOT_SET}"}}')
    write("mine.yaml", "upstreams: {docs: {url: https://example.com/mcp}}")

    assert loaded("base.yaml", "mine.yaml").upstreams["docs"].url == "https://example.com/mcp"


def test_unset_variables_of_all_files_are_named_at_once() -> None:
    write("a.yaml", 'upstreams:\n  a: {url: "${A_URL}"}\n')
    write("b.yaml", 'upstreams:\n\n  b: {command: ["${B_NAME}"]}\n')

    assert [line.partition(" is not")[0] for line in problems("a.yaml", "b.yaml")] == [
        'a.yaml:2: upstreams.a.url: the variable "A_URL"',
        'b.yaml:3: upstreams.b.command[0]: the variable "B_NAME"',
    ]


def test_all_unreadable_files_are_named_at_once() -> None:
    Path("folder.yaml").mkdir()
    write("broken.yaml", "a: b: c")

    assert problems("missing.yaml", "folder.yaml", write("fine.yaml", WEATHER), "broken.yaml") == [
        "missing.yaml: there is no such file. Check the path.",
        "folder.yaml: it is a directory. Name the file in it.",
        'broken.yaml:1: this is not YAML: a ":" where no key can be. '
        "Put quotes around it, or mend the line above.",
    ]


def test_directories_are_those_of_the_file_that_names_them() -> None:
    write("one/base.yaml", "upstreams: {a: {command: [x]}, b: {command: [x], cwd: sub}}")
    write("two/mine.yaml", "upstreams: {a: {timeout: 5s}, b: {cwd: ./other}, c: {command: [x]}}")

    settings = loaded("one/base.yaml", "two/mine.yaml")

    here = Path.cwd()
    assert {name: upstream.cwd for name, upstream in settings.upstreams.items()} == {
        "a": here / "one",
        "b": here / "two/other",
        "c": here / "two",
    }


def test_a_directory_may_be_under_home_or_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    write(
        "a.yaml",
        'upstreams: {a: {command: [x], cwd: "~"}, b: {command: [x], cwd: ~/b}, '
        "c: {command: [x], cwd: /c}, d: {command: [x], cwd: ~d}}",
    )

    assert [str(upstream.cwd) for upstream in loaded("a.yaml").upstreams.values()] == [
        "/home/me",
        "/home/me/b",
        "/c",
        str(Path.cwd() / "~d"),
    ]


def test_an_upstream_with_a_url_has_no_directory() -> None:
    write("a.yaml", "upstreams: {docs: {url: https://example.com/mcp}}")
    assert loaded("a.yaml").upstreams["docs"].cwd is None


@pytest.mark.parametrize("folder", [".vscode", ".cursor"])
def test_the_directory_of_an_editor_s_file_is_the_project(folder: str) -> None:
    write(
        f"project/{folder}/mcp.json",
        '{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/y", '
        '"${workspaceFolderBasename}"], "cwd": "sub"}, "b": {"command": "x"}}}',
    )

    upstreams = loaded(f"project/{folder}/mcp.json").upstreams

    project = Path.cwd() / "project"
    assert upstreams["a"].command == ("x", f"{project}/y", "project")
    assert (upstreams["a"].cwd, upstreams["b"].cwd) == (project / "sub", project)


def test_a_project_s_own_name_is_never_taken_for_a_variable() -> None:
    name = "odd ${NAME}/.vscode/mcp.json"
    write(name, '{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}')

    assert loaded(name).upstreams["a"].command == ("x", str(Path.cwd() / "odd ${NAME}"))


def test_a_byte_order_mark_and_windows_lines_are_no_matter() -> None:
    Path("a.yaml").write_bytes(
        b"\xef\xbb\xbfupstreams:\r\n  a:\r\n    command: [x]\r\n    timeout: 5\r\n"
    )

    assert problems("a.yaml")[0].startswith("a.yaml:4: upstreams.a.timeout: ")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"a: 1\nb: \xff\n", "a.yaml:2: it is not UTF-8. Save it as UTF-8."),
        (WEATHER.encode("utf-16"), "a.yaml: it is not text. Save it as UTF-8."),
        (b"\x7fELF\x00\x01", "a.yaml: it is not text. Save it as UTF-8."),
        (b"a: 1\nb: \x1b[2J", "a.yaml:2: a control character (U+001B) stands here. Remove it."),
        (b" " * (2**20 + 1), "a.yaml: it is larger than 1 MiB. Is this the right file?"),
    ],
)
def test_a_file_that_is_no_text_is_one_clear_error(data: bytes, sentence: str) -> None:
    Path("a.yaml").write_bytes(data)
    assert problems("a.yaml") == [sentence]


def test_a_file_of_exactly_the_bound_is_read() -> None:
    Path("a.yaml").write_bytes(WEATHER.encode().ljust(2**20, b"\n"))
    assert list(loaded("a.yaml").upstreams) == ["weather"]


def test_a_pipe_is_refused_without_waiting_for_a_writer() -> None:
    os.mkfifo("pipe.yaml")
    assert problems("pipe.yaml") == [
        "pipe.yaml: it is not a regular file. Name a file of settings."
    ]


def test_a_file_that_the_system_refuses_is_one_clear_error() -> None:
    Path("loop.yaml").symlink_to("loop.yaml")
    assert problems("loop.yaml") == [
        "loop.yaml: it cannot be read: too many levels of symbolic links. Check its permissions."
    ]


def test_a_name_that_no_file_can_have_is_one_clear_error() -> None:
    (problem,) = problems("a\0.yaml")
    assert problem.endswith("this cannot be the name of a file. Check the path.")


def test_a_file_that_everybody_may_write_is_refused() -> None:
    path = Path(write("a.yaml", WEATHER))
    path.chmod(path.stat().st_mode | stat.S_IWOTH)

    assert problems("a.yaml") == [
        "a.yaml: every user of this machine may write it, and so choose what is run. "
        "Take that away: chmod o-w."
    ]


def test_a_link_to_a_file_is_read_from_where_the_link_stands() -> None:
    write("data/real.yaml", WEATHER)
    Path("a.yaml").symlink_to("data/real.yaml")

    assert loaded("a.yaml").upstreams["weather"].cwd == Path.cwd()


def test_a_wide_file_is_refused_before_it_fills_the_memory() -> None:
    write("a.json", "[" + "1," * 200_000 + "1]")
    assert problems("a.json") == ["a.json:1: [99999]: more than 100,000 values. Make it smaller."]


def test_many_merges_of_one_large_mapping_are_refused() -> None:
    keys = ", ".join(f"k{i}: v" for i in range(5000))
    write("a.yaml", f"a: &a {{{keys}}}\nb:\n" + "- {<<: *a}\n" * 50)

    assert problems("a.yaml") == [
        "a.yaml:2: b: more than 100,000 values once its aliases are followed. Make it smaller."
    ]


def test_brackets_without_end_are_refused() -> None:
    write("a.yaml", "[" * 100_000)
    (problem,) = problems("a.yaml")
    assert problem.endswith("more than 64 levels deep. Make it flatter.")


def test_notes_name_their_file_and_line() -> None:
    write("a.json", '{"mcpServers": {\n"a": {"command": "x", "alwaysAllow": ["y"]}}}')
    assert loaded("a.json").notes == (
        "a.json:2: mcpServers.a.alwaysAllow: nothing is approved in advance by it.",
    )
