"""What a model reads of an MCP answer: exact forms, nothing lost without a word."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bridge.upstream.results import error_text, to_response, to_text


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


PNG = {"type": "image", "mimeType": "image/png", "data": b64(b"\x89PN")}
WAV = {"type": "audio", "mimeType": "audio/wav", "data": b64(b"RI")}


def embedded(**resource: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": resource}


@pytest.mark.spec("11.5")
def test_media_are_described_on_lines_of_their_own() -> None:
    content = [text("media:"), PNG, WAV, text(""), text("done")]

    assert to_text(content) == (
        "media:\n"
        '[MCP image: mimeType="image/png", size=3 bytes]\n'
        '[MCP audio: mimeType="audio/wav", size=2 bytes]\n'
        "done"
    )


@pytest.mark.spec("11.6")
def test_binary_resource_is_described_and_an_empty_one_has_no_size() -> None:
    pdf = {"uri": "f:/r.pdf", "mimeType": "application/pdf"}

    assert to_text([embedded(**pdf, blob=b64(b"%PDF"))]) == (
        '[MCP embedded resource: uri="f:/r.pdf", mimeType="application/pdf", size=4 bytes]'
    )
    assert to_text([embedded(**pdf, blob="")]) == (
        '[MCP embedded resource: uri="f:/r.pdf", mimeType="application/pdf"]'
    )


@pytest.mark.spec("11.7")
@pytest.mark.parametrize(
    ("mime", "data", "body"),
    [
        ("application/problem+json; charset=utf-8", b'{"status":"ok"}', '{"status":"ok"}'),
        ("text/plain; name=my file.txt", b"hello", "hello"),
        ("text/plain", "größe".encode(), "größe"),
        ("text/plain; charset=US-ASCII", b"plain", "plain"),
        ("application/yaml", b"a: 1", "a: 1"),
        ('text/plain; charset="utf-8"', b"quoted", "quoted"),
        ("text/plain; charset=utf-16", b"h\0i\0", None),
        ("text/plain; charset=ascii", b"\xc3\xa9", None),
        ("text/plain", b"\xff\xfe", None),
        ("application/octet-stream", b"text", None),
        ("not a type", b"text", None),
        ('text/plain; charset="utf-8', b"text", None),
        ('text/plain; name=my"charset=utf-16"', b"text", None),
        ("text/plain; charset", b"text", None),
    ],
)
def test_blob_is_read_only_where_it_is_surely_text(
    mime: str, data: bytes, body: str | None
) -> None:
    written = to_text([embedded(uri="x:1", mimeType=mime, blob=b64(data))])

    quoted = mime.replace('"', '\\"')
    label = f'uri="x:1", mimeType="{quoted}"'
    if body is None:
        assert written == f"[MCP embedded resource: {label}, size={len(data)} bytes]"
    else:
        assert written == f"[MCP embedded resource: {label}]\n{body}"


@pytest.mark.spec("11.8")
def test_line_ends_that_are_there_are_not_doubled() -> None:
    link = {"type": "resource_link", "uri": "https://example.com/x", "mimeType": "text/plain"}

    assert to_text([text("downloaded\n"), link]) == (
        'downloaded\n[MCP resource link: uri="https://example.com/x", mimeType="text/plain"]'
    )
    assert to_text([PNG, text("\nnotes")]) == (
        '[MCP image: mimeType="image/png", size=3 bytes]\nnotes'
    )
    assert to_text([text("before"), {"type": "hologram"}, text("after")]) == (
        "before\n[MCP content: unsupported]\nafter"
    )
    assert to_text([text("one"), text("two")]) == "onetwo"


def test_what_is_missing_is_said() -> None:
    content = [
        None,
        {"type": "text"},
        {"type": "image"},
        {"type": "audio", "data": ""},
        {"type": "resource_link"},
        {"type": "resource", "resource": None},
        embedded(uri="x:1", text="read me", blob=b64(b"12")),
        "not a block",
    ]

    assert to_text(content).splitlines() == [
        "[MCP content: unavailable]",
        "[MCP text content: unavailable]",
        "[MCP image: unavailable]",
        "[MCP audio: size=0 bytes]",
        "[MCP resource link]",
        "[MCP embedded resource: unavailable]",
        '[MCP embedded resource: uri="x:1", size=2 bytes]',
        "read me",
        "[MCP content: unsupported]",
    ]


def test_resource_link_shows_what_it_has_in_order() -> None:
    link = {
        "type": "resource_link",
        "size": 12,
        "description": "d",
        "title": "t",
        "name": "n",
        "uri": "u:1",
    }

    assert to_text([link]) == (
        '[MCP resource link: uri="u:1", name="n", title="t", description="d", size=12 bytes]'
    )


@pytest.mark.spec("11.9")
@pytest.mark.parametrize("value", [{"sha": "abc123"}, {}, [], 0, False, "", None])
def test_any_structured_value_beats_content(value: Any) -> None:
    assert to_response({"content": [text("other")], "structuredContent": value}) == {
        "output": value
    }


@pytest.mark.spec("11.11")
@pytest.mark.parametrize("content", [None, [], [text(""), text("")]])
def test_no_content_is_an_empty_output_and_no_error(content: Any) -> None:
    assert to_response({"content": content}) == {"output": ""}
    assert to_response({}) == {"output": ""}


@pytest.mark.spec("11.10")
def test_error_text_comes_from_the_content() -> None:
    link = {"type": "resource_link", "uri": "https://example.com/error", "mimeType": "text/plain"}

    assert error_text({"isError": True, "content": [text("download failed"), link]}) == (
        "Tool execution failed. Details: download failed\n"
        '[MCP resource link: uri="https://example.com/error", mimeType="text/plain"]'
    )
    assert error_text({"isError": True, "content": []}) == "Tool execution failed."
    assert error_text({"isError": True, "structuredContent": 0}) == "Tool execution failed."
