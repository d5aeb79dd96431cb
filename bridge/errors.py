"""Every error bridge raises, in one tree.

* BridgeError
  x ConfigError               the configuration cannot be used: what, where, what to do
  x ToolError                 one call failed: {"error": …} for a model, isError for a client
    + ToolNotFound              no tool of that name can run here
    + InvalidArguments          the arguments do not fit the tool
    + ConfirmationRequired      not a failure: the call waits for a person
    + ConfirmationRejected      a person said no
    + UpstreamError             the MCP server itself answered with an error
    + UpstreamUnavailable       provably not run; may be repeated
    + OutcomeUnknown            sent, no answer; never repeated
    + Overloaded                refused because a bound is reached; provably not run
    + TimedOut                  the time this work was given is over
    + CalledOff                 what this work belonged to was called off
  x ToolsetError              listing or preparing tools failed: ends the step
    + DuplicateTool             two tools claim one name
    + InvalidSchema             a schema that nothing could be checked against
    + PinMismatch               a definition is not the one that was accepted
  x CapabilityError           this context cannot do that; the text says what can
  x Unauthorized              who is asking is not known, or may not
  x NoSuchStateKey            neither this call nor the session has that key of state
  x ServiceMissing            this run was given no such service
  x ModelError                a model could not be asked, or gave no answer that can be used
  x StoreError                what should rest could not be written, or read
    + SessionNotFound           no session has that key
    + SessionExists             a new session's key is taken
    + StaleSession              the held session is behind the stored one; nothing was written
    + ArtifactNotFound          no artifact has that name, or no such version
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class BridgeError(Exception):
    """Base of every error raised on purpose. `exit_code` is what the command line ends with."""

    exit_code = 1


class ConfigError(BridgeError):
    """The configuration cannot be used; `problems` holds one line for each thing wrong with it."""

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems


class ToolError(BridgeError):
    """One tool call failed; the text is safe to show to whoever called."""


class ToolNotFound(ToolError):
    """The caller named a tool that cannot run here."""

    exit_code = 2


class InvalidArguments(ToolError):
    """The arguments do not fit the tool; nothing ran."""


class ConfirmationRequired(ToolError):
    """The call waits until a person answers; nothing ran."""


class ConfirmationRejected(ToolError):
    """A person said no; nothing ran."""


class UpstreamError(ToolError):
    """The MCP server answered with an error.

    `raw` is its answer as it came: a result with `isError`, or, where `is_protocol_error`,
    a JSON-RPC error object with `code`, `message` and perhaps `data`.
    """

    def __init__(self, message: str, raw: dict[str, Any], *, is_protocol_error: bool) -> None:
        super().__init__(message)
        self.raw = raw
        self.is_protocol_error = is_protocol_error


class UpstreamUnavailable(ToolError):
    """The MCP server could not be asked; the call provably did not run and may be repeated."""


class OutcomeUnknown(ToolError):
    """The call was sent and no answer came; it may have run and must not be repeated blindly."""


class Overloaded(ToolError):
    """A bound is reached; the call provably did not run and may be repeated later."""


class TimedOut(ToolError, TimeoutError):
    """The time this work was given is over. Nothing else ends: the run goes on."""


class CalledOff(ToolError):
    """What this work belonged to was called off by whoever holds its cancel function."""


class ToolsetError(BridgeError):
    """Listing or preparing tools failed, so the step that needs them cannot go on."""


class DuplicateTool(ToolsetError):
    """Two tools claim one name."""


class InvalidSchema(ToolsetError):
    """A schema that nothing could be checked against."""


class PinMismatch(ToolsetError):
    """A tool's definition is not the one that was accepted."""


class CapabilityError(BridgeError, AttributeError):
    """This context cannot do that; the text says which one can. `hasattr` is False."""


class Unauthorized(BridgeError):
    """Who is asking is not known, or may not do this."""


class NoSuchStateKey(BridgeError, KeyError):
    """Neither this call nor the session has that key of state."""

    __str__ = Exception.__str__  # a KeyError would show the repr of its sentence


class ServiceMissing(BridgeError):
    """This run was given no such service; the text says who can give it."""


class ModelError(BridgeError):
    """A model could not be asked, or gave no answer that can be used.

    `status` is the HTTP status that its provider answered with, where it did.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class StoreError(BridgeError):
    """What should rest could not be written, or what rests could not be read."""


class SessionNotFound(StoreError):
    """No session has that key."""


class SessionExists(StoreError):
    """A new session's key is taken; the session that has it is unchanged."""


class StaleSession(StoreError):
    """The held session is behind the stored one; nothing was written. Get it anew, then retry."""


class ArtifactNotFound(StoreError):
    """No artifact has that name, or the artifact has no such version."""
