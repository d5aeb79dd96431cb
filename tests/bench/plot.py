"""Calls per second and CPU per call of every contender, as one SVG picture, without a library."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tests.bench.compare import ERAS, Cells, cell_of, middle
from tests.bench.contenders import FLOOR, OURS

PANELS = (("calls_per_s", "calls per second", False), ("cpu_us_per_call", "CPU, µs a call", True))
"""What is drawn, how it is headed, and whether less is better."""

COLOURS = {"legacy": "#7a9cc6", "modern": "#2f5d8c"}
OURS_COLOURS = {"legacy": "#f0a860", "modern": "#d9741a"}
FLOOR_COLOURS = {"legacy": "#c4c4c4", "modern": "#9a9a9a"}
KINDS = {
    "head": 'font-size="13" font-weight="bold"',
    "name": 'font-size="12"',
    "ours": 'font-size="12" font-weight="bold"',
    "value": 'font-size="10"',
}
"""How each kind of text is set: as attributes, which every viewer knows, not as a style sheet."""

LABELS, PANEL, NUMBERS, MARGIN = 120, 250, 60, 12
BAR, GAP, HEAD = 11, 9, 44


def svg(cells: Cells) -> str:
    """The picture: for each number of clients a row of two panels, the best contender on top."""
    parts, top = [], MARGIN
    for clients in sorted({cell["clients"] for cell in cells}):
        for column, (key, heading, less_is_better) in enumerate(PANELS):
            left = MARGIN + column * (LABELS + PANEL + NUMBERS)
            plural = "s" if clients > 1 else ""
            title = f"{heading}, {clients} client{plural}"
            parts.append(_text(left, top + 14, title, "head"))
            names = _ranked(cells, clients, key, less_is_better)
            bottom = top + HEAD - 20
            for name in names:
                parts += _bars(cells, clients, name, key, left, bottom)
                bottom += 2 * BAR + GAP

        top = bottom + HEAD - 20

    width = MARGIN * 2 + len(PANELS) * (LABELS + PANEL + NUMBERS)
    height = top + 24
    parts += _legend(top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}"><title>What each gateway does and costs</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<g font-family="sans-serif" fill="#333">{"".join(parts)}</g></svg>\n'
    )


def _ranked(cells: Cells, clients: int, key: str, less_is_better: bool) -> list[str]:
    """The contenders, best first, by their legacy calls, which all of them answer."""
    rows = [(name, _value(cells, clients, name, key)) for name in _names(cells)]
    known = [(value, name) for name, value in rows if value]
    return [name for _, name in sorted(known, reverse=not less_is_better)]


def _names(cells: Cells) -> list[str]:
    return sorted({cell["name"] for cell in cells})


def _value(cells: Cells, clients: int, name: str, key: str, era: str = "legacy") -> float:
    cell = cell_of(cells, era, clients, name)
    return 0.0 if cell is None else middle(cell, key)


def _bars(
    cells: Cells, clients: int, name: str, key: str, left: float, top: float
) -> Iterator[str]:
    longest = max(_value(cells, clients, one, key, era) for one in _names(cells) for era in ERAS)
    kind = "ours" if name == OURS else "name"
    yield _text(left, top + BAR + 4, name, kind)
    colours = {OURS: OURS_COLOURS, FLOOR: FLOOR_COLOURS}.get(name, COLOURS)
    for line, era in enumerate(ERAS):
        value = _value(cells, clients, name, key, era)
        if not value:
            continue

        width, y = max(1.0, value / longest * PANEL), top + line * BAR
        yield (
            f'<rect x="{left + LABELS}" y="{y}" width="{width:.1f}" height="{BAR - 1}" '
            f'fill="{colours[era]}"/>'
        )
        yield _text(left + LABELS + width + 4, y + BAR - 2, f"{value:,.0f}", "value")


def _legend(top: float) -> Iterator[str]:
    left = MARGIN
    for era, colour in COLOURS.items():
        yield f'<rect x="{left}" y="{top}" width="10" height="10" fill="{colour}"/>'
        label = f"{era} era"
        yield _text(left + 15, top + 9, label, "value")
        left += 90

    yield _text(left, top + 9, "in orange bridge, in grey the floor, which is no gateway", "value")


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {KINDS[kind]}>{escape(words)}</text>'
