"""What `bridge chat` runs: an agent, the model that speaks for it, and where its sessions rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from bridge.config.closed import Closed
from bridge.config.fields import Text, bad, fits, wrong
from bridge.config.network import Url

SCRIPTED = "scripted-demo"
DATABASES = ("sqlite", "postgresql")
MOST_STEPS = 1000
INSTRUCTION = (
    "You help the person you talk to. Use your tools where they know better than you, and say "
    "so plainly when one of them fails or is not allowed to run."
)

_SHAPES = '{openai_compatible: {base_url: …, model: …}} or {pydantic_ai: "openai:gpt-5"}'


def _is_api_key(value: Any) -> SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not re.fullmatch("[!-~]+", text):
        raise bad('this is no API key. Write text without spaces, best as "${OPENAI_API_KEY}".')

    return SecretStr(text)


def _is_store(value: Any) -> Path | SecretStr:
    """A file by its path; a URL, which may hold a password, as a secret."""
    if isinstance(value, Path | SecretStr):
        return value

    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise bad("this is no database. Write the path of a SQLite file, or a PostgreSQL URL.")

    scheme, separator, _ = value.partition("://")
    if not separator:
        return Path(value)

    if scheme.partition("+")[0] not in DATABASES:
        raise bad(
            "this is the URL of no database that is known here. Write the path of a SQLite file, "
            'or "postgresql://user:${PASSWORD}@host/name".'
        )

    return SecretStr(value)


def _is_count(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,4}", value):
        value = int(value)  # what a variable holds is text

    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_STEPS:
        raise wrong(f"is no number of steps. Write a whole number from 1 to {MOST_STEPS}.")

    return value


_OneWord = re.compile(r"[!-~]{1,200}")
AgentName = Annotated[
    Text,
    fits(
        re.compile(r"(?!user\Z)[A-Za-z0-9_-]{1,64}"),
        wrong,
        'is no name for an agent. Use 1 to 64 letters, digits, "_" or "-"; '
        '"user" is the person who talks to it.',
    ),
]
ModelName = Annotated[
    Text, fits(_OneWord, wrong, "is no name of a model. Write it as its provider does: gpt-5.")
]
ProviderModel = Annotated[
    Text,
    fits(_OneWord, wrong, 'is no model. Write "provider:model", such as "openai:gpt-5".'),
]
ApiKey = Annotated[SecretStr, BeforeValidator(_is_api_key)]
Store = Annotated[Path | SecretStr, BeforeValidator(_is_store)]
Steps = Annotated[int, BeforeValidator(_is_count)]


class OpenAICompatibleSettings(Closed):
    """A model behind a chat-completions API; `base_url` ends before `/chat/completions`."""

    base_url: Url
    model: ModelName
    api_key: ApiKey | None = None


class ModelSettings(Closed):
    """Who speaks for the agent: at most one of these; none is the scripted demo.

    `pydantic_ai` is a model as Pydantic AI names it, "provider:model".
    """

    openai_compatible: OpenAICompatibleSettings | None = None
    pydantic_ai: ProviderModel | None = None

    @property
    def is_scripted(self) -> bool:
        """Whether no model speaks, but a script."""
        return self.openai_compatible is None and self.pydantic_ai is None

    @field_validator("pydantic_ai", mode="after")
    @classmethod
    def _only_one(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and info.data.get("openai_compatible") is not None:
            raise bad("an agent has one model, and this names two. Remove one.")

        return name


class AgentSettings(Closed):
    """An agent over the configured tools, as `bridge chat` runs it.

    `store` is a SQLite file, or the URL of a database; None is a file in the user's state
    directory. `max_steps` bounds how often one turn may ask the model.
    """

    name: AgentName = "assistant"
    instruction: Text = INSTRUCTION
    model: ModelSettings = Field(default_factory=ModelSettings)
    store: Store | None = None
    max_steps: Steps = 50

    @field_validator("model", mode="before")
    @classmethod
    def _in_words(cls, model: Any) -> Any:
        if model == SCRIPTED:
            return ModelSettings()

        if isinstance(model, str):
            raise wrong(f"is no model. Write {SCRIPTED}, {_SHAPES}.")

        if isinstance(model, Mapping) and not model:
            raise bad(f"this names no model. Write {SCRIPTED}, {_SHAPES}.")

        return model
