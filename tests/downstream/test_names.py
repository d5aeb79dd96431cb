from __future__ import annotations

import pytest

from bridge.downstream.names import names_of

LOOPBACK = names_of("127.0.0.1", [], [])
NAMED = names_of(
    "0.0.0.0",
    ["bridge.example", "other.example:8443"],
    ["https://app.example", "http://app.example:3000", "vscode-webview://abc"],
)

EVIL_HOSTS = [
    "",
    "evil.example",
    "evil.example:8808",
    "localhost.evil.example",
    "localhost:80@evil.example",
    "user@localhost",
    "user:pw@localhost:80",
    "localhost:port",
    "localhost:",
    "localhost:123456",
    "localhost:99999",
    "localhost/",
    "localhost?x",
    "localhost#x",
    "local host",
    "localhost ",
    " localhost",
    "localhost,evil.example",
    "localhost.",
    "127.0.0.1.evil.example",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0.0.0.0",
    "10.0.0.1",
    "::1",
    "[::1",
    "[::2]",
    "[evil]",
    "http://localhost",
    "lоcalhost",  # noqa: RUF001  the second letter is Cyrillic
]


@pytest.mark.parametrize("host", EVIL_HOSTS)
def test_a_host_that_is_not_ours_is_not_accepted(host: str) -> None:
    assert not LOOPBACK.accepts_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:80",
        "localhost:8808",
        "localhost:1",
        "127.0.0.1",
        "127.0.0.1:9000",
        "127.0.0.2:9000",
        "[::1]",
        "[::1]:8808",
        "[0:0:0:0:0:0:0:1]:8808",
    ],
)
def test_loopback_names_are_accepted_with_any_port(host: str) -> None:
    assert LOOPBACK.accepts_host(host)
    assert NAMED.accepts_host(host)


def test_a_named_host_is_accepted_exactly_as_it_was_named() -> None:
    assert NAMED.accepts_host("bridge.example")
    assert NAMED.accepts_host("Bridge.Example:1234")
    assert NAMED.accepts_host("other.example:8443")
    assert not NAMED.accepts_host("other.example")
    assert not NAMED.accepts_host("other.example:8444")
    assert not NAMED.accepts_host("sub.bridge.example")
    assert not NAMED.accepts_host("bridge.example.evil")


def test_the_address_a_server_listens_on_is_one_of_its_names() -> None:
    assert names_of("192.168.7.7", [], []).accepts_host("192.168.7.7:8808")
    assert names_of("fd00::7", [], []).accepts_host("[fd00::7]:8808")
    assert not LOOPBACK.accepts_host("192.168.7.7:8808")


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost:80@evil.example",
        "http://localhost@evil.example",
        "http://evil.example#localhost",
        "http://localhost/",
        "http://localhost/path",
        "http://localhost http://evil.example",
        "ftp://localhost",
        "file://localhost",
        "localhost",
        "//localhost",
        "http:localhost",
        "http://",
        "http://localhost:port",
        "http://localhost:70000",
    ],
)
def test_a_foreign_origin_is_not_accepted(origin: str) -> None:
    assert not LOOPBACK.accepts_origin(origin)


@pytest.mark.parametrize(
    "origin",
    ["http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "HTTP://[::1]:5173"],
)
def test_pages_of_this_machine_are_accepted(origin: str) -> None:
    assert LOOPBACK.accepts_origin(origin)


def test_a_named_origin_is_accepted_with_its_own_scheme_and_port() -> None:
    for origin in ("https://app.example", "https://APP.example:443", "http://app.example:3000"):
        assert NAMED.accepts_origin(origin)

    assert NAMED.accepts_origin("vscode-webview://abc")
    for origin in ("http://app.example", "https://app.example:444", "http://app.example:3001"):
        assert not NAMED.accepts_origin(origin)


@pytest.mark.parametrize(
    ("hosts", "origins", "wrong"),
    [
        (["http://a.example"], [], '"http://a.example" is not usable: a host is written'),
        (["a.example:*"], [], '"a.example:*" is not usable'),
        ([], ["a.example"], '"a.example" is not usable: an origin is written'),
        ([], ["https://a.example/"], '"https://a.example/" is not usable'),
    ],
)
def test_a_name_that_could_never_match_is_an_error(
    hosts: list[str], origins: list[str], wrong: str
) -> None:
    with pytest.raises(ValueError, match="is not usable") as refused:
        names_of("127.0.0.1", hosts, origins)

    assert wrong in str(refused.value)
