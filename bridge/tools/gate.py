"""The gate: the last thing before an effect, where a call may have to wait for a person."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import anyio

from bridge.core.confirmation import Subject, call_hash
from bridge.core.content import Args
from bridge.core.context import ToolContext
from bridge.errors import ConfirmationRejected, ConfirmationRequired
from bridge.telemetry import log
from bridge.tools.cancelled import self_cancelled

Provider: TypeAlias = Callable[[str, Args], bool | Awaitable[bool]]
"""Takes a tool's name and arguments and says whether this call needs a person's yes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a call of one tool needs a yes.

    `name` is what the provider is told. A provider decides alone, whatever `require` says.
    `others` are rules that were joined to this one; the call waits if any of them asks.
    """

    name: str
    require: bool
    provider: Provider | None = None
    others: tuple[Rule, ...] = ()

    def and_also(self, other: Rule) -> Rule:
        """Both rules as one question, which is asked if either of them asks."""
        return replace(self, others=(*self.others, other))

    @property
    def has_provider(self) -> bool:
        """Whether any of the joined rules looks at the arguments."""
        return self.provider is not None or any(other.has_provider for other in self.others)


async def check(
    ctx: ToolContext, rule: Rule, subject: Subject, args: Args, converted: Args | None = None
) -> None:
    """Let a call pass, or stop it because a person has to say yes first, or has said no.

    `args` are the effective arguments, as JSON: a person is shown them, and a yes is bound to
    them. `converted` is what the rule's providers see where the tool has made more of them. A
    decision that is already there beats every policy; a yes whose hash is not this call's is
    no decision on this call, so it is asked anew. A yes lets one call pass and is used up.

    Raises:
        ConfirmationRequired: The question is filed; nothing may run.
        ConfirmationRejected: A person said no; nothing may run.
        InvalidArguments: The question cannot be put, because the arguments are not JSON.
    """
    decision = ctx.tool_confirmation
    if decision is None:
        if await _asks(rule, args if converted is None else converted):
            raise _question(ctx, subject, args)

        return

    if not decision.confirmed:
        raise ConfirmationRejected(f'the call of "{subject.tool}" was rejected; nothing ran')

    if decision.hash is not None and decision.hash != call_hash(ctx.user_id, subject, args):
        raise _question(ctx, subject, args)

    if not decision.use(ctx.actions, subject):
        raise _question(ctx, subject, args)


def check_provider(provider: Callable[..., Any]) -> None:
    """See whether a function can be called as a provider, as far as it tells.

    Raises:
        TypeError: It does not take a tool's name and arguments; the text says why.
    """
    try:
        inspect.signature(provider).bind("name", {})
    except ValueError:  # a built-in does not tell its signature
        return


async def _asks(rule: Rule, args: Args) -> bool:
    """Whether the rule, or any that is joined to it, wants a person to decide."""
    if await _wants_yes(rule, args):
        return True

    for other in rule.others:
        if await _asks(other, args):
            return True

    return False


async def _wants_yes(rule: Rule, args: Args) -> bool:
    """One rule's own answer; a provider that fails or answers neither yes nor no asks."""
    if rule.provider is None:
        return rule.require

    # The provider is a stranger's code: whatever goes wrong in it, a person decides.
    try:
        answer = rule.provider(rule.name, args)
        if inspect.isawaitable(answer):
            answer = await answer
    except anyio.get_cancelled_exc_class() as exc:
        log.warning(
            "%s: asking", self_cancelled(exc, f'the confirmation provider of "{rule.name}"')
        )
        return True
    except Exception:
        log.warning('the confirmation provider of "%s" failed: asking', rule.name, exc_info=True)
        return True

    if not isinstance(answer, bool):
        kind = type(answer).__name__
        log.warning('the confirmation provider of "%s" gave a %s: asking', rule.name, kind)
        return True

    return answer


def _question(ctx: ToolContext, subject: Subject, args: Args) -> ConfirmationRequired:
    """File the question under the call, and make the error that stops it."""
    payload = {
        "arguments": copy.deepcopy(args),
        "hash": call_hash(ctx.user_id, subject, args),
        "tool": subject.tool,
        "upstream": subject.upstream,
    }
    ctx.request_confirmation(f'Please approve or reject this call of "{subject.tool}".', payload)
    return ConfirmationRequired(
        f'"{subject.tool}" needs confirmation and has not run: please approve or reject the call'
    )
