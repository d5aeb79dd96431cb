from __future__ import annotations

import pytest

from bridge.downstream.auth import token_check
from bridge.errors import ConfigError, Unauthorized


def test_without_a_token_everybody_is_local() -> None:
    check = token_check("127.0.0.1", None)

    assert check.principal([]) == "local"
    assert check.principal(["Bearer whatever"]) == "local"


@pytest.mark.parametrize("sent", ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "])
def test_whoever_sends_the_token_is_named_by_its_hash(sent: str) -> None:
    principal = token_check("0.0.0.0", "s3cret").principal([sent])

    assert principal == "token:1ec1c26b50d5"
    assert "s3cret" not in principal


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Bearer s3cre"],
        ["Bearer s3cret2"],
        ["Bearer S3CRET"],
        ["Basic s3cret"],
        ["s3cret"],
        ["Bearer s3cret", "Bearer s3cret"],
        ["Bearer s3cret, Bearer s3cret"],
        ["Bearer \ud800"],
    ],
)
def test_whatever_else_is_sent_is_refused(sent: list[str]) -> None:
    with pytest.raises(Unauthorized):
        token_check("127.0.0.1", "s3cret").principal(sent)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.168.1.5", "bridge.example"])
def test_a_host_that_others_can_reach_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="no token is configured"):
        token_check(host, None)

    assert token_check(host, "t").token == "t"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_a_loopback_host_needs_none(host: str) -> None:
    assert token_check(host, None).principal([]) == "local"


@pytest.mark.parametrize("token", ["", "  "])
def test_an_empty_token_is_no_token(token: str) -> None:
    with pytest.raises(ConfigError, match="the token is empty"):
        token_check("127.0.0.1", token)


def test_the_token_does_not_show_when_the_check_is_printed() -> None:
    assert "s3cret" not in repr(token_check("127.0.0.1", "s3cret"))
