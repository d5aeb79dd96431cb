"""What the suite wants of a client, and how bridge is configured for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LISTING = ("initialize", "request-metadata", "json-schema-ref-no-deref")
"""The scenarios whose tools, if any, cannot be called."""

DESCRIPTION = "https://conformance-test.local/client-metadata.json"
"""Where the suite says that a description of its client is."""

SETTLED = ("client_id", "client_secret", "issuer")
ECHO = "json_schema_echo"
RICH = "json_schema_2020_12_tool"
VALUES: Mapping[str, Any] = {
    "string": "text",
    "number": 2.5,
    "integer": 3,
    "boolean": True,
    "array": [],
    "object": {},
}
"""A value of each type of JSON Schema."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the suite wants."""

    url: str
    scenario: str
    version: str
    context: Mapping[str, Any]

    @classmethod
    def given(cls, url: str, env: Mapping[str, str]) -> Task:
        """The task, as the suite's environment variables tell it."""
        return cls(
            url,
            env.get("MCP_CONFORMANCE_SCENARIO", ""),
            env.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25"),
            json.loads(env.get("MCP_CONFORMANCE_CONTEXT", "{}")),
        )


@contextmanager
def config(task: Task) -> Iterator[Path]:
    """A configuration of bridge whose one upstream is the suite's server."""
    with tempfile.TemporaryDirectory(prefix="bridge-conformance-") as place:
        path = Path(place, "bridge.yaml")
        path.write_text(json.dumps(_settings(task, place)), "utf-8")  # JSON is YAML
        yield path


def _settings(task: Task, place: str) -> dict[str, Any]:
    server: dict[str, Any] = {"url": task.url, "prefix": ""}
    if task.scenario.startswith("auth/"):
        given = {key: task.context[key] for key in SETTLED if key in task.context}
        login = {"client_metadata_url": DESCRIPTION, "token_store": f"{place}/login.json"}
        server["oauth"] = {**login, **given}

    # A login may take longer than an embedded toolset waits for one upstream.
    return {"upstreams": {"server": server}, "serve": {"startup_wait": "60s"}}


def calls(
    task: Task, schemas: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls that the scenario names, else one of every tool on offer."""
    if (named := task.context.get("toolCalls")) is not None:
        yield from ((call["name"], call["arguments"]) for call in named)
        return

    for name, schema in () if task.scenario in LISTING else schemas.items():
        if name == ECHO:
            yield name, {"schema": schemas[RICH]}
        elif ECHO not in schemas:
            yield name, _arguments(schema)


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {
        name: VALUES.get(properties.get(name, {}).get("type", "string"), "text")
        for name in schema.get("required", ())
    }
