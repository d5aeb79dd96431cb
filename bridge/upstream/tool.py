"""One tool of an MCP server, as a function tool like any other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from bridge.core.caller import Caller
from bridge.core.confirmation import Subject, json_hash
from bridge.core.content import Args, Blob, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.dialects.dialect import Dialect, in_dialect
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import InvalidArguments, UpstreamError
from bridge.tools.gate import Rule, check
from bridge.upstream.channel import Options, Params
from bridge.upstream.connection import Connection
from bridge.upstream.inputs import settle
from bridge.upstream.media import Media, keep_media, shown_media
from bridge.upstream.progress import with_progress
from bridge.upstream.protocol import COMPLETE
from bridge.upstream.results import NONE_KEPT, error_text, to_response
from bridge.upstream.routing import mirror, mirrored
from bridge.upstream.sessions import Sessions

UNREAD: Result = {}
"""What stands for a model's reading of an answer that no model reads: a megabyte costs to read."""


@dataclass(frozen=True, slots=True)
class MCPTool:
    """A tool that runs on an upstream.

    `definition` is the server's own, untouched; `name` and `description` are what is offered.
    `rule`, if any, is asked just before the call is sent. `media` is what a model gets of the
    pictures, sounds and files in an answer; an MCP client gets the answer as it is. `task`, if any,
    asks a legacy server to run each call as a task, and answer with that.
    """

    sessions: Sessions
    definition: dict[str, Any] = field(repr=False)
    subject: Subject
    name: str
    description: str
    timeout: float | None = None
    rule: Rule | None = None
    mirrored: Mapping[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    media: Media = "text"
    task: Mapping[str, Any] | None = None

    @property
    def connection(self) -> Connection:
        """The connection that clients share, where they do."""
        return self.sessions.shared

    @property
    def own_name(self) -> str:
        """The name the upstream knows it by."""
        return self.subject.tool

    @property
    def upstream(self) -> str:
        """The name of the upstream it runs on."""
        return self.subject.upstream

    @property
    def is_long_running(self) -> bool:
        """An MCP call ends with its answer."""
        return False

    def declaration(self, dialect: Dialect | None = None) -> Declaration:
        """What a model reads: the server's schemas as they are; absent stays absent.

        Raises:
            InvalidSchema: They cannot be said in this dialect.
        """
        told = Declaration(
            self.name,
            self.description,
            self.definition.get("inputSchema"),
            self.definition.get("outputSchema"),
        )
        return in_dialect(told, dialect)

    def with_rule(self, rule: Rule) -> MCPTool:
        """The same tool behind `rule`, and behind the one it has, as one question."""
        return replace(self, rule=rule if self.rule is None else self.rule.and_also(rule))

    def relabelled(self, name: str, description: str | None = None) -> MCPTool:
        """The same tool, offered under another name or with another description."""
        told = self.description if description is None else description
        return replace(self, name=name, description=told)

    def as_task(self, task: Mapping[str, Any]) -> MCPTool:
        """The same tool, whose calls are run as tasks of this kind (MCP 2025-11-25, tasks)."""
        return replace(self, task=task)

    def may_ask(self, caller: Caller | None) -> bool:
        """Whether the server may send this client requests while a call of its runs."""
        return self.sessions.may_ask(caller)

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool into the request."""
        pack_tool(request, self)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Pass the gate, call the upstream, and make `{"output": …}` of its answer.

        What a modern server needs to know, and a modern client will tell it, is an UpstreamError
        with the server's answer as it is.

        Raises:
            ToolError: Not approved, not available, refused by the server, or outcome unknown.
        """
        if self.rule is not None:
            await check(ctx, self.rule, self.subject, args)

        caller = ctx.caller
        options = _plain(self.timeout) if caller is None else Options(self.timeout, caller=caller)
        if ctx.on_progress is None:
            raw = await self._call(args, options)
        else:
            raw = await with_progress(
                lambda listen: self._call(args, options._replace(on_progress=listen)),
                ctx.on_progress,
            )

        if raw.get("isError"):
            raise UpstreamError(error_text(raw), raw, is_protocol_error=False)

        kept = NONE_KEPT
        if self.media == "artifacts":
            kept = await keep_media(raw, self.name, ctx.artifacts)

        response = UNREAD if ctx.is_relayed else to_response(raw, kept)
        ctx.upstream_answer = (response, raw)
        return response

    def media_beside(self, raw: Result) -> tuple[Blob, ...]:
        """The pictures and sounds that a model gets beside the text of an answer of this tool."""
        return shown_media(raw) if self.media == "parts" else ()

    async def _call(self, args: Args, options: Options) -> Result:
        if self.mirrored:
            options = options._replace(headers=mirror(self.mirrored, args))

        params: Params = {"name": self.subject.tool, "arguments": args}
        if self.task is not None:
            params["task"] = self.task

        started = time.monotonic()
        try:
            raw = await self.sessions.of(options.caller).request("tools/call", params, options)
        except ValueError as exc:  # nothing was sent
            raise InvalidArguments(
                f'the arguments of "{self.own_name}" cannot be sent: {exc}'
            ) from exc

        if raw.get("resultType", COMPLETE) == COMPLETE:
            return raw

        raw = await settle(raw, self.sessions, "tools/call", params, options, started)
        if raw.get("resultType", COMPLETE) != COMPLETE:
            said = f'upstream "{self.upstream}": "{self.own_name}" goes on when its client has'
            raise UpstreamError(f"{said} come back", raw, is_protocol_error=False)

        return raw


@lru_cache(maxsize=64)
def _plain(timeout: float | None) -> Options:
    """What a call carries that no MCP client waits for."""
    return Options(timeout)


def tools_from(
    sessions: Sessions | Connection,
    definitions: list[dict[str, Any]],
    timeout: float | None,
    media: Media = "text",
) -> tuple[MCPTool, ...]:
    """A tool for each definition, with all that can be worked out once a listing."""
    if isinstance(sessions, Connection):
        sessions = Sessions(sessions)

    make = partial(MCPTool, sessions, timeout=timeout, media=media)
    upstream = sessions.shared.name
    return tuple(
        make(
            definition=definition,
            subject=Subject(upstream, definition["name"], json_hash(definition)),
            name=definition["name"],
            description=str(definition.get("description") or ""),
            mirrored=mirrored(definition.get("inputSchema")),
        )
        for definition in definitions
    )
