"""The configuration as values: checked, frozen, and safe to print. Knows no file.

Durations are seconds, sizes are bytes. Settings stop at the gateway: below it, plain arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from bridge.config.agent import AgentSettings
from bridge.config.audit import AuditFile
from bridge.config.closed import Closed
from bridge.config.fields import Duration, Flag, ServerName, Size, UpstreamName, Wait, bad
from bridge.config.network import (
    AllowedHost,
    Headers,
    Host,
    Origin,
    Port,
    Token,
    Transport,
    Url,
    UrlPath,
    WorkerCount,
    is_loopback,
)
from bridge.config.oauth import OAuthSettings, login_in_words
from bridge.config.process import Argv, Directory, Env
from bridge.config.results import ResultsSettings
from bridge.config.secret import SecretMapping
from bridge.config.session import SessionCount, SessionPolicy
from bridge.config.state import StateSettings
from bridge.config.tool_rules import (
    ConfirmRule,
    Describe,
    Function,
    Globs,
    LocalConfirm,
    Media,
    Prefix,
    Rename,
    SomeGlobs,
    ToolName,
)
from bridge.config.units import KIB

INCOMPLETE = "incomplete"
"""The error of what is missing; it stands where the key would be."""


class ToolRules(Closed):
    """What of an upstream's tools is offered, and how; all names and globs are its own.

    `allow` empty offers every tool; `deny` wins over it. `rename` and `describe` go from own
    name to new name or description. `confirm` is True (a person is asked before every call),
    False, globs, or a provider "module:function".
    """

    allow: SomeGlobs = ()
    deny: Globs = ()
    rename: Rename = Field(default_factory=dict)
    describe: Describe = Field(default_factory=dict)
    confirm: ConfirmRule = False


class UpstreamSettings(Closed):
    """One MCP server: a command that speaks over its standard streams, or a URL.

    Exactly one of `command` (an argument list; no shell) and `url` is set. `env`, which reads
    as a mapping of plain texts, is given to the command besides the few variables every child
    gets; `headers` likewise ride on every request to the URL; with `oauth`, a person logs in
    there. `prefix` None is "<upstream>__".
    `timeout` bounds a whole call, `connect_timeout` the connecting; `max_message` one message.
    `media` is what an agent's model gets of pictures and sounds in answers: a description
    ("text"), them, too ("parts"), or the names under which they are kept ("artifacts").
    `session` says whether clients share one session ("shared") or have their own ("per-client");
    "auto" is the latter for clients that a server of the handshake may ask something. There are
    `most_sessions` of them at most, each closed after `session_idle` seconds without a request.
    """

    command: Argv = ()
    url: Url | None = Field(default=None, validate_default=True)
    env: Env = Field(default_factory=SecretMapping)
    cwd: Directory | None = None
    transport: Transport = "auto"
    headers: Headers = Field(default_factory=SecretMapping)
    oauth: OAuthSettings | None = None
    prefix: Prefix | None = None
    tools: ToolRules = Field(default_factory=ToolRules)
    media: Media = "text"
    timeout: Duration = 60.0
    connect_timeout: Duration = 10.0
    max_message: Size = 32 * KIB * KIB
    session: SessionPolicy = "auto"
    most_sessions: SessionCount = 100
    session_idle: Duration = 600.0
    enabled: Flag = True

    @field_validator("url", mode="after")
    @classmethod
    def _one_target(cls, url: str | None, info: ValidationInfo) -> str | None:
        command = info.data.get("command", True)  # absent here: it is refused on its own
        if command and url:
            raise bad("an upstream has a command or a url, and this one has both. Remove one.")

        if not command and url is None:
            raise PydanticCustomError(
                INCOMPLETE,
                'it has neither "command" nor "url". Add "command: [program, argument]" '
                'or "url: https://…".',
            )

        return url

    @field_validator("oauth", mode="before")
    @classmethod
    def _login_in_words(cls, value: Any) -> Any:
        return login_in_words(value)

    @field_validator("oauth", mode="after")
    @classmethod
    def _one_authorization(
        cls, oauth: OAuthSettings | None, info: ValidationInfo
    ) -> OAuthSettings | None:
        names = {name.lower() for name in info.data.get("headers", ())}
        if oauth is not None and "authorization" in names:
            raise bad("headers has an Authorization already. Remove that, or this.")

        return oauth

    @field_validator("transport", "headers", "oauth", mode="after")
    @classmethod
    def _needs_url(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("command") and value and value != "auto":
            raise bad("this is for a url, and the upstream is a command. Remove it.")

        return value

    @field_validator("env", "cwd", mode="after")
    @classmethod
    def _needs_command(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("url") and value:
            raise bad("this is for a command, and the upstream is a url. Remove it.")

        return value


class LocalToolSettings(Closed):
    """A Python function that is a tool: "module:function", perhaps under another name.

    `confirm` is True, False or a provider "module:function".
    """

    function: Function
    name: ToolName | None = None
    confirm: LocalConfirm = False


class HttpSettings(Closed):
    """Where HTTP clients connect. `token`, where set, is the bearer token they must send.

    `port` 0 takes any free one. `allowed_hosts` and `allowed_origins` are accepted besides
    those of the loopback interface. `workers` is how many processes serve them together.
    """

    host: Host = "127.0.0.1"
    port: Port = 8808
    path: UrlPath = "/mcp"
    token: Token | None = None
    allowed_hosts: tuple[AllowedHost, ...] = ()
    allowed_origins: tuple[Origin, ...] = ()
    workers: WorkerCount = 1

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


class ServeSettings(Closed):
    """How bridge presents itself, how long it waits for upstreams before it answers, who looks on.

    `audit` is a file that gets a line for each call, with the SHA-256 of its arguments, or with
    the arguments where `audit_arguments`. `metrics` adds a page to the HTTP front, `tracing` a
    span of OpenTelemetry's to each call. `state` is shared with other bridges that serve the same
    clients, and outlives a restart; None lives in this process and ends with it.
    """

    name: ServerName = "bridge"
    startup_wait: Wait = 2.0
    http: HttpSettings = Field(default_factory=HttpSettings)
    state: StateSettings | None = None
    audit: AuditFile | None = None
    audit_arguments: Flag = False
    metrics: Flag = False
    tracing: Flag = False

    @field_validator("audit_arguments", mode="after")
    @classmethod
    def _needs_audit(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("audit", True) is None:
            raise bad("this is for an audit, and there is none. Add one, or remove this.")

        return value


class Settings(Closed):
    """A whole configuration: at least one upstream or local tool."""

    upstreams: dict[UpstreamName, UpstreamSettings] = Field(default_factory=dict)
    tools: tuple[LocalToolSettings, ...] = Field(default=(), validate_default=True)
    serve: ServeSettings = Field(default_factory=ServeSettings)
    results: ResultsSettings = Field(default_factory=ResultsSettings)
    agent: AgentSettings = Field(default_factory=AgentSettings)

    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read and has no effect here, one sentence each, with its place."""
        return self._notes

    def with_notes(self, notes: tuple[str, ...]) -> Self:
        """The same settings with these notes."""
        copy = self.model_copy()
        copy._notes = notes
        return copy

    @field_validator("tools", mode="before")
    @classmethod
    def _bare_functions(cls, tools: Any) -> Any:
        if not isinstance(tools, list | tuple):
            return tools

        return [{"function": tool} if isinstance(tool, str) else tool for tool in tools]

    @field_validator("tools", mode="after")
    @classmethod
    def _something_to_serve(
        cls, tools: tuple[LocalToolSettings, ...], info: ValidationInfo
    ) -> tuple[LocalToolSettings, ...]:
        upstreams: Mapping[str, UpstreamSettings] | bool = info.data.get("upstreams", True)
        if not tools and not upstreams:
            raise PydanticCustomError(
                INCOMPLETE,
                'there is nothing to serve. Name an MCP server under "upstreams", '
                'or a function under "tools".',
            )

        return tools
