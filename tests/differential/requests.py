"""What each server is asked, and what of its answers differs from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PLACE = "{place}"
"""Stands in params and answers for the folder that a server was given."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `ours` says why bridge itself answers it, and with which error codes."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    ours: tuple[str, Sequence[int]] | None = None

    @property
    def what(self) -> str:
        """How a report calls it."""
        named = self.params.get("name") or self.params.get("uri") or self.params.get("ref") or ""
        return f"{self.method} {named}".strip()


@dataclass(frozen=True, slots=True)
class Varying:
    """What differs from run to run in the answers about one thing, by its name or URI."""

    about: str
    pattern: re.Pattern[str]
    why: str

    def settled(self, request: Request, value: Any) -> Any:
        """The same answer, with a sign in every such place."""
        if self.about not in request.what:
            return value

        return replaced(value, lambda text: self.pattern.sub(f"<{self.why}>", text))


def replaced(value: Any, change: Any) -> Any:
    """A JSON value with each text in it changed."""
    if isinstance(value, str):
        return change(value)

    if isinstance(value, dict):
        return {change(key): replaced(inner, change) for key, inner in value.items()}

    return [replaced(inner, change) for inner in value] if isinstance(value, list) else value


def call(tool: str, /, **arguments: Any) -> Request:
    """A call of a tool."""
    return Request("tools/call", {"name": tool, "arguments": arguments})


def prompt(name: str, /, **arguments: str) -> Request:
    """A prompt, with its arguments."""
    return Request("prompts/get", {"name": name, "arguments": arguments})


def read(uri: str) -> Request:
    """The contents of a resource."""
    return Request("resources/read", {"uri": uri})


def complete(kind: str, about: str, argument: str, value: str, /, **before: str) -> Request:
    """What an argument of a prompt or a template may be."""
    key = "name" if kind == "ref/prompt" else "uri"
    params: dict[str, Any] = {
        "ref": {"type": kind, key: about},
        "argument": {"name": argument, "value": value},
    }
    return Request(
        "completion/complete", {**params, "context": {"arguments": before}} if before else params
    )


UNKNOWN = "only what bridge offers can be asked for, so nobody else hears of it"
NO_CALL = "these params are no call, whoever the server is"
NO_METHOD = "the protocol has no such method, or no server here has what it is about"
REFUSED: Sequence[Request] = (
    Request("tools/call", {"name": "no-such-tool", "arguments": {}}, (UNKNOWN, [-32602])),
    Request("prompts/get", {"name": "no-such-prompt"}, (UNKNOWN, [-32602, -32601])),
    Request("tools/call", {"name": "no-such-tool", "arguments": "none"}, (NO_CALL, [-32602])),
    Request("tools/call", {"arguments": {}}, (NO_CALL, [-32602])),
    Request("resources/read", {}, (NO_CALL, [-32602])),
    Request("no/such/method", {}, (NO_METHOD, [-32601])),
)
"""What every server is asked, too, and bridge refuses in its own words."""

TIME = (
    call("get_current_time", timezone="Europe/Berlin"),
    call("convert_time", source_timezone="Asia/Tokyo", time="16:30", target_timezone="UTC"),
    call("convert_time", source_timezone="Asia/Tokyo", time="36:30", target_timezone="UTC"),
    call("get_current_time", timezone="Nowhere/At_All"),
    call("get_current_time"),
)
TIME_VARIES = (
    Varying("get_current_time", re.compile(r"T\d\d:\d\d:\d\d"), "the time of day"),
    Varying("e_time", re.compile(r"\d{4}-\d\d-\d\d"), "today"),
)

REPOSITORY = f"{PLACE}/repository"
GIT = (
    call("git_status", repo_path=REPOSITORY),
    call("git_create_branch", repo_path=REPOSITORY, branch_name="{run}"),
    call("git_checkout", repo_path=REPOSITORY, branch_name="{run}"),
    call("git_branch", repo_path=REPOSITORY, branch_type="local"),
    call("git_diff_unstaged", repo_path=REPOSITORY, context_lines=1),
    call("git_add", repo_path=REPOSITORY, files=["new.txt"]),
    call("git_diff_staged", repo_path=REPOSITORY),
    call("git_diff", repo_path=REPOSITORY, target="main"),
    call("git_reset", repo_path=REPOSITORY),
    call("git_add", repo_path=REPOSITORY, files=["README"]),
    call("git_commit", repo_path=REPOSITORY, message="Zweite Änderung 🎈"),
    call("git_log", repo_path=REPOSITORY, max_count=2),
    call("git_show", repo_path=REPOSITORY, revision="HEAD"),
    call("git_show", repo_path=REPOSITORY, revision="no-such-revision"),
    call("git_status", repo_path="/"),
    call("git_checkout", repo_path=REPOSITORY, branch_name="main"),
    call("git_log"),
)

