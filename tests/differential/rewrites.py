"""The declared differences between a server's answer and what a client of bridge reads.

Nothing else may differ: the suite applies these to the server's own answer and compares the
outcome with what came through bridge, whole. Each entry of `REWRITES` says why it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from bridge.downstream.kept import TEMPLATE
from bridge.tools.names import offered_name
from bridge.version import VERSION
from tests.differential.addressing import View
from tests.differential.requests import Request
from tests.differential.talk import LISTS, VERSIONS, Era
from tests.differential.wire import Message

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
TASKS = "io.modelcontextprotocol/tasks"
STAMP = {"name": "bridge", "version": VERSION}
MISSING, URL_NEEDED, INVALID_PARAMS, METHOD_NOT_FOUND = -32002, -32042, -32602, -32601
OWN = "(bridge's own)"
"""Stands in an expected error for what bridge words by itself."""

NEVER_CACHED = {"ttlMs": 0, "cacheScope": "private"}


Change: TypeAlias = Callable[[View, str, Message], Message]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One declared difference."""

    name: str
    why: str
    change: Change


def expected(view: View, request: Request, reply: Message) -> Message:
    """What a client of bridge must be answered, given how the server answers."""
    if request.ours is not None:
        return {"error": {"code": list(request.ours[1]), "message": OWN}}

    uri = request.params.get("uri", "")
    if request.method == "resources/read" and view.addressing.is_anybodys(uri):
        # What one server says of it would not be true of all that were asked.
        code = INVALID_PARAMS if view.era == "modern" else MISSING
        data = {"uri": view.asked(request)["uri"]}
        return {"error": {"code": [code], "message": OWN, "data": data}}

    view = replace(view, uri=str(view.asked(request).get("uri", "")))
    for rewrite in REWRITES:
        reply = rewrite.change(view, request.method, reply)

    return reply


def merged(views: Sequence[View], method: str, replies: Sequence[Message]) -> Message:
    """The list that clients read: that of all members, each rewritten, in the order of names."""
    key = LISTS[method]
    found: list[Any] = []
    for view, reply in zip(views, replies, strict=True):
        if "result" in reply:
            found += expected(view, Request(method), reply)["result"][key]

    if key == "resourceTemplates":
        found.append(TEMPLATE)

    # Of resources bridge has its own: what is too large for an answer is kept for its client.
    if all("error" in reply for reply in replies) and "resource" not in key:
        return {"error": {"code": [METHOD_NOT_FOUND], "message": OWN}}

    identity = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(key, "name")
    found.sort(key=lambda one: (one is TEMPLATE, str(one[identity])))
    body: dict[str, Any] = {key: found}
    if views[0].era == "modern":
        body |= {**NEVER_CACHED, "resultType": "complete", "_meta": {SERVER_INFO: STAMP}}

    return {"result": body}


def greeting(era: Era, greetings: Sequence[Message]) -> Message:
    """The answer to `initialize` or `server/discover`: who we are, and what truly crosses."""
    crossing = _crossing(era, [one["result"].get("capabilities", {}) for one in greetings])
    if era == "legacy":
        result = {"protocolVersion": VERSIONS["legacy"], "serverInfo": STAMP}
        return {"result": {**result, "capabilities": crossing}}

    known = {"supportedVersions": [VERSIONS["modern"]], "capabilities": crossing, **NEVER_CACHED}
    return {"result": {**known, "resultType": "complete", "_meta": {SERVER_INFO: STAMP}}}


def _crossing(era: Era, declared: Sequence[Message]) -> Message:
    """The capabilities of several servers that reach a client of this era.

    Tools and resources are there in any case: large results are read as resources. What is listed
    may always change. `experimental` does not cross, legacy tasks do where calls become tasks.
    """
    shared: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}}
    has = {name for one in declared for name in one}
    if "prompts" in has:
        shared["prompts"] = {"listChanged": True}

    if "resources" in has:
        follows = any(one.get("resources", {}).get("subscribe") for one in declared)
        shared["resources"] = {"listChanged": True, **({"subscribe": True} if follows else {})}

    if "completions" in has:
        shared["completions"] = {}

    if era == "legacy" and "logging" in has:
        shared["logging"] = {}  # a modern client says with each request what it wants

    tasks = [one["tasks"] for one in declared if "tools" in _task_requests(one)]
    if era == "legacy" and tasks:
        cancel: Message = {"cancel": {}} if any("cancel" in one for one in tasks) else {}
        shared["tasks"] = {"list": {}, **cancel, "requests": {"tools": {"call": {}}}}

    extensions = _extensions(era, declared)
    return {**shared, "extensions": extensions} if extensions else shared


def _task_requests(declared: Message) -> Message:
    found: Message = declared.get("tasks", {}).get("requests", {})
    return found


def _extensions(era: Era, declared: Sequence[Message]) -> Message:
    """Of two servers' settings for one, those of the first; a legacy client has no tasks."""
    found: dict[str, Any] = {}
    for one in reversed(declared):
        found |= one.get("extensions", {})

    return {name: value for name, value in found.items() if era == "modern" or name != TASKS}


