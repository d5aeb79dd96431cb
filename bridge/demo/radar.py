"""The demo's rain radar: a small picture, drawn here and written as PNG by hand."""

from __future__ import annotations

import random
import struct
import zlib

SIZE = 160  # pixels, each side
RINGS = (26, 52, 78)  # pixels from the middle

# Index into the palette: sea, ring, then rain from light to heavy, then the city itself.
PALETTE = bytes.fromhex("10243c 3c5878 2e8b57 9acd32 ffd700 ff8c00 dc143c ffffff")
RING, LIGHT, HEAVY, CITY = 1, 2, 6, 7

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def radar_png(city: str) -> bytes:
    """Rain around a city, as a square PNG of SIZE; the same city gives the same picture."""
    clouds = _clouds(city)
    rows = [bytes(_pixel(x, y, clouds) for x in range(SIZE)) for y in range(SIZE)]
    return _png(rows)


def _clouds(city: str) -> list[tuple[int, int, int]]:
    """Where it rains: x, y and radius, in pixels."""
    dice = random.Random(city)
    return [
        (dice.randrange(15, SIZE - 15), dice.randrange(15, SIZE - 15), dice.randrange(12, 30))
        for _ in range(6)
    ]


def _pixel(x: int, y: int, clouds: list[tuple[int, int, int]]) -> int:
    from_middle = _distance(x - SIZE // 2, y - SIZE // 2)
    if from_middle < 3:
        return CITY

    # Every cloud is wettest in its middle; where two meet, it rains harder.
    rain = sum(max(0.0, 1 - _distance(x - cx, y - cy) / radius) for cx, cy, radius in clouds)
    if rain > 0.1:
        return min(HEAVY, LIGHT + int(rain * 4))

    return RING if any(abs(from_middle - ring) < 0.6 for ring in RINGS) else 0


def _distance(dx: int, dy: int) -> float:
    return float((dx * dx + dy * dy) ** 0.5)


def _png(rows: list[bytes]) -> bytes:
    """Pixels, one palette index a byte, as a PNG file (W3C PNG, colour type 3)."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    unfiltered = b"".join(b"\0" + row for row in rows)  # each row says: no filter
    return PNG_SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", PALETTE),
            _chunk(b"IDAT", zlib.compress(unfiltered, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
