"""Every numbered case has a test, and every test names cases that there are.

`spec_cases.toml` is the list. Which tests there are is asked of pytest itself, in a process of its
own, so that nothing depends on what is selected to run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(600)  # collecting everything takes its time

ROOT = Path(__file__).resolve().parent.parent
CASES: dict[str, str | dict[str, str]] = tomllib.loads(
    (ROOT / "tests" / "spec_cases.toml").read_text("utf-8")
)

# How many cases each section has: a case that is dropped from the list is missed.
SECTIONS = {
    "1": 7,
    "1.9": 8,
    "2": 14,
    "3": 6,
    "4": 5,
    "5": 8,
    "6": 17,
    "7": 17,
    "8": 6,
    "9": 7,
    "10": 8,
    "11": 13,
    "12": 6,
    "13": 21,
    "14": 11,
    "15": 11,
    "19": 7,
    "20": 7,
    "21": 6,
    "system": 60,
}

Named = Sequence[tuple[str, str]]
"""Pairs of a test and a case that it names."""


def named_by_tests(files: Sequence[Path], scratch: Path) -> list[tuple[str, str]]:
    """The cases that the tests in `files` name, as pytest collects them."""
    found = scratch / "markers.json"
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    argv += ["--config-file", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    argv += ["-p", "tests.spec_markers", "--spec-markers", str(found)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*argv, *map(str, files)],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        pytest.fail(f"the tests cannot be collected:\n{done.stdout[-4000:]}")

    return [(test, case) for test, case in json.loads(found.read_text("utf-8"))]


def without_a_test(cases: Mapping[str, str | dict[str, str]], named: Named) -> list[str]:
    """The cases that apply and that no test names, with what they say."""
    tested = {case for _, case in named}
    return [
        f"{case}: {said}"
        for case, said in cases.items()
        if isinstance(said, str) and case not in tested
    ]


def unknown(cases: Mapping[str, str | dict[str, str]], named: Named) -> list[str]:
    """The tests that name what is no case, or one that is said not to apply."""
    return [
        f"{test} names {case!r}" for test, case in named if not isinstance(cases.get(case), str)
    ]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Named:
    """The cases that all tests name."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    marked = [path for path in files if ".spec(" in path.read_text("utf-8")]
    return named_by_tests(marked, tmp_path_factory.mktemp("spec"))


def test_every_case_has_a_test(named: Named) -> None:
    missing = without_a_test(CASES, named)

    assert not missing, "\n".join(["no test holds these cases:", *missing])


def test_every_test_names_cases_that_there_are(named: Named) -> None:
    odd = unknown(CASES, named)

    assert not odd, "\n".join(["these are no cases, or do not apply:", *odd])


def test_the_list_has_every_case_and_says_what_each_is() -> None:
    wanted = {
        f"{section}{'-' if section == 'system' else '.'}{number}"
        for section, count in SECTIONS.items()
        for number in range(1, count + 1)
    }

    assert sorted(set(CASES) ^ wanted) == []
    for case, said in CASES.items():
        texts = {"text": said} if isinstance(said, str) else said
        assert set(texts) in ({"text"}, {"text", "not_applicable"}), case
        assert all(text.endswith(".") and "\n" not in text for text in texts.values()), case


# --- The checks themselves

LITTLE = {"1.1": "One.", "1.2": "Two.", "1.3": {"text": "Three.", "not_applicable": "It is not."}}


def test_a_case_without_a_test_is_told_with_what_it_says() -> None:
    assert without_a_test(LITTLE, [("t", "1.1")]) == ["1.2: Two."]
    assert without_a_test(LITTLE, [("t", "1.1"), ("t", "1.2")]) == []


def test_a_test_of_an_unknown_case_or_one_that_does_not_apply_is_told_by_name() -> None:
    named = [("a", "1.1"), ("b", "1.4"), ("c", "1.3")]

    assert unknown(LITTLE, named) == ["b names '1.4'", "c names '1.3'"]


SAMPLE = """
import pytest

pytestmark = pytest.mark.spec("module")

@pytest.mark.spec("one")
@pytest.mark.spec("two", "three")
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.spec("row"))])
def test_a(n): ...

@pytest.mark.spec(case="odd")
def test_b(): ...

class TestC:
    pytestmark = pytest.mark.spec("class")

    def test_c(self): ...
"""


def test_markers_are_found_wherever_they_are_put(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing_of_that_name")
    sample = tmp_path / "test_sample.py"
    sample.write_text(SAMPLE, "utf-8")

    found: dict[str, set[str]] = {}
    for test, case in named_by_tests([sample], tmp_path):
        found.setdefault(test.partition("::")[2], set()).add(case)

    assert found.pop("test_b") - {"module"} != set()
    assert found == {
        "test_a[1]": {"module", "one", "two", "three"},
        "test_a[2]": {"module", "one", "two", "three", "row"},
        "TestC::test_c": {"module", "class"},
    }


def test_tests_that_cannot_be_collected_are_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "test_broken.py"
    broken.write_text("import a_module_that_nobody_has\n", "utf-8")

    with pytest.raises(pytest.fail.Exception, match="a_module_that_nobody_has"):
        named_by_tests([broken], tmp_path)
