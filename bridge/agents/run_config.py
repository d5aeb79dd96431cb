"""How one run is to be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bridge.calls.call import Runner as TaskRunner
from bridge.calls.call import side_by_side
from bridge.core.scope import Key


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What a caller of the runner may choose.

    `streaming` asks the model for its answer in pieces. `save_input_blobs` keeps what the user
    sends as bytes as artifacts, and tells the model only their names. `most_model_calls` bounds
    one agent's run. `task_runner` runs the calls of one batch.
    """

    streaming: bool = False
    save_input_blobs: bool = False
    most_model_calls: int = 500
    task_runner: TaskRunner = side_by_side


DEFAULT_RUN: Final = RunConfig()
RUN_CONFIG: Final[Key[RunConfig]] = Key("run config")