FILESYSTEM = (
    call("list_allowed_directories"),
    call("read_file", path=f"{PLACE}/words.txt"),
    call("read_text_file", path=f"{PLACE}/words.txt", head=1),
    call("read_media_file", path=f"{PLACE}/pixel.png"),
    call("read_multiple_files", paths=[f"{PLACE}/words.txt", f"{PLACE}/missing"]),
    call("write_file", path=f"{PLACE}/new.txt", content="ä\u2028\n"),
    call(
        "edit_file",
        path=f"{PLACE}/new.txt",
        edits=[{"oldText": "ä", "newText": "🎈"}],
        dryRun=False,
    ),
    call("create_directory", path=f"{PLACE}/folder"),
    call("move_file", source=f"{PLACE}/new.txt", destination=f"{PLACE}/folder/{{run}}.txt"),
    call("list_directory", path=PLACE),
    call("list_directory_with_sizes", path=PLACE, sortBy="size"),
    call("directory_tree", path=PLACE, excludePatterns=["*.png"]),
    call("search_files", path=PLACE, pattern="**/*.txt"),
    call("get_file_info", path=f"{PLACE}/words.txt"),
    call("read_text_file", path="/etc/passwd"),
    call("read_text_file", path=f"{PLACE}/words.txt", head=1, tail=1),
    call("read_text_file", path=17),
)
FILESYSTEM_VARIES = (
    Varying("get_file_info", re.compile(r"(?m)^(created|modified|accessed): .*$"), "when"),
)

ANNA = {"name": "Anna", "entityType": "person", "observations": ["sings", "東京"]}
BEN = {"name": "Ben", "entityType": "person", "observations": []}
KNOWS = {"from": "Anna", "to": "Ben", "relationType": "knows"}
MEMORY = (
    call("create_entities", entities=[ANNA, BEN]),
    call("create_relations", relations=[KNOWS]),
    call("add_observations", observations=[{"entityName": "Ben", "contents": ["{run}"]}]),
    call("add_observations", observations=[{"entityName": "Nobody", "contents": ["x"]}]),
    call("read_graph"),
    read("memory://knowledge-graph"),
    call("search_nodes", query="sings"),
    call("open_nodes", names=["Ben", "Nobody"]),
    call("delete_observations", deletions=[{"entityName": "Anna", "observations": ["sings"]}]),
    call("delete_relations", relations=[KNOWS]),
    call("delete_entities", entityNames=["Ben"]),
    call("search_nodes"),
    read("memory://nothing"),
)

STATIC = "demo://resource/static/document"
EVERYTHING = (
    call("echo", message="naïve \u2028 🎈"),
    call("echo"),
    call("get-sum", a=0.1, b=2e300),
    call("get-tiny-image"),
    call("get-annotated-message", messageType="error", includeImage=True),
    call("get-annotated-message", messageType="no such type"),
    call("get-structured-content", location="New York"),
    call("get-resource-links", count=3),
    call("get-resource-reference", resourceType="Blob", resourceId=2),
    call("get-resource-reference", resourceType="Text", resourceId=0),
    call("gzip-file-as-resource", name="a.gz", data="data:text/plain,abc", outputType="resource"),
    call("gzip-file-as-resource", name="b.gz", data="data:text/plain,abc"),
    call("trigger-long-running-operation", duration=0.1, steps=2),
    read(f"{STATIC}/features.md"),
    read("demo://resource/dynamic/text/3"),
    read("demo://resource/dynamic/blob/3"),
    read("demo://resource/dynamic/text/none"),
    read("demo://resource/nothing"),
    prompt("simple-prompt"),
    prompt("args-prompt", city="Paris", state="TX"),
    prompt("completable-prompt", department="Engineering", name="Alice"),
    prompt("resource-prompt", resourceType="Text", resourceId="1"),
    prompt("args-prompt"),
    complete("ref/prompt", "completable-prompt", "department", "E"),
    complete("ref/prompt", "completable-prompt", "name", "", department="Sales"),
    complete("ref/resource", "demo://resource/dynamic/text/{resourceId}", "resourceId", "1"),
)
CLOCK = re.compile(r"\d{1,2}:\d\d:\d\d [AP]M")
EVERYTHING_VARIES = (
    Varying("dynamic/", CLOCK, "the time of day"),
    Varying("get-resource-reference", CLOCK, "the time of day"),
    Varying("resource-prompt", CLOCK, "the time of day"),
    Varying("dynamic/blob", re.compile(r"^[A-Za-z0-9+/=]{40,}$"), "base64 of the time of day"),
    Varying(
        "get-resource-reference",
        re.compile(r"^[A-Za-z0-9+/=]{40,}$"),
        "base64 of the time of day",
    ),
    Varying("gzip-file", re.compile(r"^H4sI[A-Za-z0-9+/=]+$"), "gzip, which holds the time"),
)

RICH = {"name": "x", "contactMethod": "phone", "phone": "1", "address": {"city": "Oslo"}}
OURS = (
    call("test_simple_text"),
    call("test_image_content"),
    call("test_audio_content"),
    call("test_embedded_resource"),
    call("test_multiple_content_types"),
    call("test_error_handling"),
    call("test_tool_with_progress"),
    call("test_logging_tool"),
    call("json_schema_2020_12_tool", **RICH),
    call("test_custom_headers", region="naïve ", priority=3, urgent=False, query="q"),
    call("test_sampling", prompt="?"),
    call("test_elicitation", message="?"),
    call("test_missing_capability"),
    call("test_input_required_result_list_roots"),
    call("test_input_required_result_capabilities"),
    prompt("test_simple_prompt"),
    prompt("test_prompt_with_arguments", arg1="ä", arg2=""),
    prompt("test_prompt_with_embedded_resource", resourceUri="test://static-text"),
    prompt("test_prompt_with_image"),
    prompt("test_input_required_result_prompt"),
    read("test://static-text"),
    read("test://static-binary"),
    read("test://watched-resource"),
    read("test://template/5/data"),
    read("test://nothing"),
    complete("ref/prompt", "test_prompt_with_arguments", "arg1", "par"),
    complete("ref/resource", "test://template/{id}/data", "id", "test"),
)
