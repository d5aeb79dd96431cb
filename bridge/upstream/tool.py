"""One tool of an MCP server, as a function tool like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bridge.core.confirmation import Subject, json_hash
from bridge.core.content import Args, Blob, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.errors import InvalidArguments, UpstreamError
from bridge.tools.gate import Rule, check
from bridge.upstream.channel import Options
from bridge.upstream.connection import Connection
from bridge.upstream.media import Media, keep_media, shown_media
from bridge.upstream.progress import with_progress
from bridge.upstream.results import NONE_KEPT, error_text, to_response
from bridge.upstream.routing import mirror, mirrored

COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class MCPTool:
    """A tool that runs on an upstream.

    `definition` is the server's own, untouched; `name` and `description` are what is offered.
    `rule`, if any, is asked just before the call is sent. `media` is what a model gets of the
    pictures, sounds and files in an answer; an MCP client gets the answer as it is.
    """

    connection: Connection
    definition: dict[str, Any] = field(repr=False)
    subject: Subject
    name: str
    description: str
    timeout: float | None = None
    rule: Rule | None = None
    mirrored: Mapping[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    media: Media = "text"

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

    def declaration(self) -> Declaration:
        """What a model reads: the server's schemas as they are; absent stays absent."""
        return Declaration(
            self.name,
            self.description,
            self.definition.get("inputSchema"),
            self.definition.get("outputSchema"),
        )

    def with_rule(self, rule: Rule) -> MCPTool:
        """The same tool behind `rule`, and behind the one it has, as one question."""
        return replace(self, rule=rule if self.rule is None else self.rule.and_also(rule))

    def relabelled(self, name: str, description: str | None = None) -> MCPTool:
        """The same tool, offered under another name or with another description."""
        told = self.description if description is None else description
        return replace(self, name=name, description=told)

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool into the request."""
        pack_tool(request, self)

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Pass the gate, call the upstream, and make `{"output": …}` of its answer.

        Raises:
            ToolError: Not approved, not available, refused by the server, or outcome unknown.
        """
        if self.rule is not None:
            await check(ctx, self.rule, self.subject, args)

        if ctx.on_progress is None:
            raw = await self._call(args, Options(timeout=self.timeout))
        else:
            raw = await with_progress(
                lambda listen: self._call(args, Options(self.timeout, listen)), ctx.on_progress
            )

        if raw.get("resultType", COMPLETE) != COMPLETE:
            kind = str(raw["resultType"])[:40]
            said = (
                f'upstream "{self.upstream}" answered "{self.own_name}" with {kind!r}, '
                "which bridge does not pass on yet"
            )
            answer = {"content": [{"type": "text", "text": said}], "isError": True}
            raise UpstreamError(said, answer, is_protocol_error=False)

        if raw.get("isError"):
            raise UpstreamError(error_text(raw), raw, is_protocol_error=False)

        kept = NONE_KEPT
        if self.media == "artifacts":
            kept = await keep_media(raw, self.name, ctx.artifacts)

        response = to_response(raw, kept)
        ctx.upstream_answer = (response, raw)
        return response

    def media_beside(self, raw: Result) -> tuple[Blob, ...]:
        """The pictures and sounds that a model gets beside the text of an answer of this tool."""
        return shown_media(raw) if self.media == "parts" else ()

    async def _call(self, args: Args, options: Options) -> Result:
        if self.mirrored:
            options = replace(options, headers=mirror(self.mirrored, args))

        params = {"name": self.own_name, "arguments": args}
        try:
            return await self.connection.request("tools/call", params, options)
        except ValueError as exc:  # nothing was sent
            raise InvalidArguments(
                f'the arguments of "{self.own_name}" cannot be sent: {exc}'
            ) from exc


def tools_from(
    connection: Connection,
    definitions: list[dict[str, Any]],
    timeout: float | None,
    media: Media = "text",
) -> tuple[MCPTool, ...]:
    """A tool for each definition, with all that can be worked out once a listing."""
    make = partial(MCPTool, connection, timeout=timeout, media=media)
    return tuple(
        make(
            definition=definition,
            subject=Subject(connection.name, definition["name"], json_hash(definition)),
            name=definition["name"],
            description=str(definition.get("description") or ""),
            mirrored=mirrored(definition.get("inputSchema")),
        )
        for definition in definitions
    )
