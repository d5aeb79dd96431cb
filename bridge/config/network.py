"""What goes over a network: URLs, headers, hosts, ports, tokens."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SecretStr

from bridge.config.fields import Text, also, bad, fits, number_as_text, wrong
from bridge.config.secret import SecretMapping, hidden

TRANSPORTS = ("auto", "http", "sse")

# As the server reads them; what it would refuse is refused here, where the line is known.
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_AUTHORITY = re.compile(rf"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|{_NAME.pattern})(?::([0-9]{{1,5}}))?")
_LAST_PORT = 65535
_MOST_WORKERS = 256


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`: 127.0.0.0/8, ::1 or localhost."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_authority(text: str) -> bool:
    match = _AUTHORITY.fullmatch(text)
    if match is None or int(match[2] or 0) > _LAST_PORT:
        return False

    return match["address"] is None or _is_ipv6(match["address"])


def _is_ipv6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text)) and "%" not in text
    except ValueError:
        return False


def _is_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False

    if "@" in re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]:
        raise bad(
            "the URL holds a user name or a password. Put credentials into headers: "
            '{Authorization: "Bearer ${TOKEN}"}.'
        )

    if not is_http or not text.isprintable() or " " in text or "#" in text:
        raise bad("this is no http or https URL. Write one like https://mcp.example.com/mcp.")

    return text


def _is_transport(value: Any) -> str:
    if isinstance(value, str) and value in TRANSPORTS:
        return value

    near = difflib.get_close_matches(str(value).lower(), TRANSPORTS, 1)
    raise wrong(
        f'is not a transport. Did you mean "{near[0]}"?'
        if near
        else "is not a transport. Write auto, http or sse."
    )


def _are_apart(headers: Any) -> None:
    """The case of a header's name means nothing, so two that differ in it are one."""
    seen: set[str] = set()
    for name in headers if isinstance(headers, Mapping) else ():
        if str(name).lower() in seen:
            raise bad("one header stands here twice: upper and lower case are the same. Keep one.")

        seen.add(str(name).lower())


def is_host(text: str) -> bool:
    """Whether a server can be told to listen there: a name, or an address without brackets."""
    return _NAME.fullmatch(text) is not None or _is_ipv6(text)


def _is_host(text: str) -> str:
    if not is_host(text):
        raise wrong("is no host. Write a name or an address, such as 127.0.0.1.")

    return text


def _is_allowed_host(text: str) -> str:
    if text.endswith(":*") and _is_authority(text.removesuffix(":*")):
        raise wrong('is no host. Leave the ":*" out: a name without a port stands for any port.')

    if not _is_authority(text):
        raise wrong('is no host. Write "app.example.com" for any port, or "app.example.com:8443".')

    return text


def _is_origin(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https") or not _is_authority(rest):
        raise wrong('is no origin. Write one like "https://app.example.com", without a path.')

    return text


def _is_port(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,5}", value):
        value = int(value)  # what a variable holds is text

    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 65535:
        raise wrong("is no port. Write a number from 1 to 65535, or 0 for any free one.")

    return value


def _is_count(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)  # what a variable holds is text

    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_WORKERS:
        raise wrong(f"is no number of processes. Write one from 1 to {_MOST_WORKERS}.")

    return value


def _is_token(value: Any) -> SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not re.fullmatch("[!-~]+", text):
        raise bad('this is no token. Write text without spaces, best as "${BRIDGE_TOKEN}".')

    return SecretStr(text)


_HeaderName = Annotated[
    Text,
    fits(
        re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"),  # RFC 9110, section 5.6.2
        bad,
        'this is no name of a header. Write "Name: value", with letters, digits and "-" as name.',
    ),
]
_HeaderValue = Annotated[
    Text,
    BeforeValidator(number_as_text),
    fits(
        re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?"),  # RFC 9110, section 5.5, ASCII alone
        bad,
        "this is no value for a header: it holds a line break, a character outside ASCII, "
        "or a space at an end. Remove it.",
    ),
]

Url = Annotated[Text, AfterValidator(_is_url)]
Transport = Annotated[Literal["auto", "http", "sse"], BeforeValidator(_is_transport)]
Headers = Annotated[
    Mapping[_HeaderName, _HeaderValue],
    also(_are_apart),
    AfterValidator(SecretMapping),
    PlainSerializer(hidden),
]
Host = Annotated[Text, AfterValidator(_is_host)]
AllowedHost = Annotated[Text, AfterValidator(_is_allowed_host)]
Origin = Annotated[Text, AfterValidator(_is_origin)]
Port = Annotated[int, BeforeValidator(_is_port)]
WorkerCount = Annotated[int, BeforeValidator(_is_count)]
Token = Annotated[SecretStr, BeforeValidator(_is_token)]
UrlPath = Annotated[
    Text,
    fits(
        re.compile(r"/[A-Za-z0-9._~-]*(?:/[A-Za-z0-9._~-]+)*"),
        wrong,
        'is no path. Begin it with "/" and use letters, digits, "-", "_", "." and "/": /mcp.',
    ),
]
