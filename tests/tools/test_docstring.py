"""What a docstring says of a function and of its parameters."""

from __future__ import annotations

import pytest

from bridge.tools.docstring import Docstring, parse_docstring

GOOGLE = """Look up the weather.

    It is fresh every hour.

    Args:
        city: Where to look,
            in any language.
        days (int, optional): How far ahead: 1 to 7.

    Returns:
        dict: The weather.

    Raises:
        LookupError: No such city.

    Example:
        weather("Tokyo")
    """

NUMPY = """Look up the weather.

    It is fresh every hour.

    Parameters
    ----------
    city : str
        Where to look,
        in any language.
    days, hours : int, optional
        How far ahead.

    Returns
    -------
    dict
        The weather.
    """

SPHINX = """Look up the weather.

    It is fresh every hour.

    :param city: Where to look,
        in any language.
    :param int days: How far ahead.
    :type city: str
    :returns: The weather.
    :raises LookupError: No such city.
    """


def test_google_style_is_read() -> None:
    assert parse_docstring(GOOGLE) == Docstring(
        'Look up the weather.\n\nIt is fresh every hour.\n\nExample:\n    weather("Tokyo")',
        {"city": "Where to look, in any language.", "days": "How far ahead: 1 to 7."},
    )


def test_numpy_style_is_read() -> None:
    assert parse_docstring(NUMPY) == Docstring(
        "Look up the weather.\n\nIt is fresh every hour.",
        {
            "city": "Where to look, in any language.",
            "days": "How far ahead.",
            "hours": "How far ahead.",
        },
    )


def test_sphinx_style_is_read() -> None:
    assert parse_docstring(SPHINX) == Docstring(
        "Look up the weather.\n\nIt is fresh every hour.",
        {"city": "Where to look, in any language.", "days": "How far ahead."},
    )


@pytest.mark.parametrize("text", [None, "", "\n   \n"])
def test_an_absent_docstring_says_nothing(text: str | None) -> None:
    assert parse_docstring(text) == Docstring("", {})


def test_a_sentence_that_ends_in_a_colon_begins_no_section() -> None:
    text = "Convert values as follows:\n    first a, then b.\n\nNotes: none."
    assert parse_docstring(text) == Docstring(text, {})
