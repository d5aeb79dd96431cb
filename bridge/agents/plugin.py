"""What may step in around a whole run, its agents, its model and its tools (§6.10, §15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bridge.calls.hooks import Hook
from bridge.core.content import Content
from bridge.core.context import CallbackContext, Context
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.scope import Key
from bridge.errors import ConfigError


class Plugin(Hook):
    """Override what you need; what you do not override is never called.

    A runner's plugins are asked before an agent's own hooks, in the order of their
    registration. In every stage None means "carry on" and anything else ends the stage.
    `after_run` alone is asked of every plugin. `name` is the class's, unless it is set.
    """

    name: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    async def on_user_message(self, ctx: Context, message: Content) -> Content | None:
        """Replace what the user said, before it is stored."""
        return None

    async def before_run(self, ctx: Context) -> Content | None:
        """Answer in the agents' place: that answer is then all that comes of the run."""
        return None

    async def on_event(self, ctx: Context, event: Event) -> Event | None:
        """Replace an event, before it is stored and yielded; pieces of an answer come here, too."""
        return None

    async def after_run(self, ctx: Context) -> None:
        """See the run end, however it ended."""

    async def before_agent(self, ctx: CallbackContext) -> Content | None:
        """Answer in the agent's place; nothing further of it runs."""
        return None

    async def after_agent(self, ctx: CallbackContext) -> Content | None:
        """Add one more answer after the agent's own."""
        return None

    async def before_model(self, ctx: CallbackContext, request: LLMRequest) -> LLMResponse | None:
        """Edit the request, or answer in the model's place."""
        return None

    async def after_model(self, ctx: CallbackContext, response: LLMResponse) -> LLMResponse | None:
        """Replace what the model said."""
        return None

    async def on_model_error(
        self, ctx: CallbackContext, request: LLMRequest, error: Exception
    ) -> LLMResponse | None:
        """Answer where the model failed."""
        return None


class Plugins:
    """The plugins of one runner, in the order in which they are asked."""

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Plugin] = ()) -> None:
        """Raises ConfigError if a plugin is None, or two have one name."""
        names: set[str] = set()
        for member in members:
            if member is None:
                raise ConfigError("a plugin is None; leave it out")

            if member.name in names:
                raise ConfigError(f'two plugins are named "{member.name}"; rename one of them')

            names.add(member.name)

        self.members: tuple[Plugin, ...] = tuple(members)


NO_PLUGINS: Final = Plugins()
PLUGINS: Final[Key[Plugins]] = Key("plugins")
