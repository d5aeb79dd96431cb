"""Which URIs a template makes."""

from __future__ import annotations

import time

import pytest

from bridge.downstream.templates import UriTemplate

MADE = [
    ("file:///{path}", "file:///a.txt"),
    ("file:///{+path}", "file:///a/b/c.txt"),
    ("test://template/{id}/data", "test://template/7/data"),
    ("db://{table}/{row}{?full}", "db://t/1"),
    ("db://{table}/{row}{?full}", "db://t/1?full=yes"),
    ("x://a{/rest*}", "x://a/b/c"),
    ("x://a{.kind}", "x://a.txt"),
    ("x://a{#part}", "x://a#b/c"),
    ("x://a?q=1{&more}", "x://a?q=1&more=2"),
    ("{scheme}://host", "http://host"),
    ("plain://text", "plain://text"),
    ("x://{a}-{b}", "x://1-2-3"),
]
NOT_MADE = [
    ("file:///{path}", "file:///a/b"),
    ("file:///{path}", "file:///"),
    ("file:///{path}", "http:///a"),
    ("test://template/{id}/data", "test://template/7/data/more"),
    ("db://{table}/{row}{?full}", "db://t/1#x"),
    ("plain://text", "plain://texts"),
    ("x://a{/rest}", "x://ab"),
]


@pytest.mark.parametrize(("template", "uri"), MADE)
def test_uri_that_a_template_makes_is_known(template: str, uri: str) -> None:
    assert UriTemplate(template).makes(uri)


@pytest.mark.parametrize(("template", "uri"), NOT_MADE)
def test_uri_that_no_value_gives_is_not_taken_for_one(template: str, uri: str) -> None:
    assert not UriTemplate(template).makes(uri)


def test_hostile_pair_costs_no_more_than_its_length() -> None:
    template = UriTemplate("x://" + "{a}-" * 40 + "!")
    started = time.process_time()

    assert not template.makes("x://" + "-" * 4000)

    assert time.process_time() - started < 5, "seconds of the processor: it went back and forth"
