"""What all settings are: frozen, closed to unknown keys, silent about values they refuse."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
