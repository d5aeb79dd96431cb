"""What may be said of results that are too large to send whole."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, field_validator

from bridge.config.closed import Closed
from bridge.config.fields import Duration, Size, bad, to_bytes, wrong
from bridge.config.process import Directory
from bridge.config.units import KIB

OFF = "off"
SMALLEST = 16 * KIB


def _to_bound(value: Any) -> int | None:
    if value is None or value == OFF:
        return None

    bound = to_bytes(value)
    if bound < SMALLEST:
        raise wrong("is too small. Write at least 16KiB, or off.")

    return bound


class ResultsSettings(Closed):
    """Results of more than `max_size` are cut, and kept whole for the client to read.

    None is off: results go out as they are. Each is kept for `keep`, and of all of them `total`
    at most, the oldest going first, in a private directory inside of `directory`; None is where
    the system keeps temporary files.
    """

    max_size: Annotated[int | None, BeforeValidator(_to_bound)] = KIB * KIB
    keep: Duration = 3600.0
    total: Size = 256 * KIB * KIB
    directory: Directory | None = None

    @field_validator("total", mode="after")
    @classmethod
    def _holds_one(cls, total: int, info: ValidationInfo) -> int:
        most = info.data.get("max_size")
        if most is not None and total < most:
            raise bad("it is smaller than max_size: no large result could be kept.")

        return total
