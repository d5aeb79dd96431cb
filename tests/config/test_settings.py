"""Settings made in Python: the same checks, frozen values, nothing secret in print."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from bridge.config.load import from_mapping
from bridge.config.secret import SecretMapping
from bridge.config.settings import HttpSettings, Settings, ToolRules, UpstreamSettings
from bridge.errors import ConfigError

WEATHER = {"command": ["python", "-m", "bridge.demo"]}


def test_defaults_are_what_the_documentation_says() -> None:
    settings = from_mapping({"upstreams": {"weather": WEATHER}}, Path("/srv"))

    assert settings.upstreams["weather"] == UpstreamSettings(
        command=("python", "-m", "bridge.demo"),
        url=None,
        cwd=Path("/srv"),
        transport="auto",
        prefix=None,
        tools=ToolRules(),
        enabled=True,
    )
    upstream = settings.upstreams["weather"]
    assert (upstream.timeout, upstream.connect_timeout, upstream.max_message) == (60, 10, 2**25)
    assert (dict(upstream.env), dict(upstream.headers)) == ({}, {})
    assert settings.serve.http == HttpSettings(host="127.0.0.1", port=8808, path="/mcp")
    assert (settings.serve.name, settings.serve.startup_wait) == ("bridge", 2.0)
    assert (settings.tools, settings.notes) == ((), ())


def test_settings_do_not_change() -> None:
    settings = from_mapping({"upstreams": {"weather": WEATHER}})

    with pytest.raises(ValidationError):
        settings.serve.http.port = 1

    with pytest.raises(TypeError):
        settings.upstreams["weather"].env["A"] = "b"


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST", False),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("localhost.example.com", False),
        ("example.com", False),
    ],
)
def test_only_loopback_hosts_are_loopback(host: str, is_loopback: bool) -> None:
    assert HttpSettings(host=host).is_loopback is is_loopback


def test_secrets_read_plainly_and_do_not_print() -> None:
    secrets = SecretMapping({"Authorization": "Bearer canary"})

    assert dict(secrets) == {"Authorization": "Bearer canary"}
    assert repr(secrets) == "SecretMapping({'Authorization': '**********'})"
    assert secrets == {"Authorization": "Bearer canary"}
    assert copy.deepcopy(secrets) == pickle.loads(pickle.dumps(secrets)) == secrets


def test_settings_with_the_same_secrets_are_equal_and_others_are_not() -> None:
    def upstream(token: str) -> UpstreamSettings:
        return UpstreamSettings(url="https://example.com/mcp", headers={"Authorization": token})

    assert upstream("a") == upstream("a")
    assert upstream("a") != upstream("b")


def test_a_copy_with_another_port_keeps_the_rest() -> None:
    settings = from_mapping({"upstreams": {"weather": WEATHER}}).with_notes(("a note",))
    http = settings.serve.http.model_copy(update={"port": 9000})

    changed = settings.model_copy(
        update={"serve": settings.serve.model_copy(update={"http": http})}
    )

    assert changed.serve.http.port == 9000
    assert changed.upstreams == settings.upstreams
    assert changed.notes == ("a note",)


def test_a_mapping_may_hold_paths_and_tuples() -> None:
    mapping = {"upstreams": {"weather": {"command": ("python",), "cwd": Path("sub")}}}

    settings = from_mapping(mapping, Path("/srv"))

    assert settings.upstreams["weather"].cwd == Path("/srv/sub")
    assert settings.upstreams["weather"].command == ("python",)


def test_a_mapping_is_expanded_as_a_file_is() -> None:
    mapping = {"upstreams": {"docs": {"url": "${BASE}/mcp"}}}

    settings = from_mapping(mapping, environ={"BASE": "https://example.com"})

    assert settings.upstreams["docs"].url == "https://example.com/mcp"


def test_a_mapping_may_be_of_a_foreign_form() -> None:
    settings = from_mapping({"mcpServers": {"my time": {"command": "uvx", "args": ["x"]}}})

    assert settings.upstreams["my-time"].command == ("uvx", "x")
    assert settings.notes == ('mcpServers."my time": it is named "my-time" here.',)


def test_what_is_wrong_with_a_mapping_is_said_by_key() -> None:
    mapping = {
        "upstreams": {
            "docs": {"url": "https://example.com", "timeout": 5, "tools": {"confirm": object()}}
        },
        "tools": [object()],
    }

    with pytest.raises(ConfigError) as refused:
        from_mapping(mapping)

    assert list(refused.value.problems) == [
        "upstreams.docs.tools.confirm: a Python object is no confirmation. "
        'Write true, false or the text "module:function".',
        'upstreams.docs.timeout: 5 has no unit. Write "5s" for seconds, or use ms, m or h.',
        'tools[0]: a Python object stands where a tool belongs. Write "module:function".',
    ]


def test_an_empty_mapping_says_what_to_add() -> None:
    with pytest.raises(ConfigError) as refused:
        from_mapping({})

    assert list(refused.value.problems) == [
        'there is nothing to serve. Name an MCP server under "upstreams", '
        'or a function under "tools".'
    ]


def test_a_model_that_refuses_does_not_show_what_it_was_given() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate(
            {
                "upstreams": {
                    "docs": {
                        "url": "https://u:canary@x",
                        "headers": {"A": "canary\n"},
                        "env": "canary",
                    }
                },
                "serve": {"http": {"token": "canary canary"}},
            }
        )

    assert "canary" not in str(refused.value)
    assert refused.value.error_count() == 4
