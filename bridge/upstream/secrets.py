"""What may be secret in an argument list or a URL, so that neither is shown where people look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

SHORTEST_SECRET = 6
MASK = "***"

_TELLING = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|cookie|auth|bearer|header"
    r"|(?:api|access|private|signing|encryption)?[-_]?key(?![a-z])",
    re.IGNORECASE,
)
"""A flag or a variable whose name has one of these is taken to hold a secret."""

_WITH_VALUE = re.compile(r"(?P<name>-*[A-Za-z][\w.-]*)(?:=|:\s*)(?P<value>.+)", re.DOTALL)


def masked(text: str, secrets: Iterable[str]) -> str:
    """`text` with each of these values taken out; the longest first, for one may hold another.

    So is the beginning of one at the end, where a text may have been cut.
    """
    known = sorted((one for one in secrets if len(one) >= SHORTEST_SECRET), key=len, reverse=True)
    for value in known:
        text = text.replace(value, MASK)

    end = text.rstrip("\ufffd")  # what is left of a character that was cut itself
    cut = max((_begun(end, value) for value in known), default=0)
    return end[:-cut] + MASK if cut else text


def _begun(text: str, value: str) -> int:
    """How many characters of `value`, and not just a few, are the end of `text`."""
    longest = min(len(value), len(text))
    lengths = range(longest, SHORTEST_SECRET - 1, -1)
    return next((length for length in lengths if text.endswith(value[:length])), 0)


def secrets_in_url(url: str) -> Iterator[str]:
    """The user, the password and the query of a URL, and every value in it, as sent and decoded."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return

    userinfo = parts.netloc.rpartition("@")[0]
    for text in (userinfo, *userinfo.split(":", 1), parts.query):
        yield text
        yield unquote(text)

    for pair in parts.query.split("&"):
        yield pair.partition("=")[2]

    for _, value in parse_qsl(parts.query):
        yield value


def secrets_in_header(value: str) -> tuple[str, str]:
    """A header's value, and what follows the scheme in one such as "Bearer x"."""
    return value, value.partition(" ")[2]


def secrets_in_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """The values that telling flags and variables have, and what URLs hold beside the address."""
    flag = ""
    for argument in arguments:
        found = _WITH_VALUE.fullmatch(argument)
        if "://" in argument:
            yield from secrets_in_url(argument[_start_of_url(argument) :])

        if found is not None and _TELLING.search(found["name"]):
            yield from secrets_in_header(found["value"])
        elif _TELLING.search(flag) and not argument.startswith("-"):
            yield from secrets_in_header(argument)
            if found is not None:
                yield from secrets_in_header(found["value"])

        flag = argument if argument.startswith("-") and "=" not in argument else ""


def _start_of_url(argument: str) -> int:
    """Where a URL begins in `--flag=https://…`, or in the URL alone."""
    before = argument.partition("://")[0]
    return max(before.rfind(sign) for sign in "= ,;") + 1