def _on_result(change: Callable[[View, str, Message], Message]) -> Change:
    def changed(view: View, method: str, reply: Message) -> Message:
        if "result" not in reply:
            return reply

        return {**reply, "result": change(view, method, reply["result"])}

    return changed


def _on_list(key: str, change: Callable[[View, Message], Message]) -> Change:
    def changed(view: View, method: str, result: Message) -> Message:
        if LISTS.get(method) != key:
            return result

        return {**result, key: [change(view, one) for one in result[key]]}

    return _on_result(changed)


def _names(view: View, one: Message) -> Message:
    return {**one, "name": offered_name(view.member.prefix, one["name"])}


def _uris(view: View, value: Any) -> Any:
    """Every URI where the protocol has one: resources, links, embedded ones, an app's."""
    if isinstance(value, list):
        return [_uris(view, one) for one in value]

    if not isinstance(value, dict):
        return value

    changed = dict(value)
    if isinstance(changed.get("uri"), str):
        changed["uri"] = view.addressing.outward(view.member, changed["uri"])

    for key in ("content", "resource", "contents", "messages"):
        if key in changed:
            changed[key] = _uris(view, changed[key])

    meta = changed.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    if isinstance(meta, dict) and isinstance(ui, dict) and "resourceUri" in ui:
        uri = view.addressing.outward(view.member, ui["resourceUri"])
        changed["_meta"] = {**meta, "ui": {**ui, "resourceUri": uri}}

    return changed


def _template(view: View, one: Message) -> Message:
    return {**one, "uriTemplate": view.addressing.template(view.member, one["uriTemplate"])}


def _input_schema(view: View, tool: Message) -> Message:
    return {"inputSchema": {"type": "object"}, **tool}


def _output_schema(view: View, tool: Message) -> Message:
    schema = tool.get("outputSchema")
    is_object = isinstance(schema, dict) and schema.get("type") == "object"
    if view.era == "modern" or is_object:
        return tool

    return {key: value for key, value in tool.items() if key != "outputSchema"}


def _era_fields(view: View, method: str, result: Message) -> Message:
    kept = {k: v for k, v in result.items() if k not in ("resultType", "ttlMs", "cacheScope")}
    meta = {k: v for k, v in result.get("_meta", {}).items() if k != SERVER_INFO}
    if view.era == "legacy":
        had_only_ours = "_meta" in kept and not meta and kept["_meta"]
        return (
            {k: v for k, v in kept.items() if k != "_meta"}
            if had_only_ours
            else {**kept, **({"_meta": meta} if "_meta" in kept else {})}
        )

    hints = NEVER_CACHED if method == "resources/read" else {}
    return {
        **hints,
        **result,
        "resultType": result.get("resultType", "complete"),
        "_meta": {**meta, SERVER_INFO: STAMP},
    }


def _missing(view: View, method: str, reply: Message) -> Message:
    error = reply.get("error")
    if not isinstance(error, dict) or method != "resources/read":
        return reply

    data = error.get("data", {})
    says_uri = isinstance(data, dict) and "uri" in data
    if error.get("code") != MISSING and not (error.get("code") == INVALID_PARAMS and says_uri):
        return reply

    more = {"data": {"uri": view.uri, **data}} if isinstance(data, dict) else {}
    return {"error": {**error, **more, "code": MISSING}}


def _codes(view: View, method: str, reply: Message) -> Message:
    error = reply.get("error")
    if isinstance(error, dict) and error.get("code") in (MISSING, URL_NEEDED):
        code = INVALID_PARAMS if view.era == "modern" else error["code"]
        return {"error": {**error, "code": code}}

    return reply


REWRITES: Sequence[Rewrite] = (
    Rewrite(
        "tool names", "the prefix tells upstreams apart; names are legal", _on_list("tools", _names)
    ),
    Rewrite("prompt names", "as for tools", _on_list("prompts", _names)),
    Rewrite(
        "URIs on conflict",
        "two upstreams have the same, so each says whose it is",
        _on_result(lambda view, method, result: _uris(view, result)),
    ),
    Rewrite(
        "listed URIs on conflict",
        "the same",
        _on_list("resources", _uris),
    ),
    Rewrite("listed templates on conflict", "the same", _on_list("resourceTemplates", _template)),
    Rewrite("URIs in definitions", "an app's resource may be claimed", _on_list("tools", _uris)),
    Rewrite(
        "absent input schema",
        "clients refuse a whole list for one tool without",
        _on_list("tools", _input_schema),
    ),
    Rewrite(
        "output schema of no object",
        "a legacy client refuses a whole list for one; its era allows objects only",
        _on_list("tools", _output_schema),
    ),
    Rewrite(
        "era fields",
        "resultType, ttlMs, cacheScope and the server's stamp belong to the modern era, each hop",
        _on_result(_era_fields),
    ),
    Rewrite(
        "missing resources",
        "each era has its own words for them; in both the data says which",
        _missing,
    ),
    Rewrite("error codes", "the modern era has taken two of them away", _codes),
)
"""Beside these: `merged` (one page, in the order of names, and a template of bridge's own) and
`greeting` (who we are, and what truly crosses)."""
