"""The file of an audit, as it may be written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from bridge.config.fields import wrong


def _is_file(value: Any) -> Any:
    if isinstance(value, Path):
        return value

    if not isinstance(value, str):
        raise wrong("is no file. Write a path, such as audit.jsonl.")

    if not value or "\0" in value:
        raise wrong("is no name of a file. Write a path, such as audit.jsonl.")

    return Path(value)


AuditFile = Annotated[Path, BeforeValidator(_is_file)]
