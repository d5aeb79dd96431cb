"""Nothing that may be secret in a command or a URL is shown where people look."""

from __future__ import annotations

import pytest

from bridge.errors import ConfigError
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.target import Endpoint, to_target

SECRET = "s3cret-canary"


@pytest.mark.parametrize(
    "arguments",
    [
        (f"--token={SECRET}",),
        ("--api-key", SECRET),
        ("-e", f"GITHUB_TOKEN={SECRET}"),
        ("--header", f"Authorization: Bearer {SECRET}"),
        ("--header", f"X-Thing:{SECRET}"),
        (f"postgresql://admin:{SECRET}@db.example/app",),
        (f"--database=postgresql://admin:{SECRET}@db.example/app",),
        (f"https://mcp.example/mcp?session={SECRET}",),
        ("--db-password", SECRET, "run"),
    ],
)
def test_a_secret_among_the_arguments_is_shown_nowhere(arguments: tuple[str, ...]) -> None:
    command = Command(("npx", *arguments))
    connection = Connection("x", command)

    shown = f"{command} {command!r} {connection.status()}"
    said = command.without_secrets(f'refused: "{SECRET}"')

    assert SECRET not in shown
    assert said == 'refused: "***"'
    assert str(command).startswith("npx (and ")


def test_a_positional_secret_is_not_shown_either() -> None:
    assert str(Command(("serve", SECRET))) == "serve (and 1 argument)"
    assert repr(Command(("serve", SECRET, "x"))) == "<Command serve (and 2 arguments)>"
    assert str(Command(("serve",))) == "serve"


def test_plain_arguments_stay_in_what_a_server_says() -> None:
    command = Command(("python", "-m", "my_server", "--directory", "/srv/data", "monitor"))

    said = "my_server: cannot open /srv/data, monitor is off"

    assert command.without_secrets(said) == said


def test_a_url_is_shown_without_its_user_and_query_and_they_are_taken_out_of_texts() -> None:
    url = f"https://user-name:{SECRET}@mcp.example:8443/mcp?key=a%2Fb-{SECRET}&page=1"
    endpoint = Endpoint(url, headers={"Authorization": "Bearer another-canary"})

    shown = f"{endpoint} {endpoint!r} {Connection('x', endpoint).status()}"
    said = endpoint.without_secrets(f"{url} a/b-{SECRET} another-canary")

    assert "canary" not in shown + said
    assert "user-name" not in shown + said
    assert str(endpoint) == "https://mcp.example:8443/mcp"


def test_a_shell_line_is_refused_without_its_secrets() -> None:
    with pytest.raises(ConfigError, match="'--token=\\*\\*\\*'") as raised:
        to_target(f"npx server --token={SECRET}")

    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("secret", ["s3cr3t-value", "pässwörd-123", "x" * 40 + "y"])
def test_of_a_secret_that_is_cut_no_part_is_shown(secret: str) -> None:
    endpoint = Endpoint("https://example.com/mcp", headers={"Authorization": f"Bearer {secret}"})
    echoed = f"bad header: {secret}".encode()
    for end in range(len(echoed) + 1):
        shown = endpoint.without_secrets(echoed[:end].decode(errors="replace"))

        assert secret[:6] not in shown
        assert shown.startswith("bad header: "[:end])
