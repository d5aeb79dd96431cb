"""Which member of a whole context a narrower one has, and what to use instead (§13.5).

The table is a guard rail, not a sandbox: `with_delta` gives the whole context back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from bridge.errors import CapabilityError

Kind: TypeAlias = Literal["callback", "tool"]


class Row(NamedTuple):
    """One member: "" where that kind of context has it, else what to do instead."""

    callback: str = ""
    tool: str = ""


_FROM_A_TOOL = "only a tool call has one; do this in a tool or in a tool's hook"
_END = "return content, or set actions.escalate or actions.skip_summarization in a tool"
_DERIVE = "use scope.with_timeout or scope.with_cancel for one request"
_NODES = "it belongs to workflow nodes"

NARROWING: Final[Mapping[str, Row]] = {
    "agent_name": Row(),
    "app_name": Row(),
    "user_id": Row(),
    "session_id": Row(),
    "invocation_id": Row(),
    "branch": Row(),
    "user_content": Row(),
    "readonly_state": Row(),
    "scope": Row(),
    "state": Row(),
    "artifacts": Row(),
    "with_delta": Row(),
    "with_ic_delta": Row(),
    "actions": Row("use state and artifacts, which file what they do"),
    "function_call_id": Row(_FROM_A_TOOL),
    "request_confirmation": Row(_FROM_A_TOOL),
    "search_memory": Row("search in a tool, or with a tool that preloads memory"),
    "tool_confirmation": Row(_FROM_A_TOOL),
    "with_agent_cancel": Row(_DERIVE),
    "path": Row(_NODES),
    "sub_scheduler": Row(_NODES),
    "output_for_ancestors": Row(_NODES),
    "run_id": Row(_NODES, _NODES),
    "with_agent_timeout": Row(_DERIVE, _DERIVE),
    "with_context": Row(_DERIVE, _DERIVE),
    "with_agent_context": Row(_DERIVE, _DERIVE),
    "with_branch": Row("use with_delta", "use with_delta"),
    "invocation": Row("use the members of this context", "use the members of this context"),
    "agent": Row("use agent_name", "use agent_name"),
    "session": Row(*("use state, session_id, user_id or app_name",) * 2),
    "memory": Row("search in a tool", "use search_memory"),
    "run_config": Row(*("read it in a plugin's hook for the whole run",) * 2),
    "end_invocation": Row(_END, _END),
    "ended": Row(*("the flow checks it between steps",) * 2),
    "isolation_scope": Row(*("history is filtered by it before a model reads it",) * 2),
    "resumed_input": Row(_NODES, "use tool_confirmation for a person's answer to this call"),
}


def refusal(kind: Kind, name: str) -> AttributeError:
    """What to raise where a `kind` context is asked for a member that it does not have."""
    row = NARROWING.get(name)
    instead = "" if row is None else getattr(row, kind)
    if instead:
        return CapabilityError(f"a {kind} context has no {name}: {instead}")

    return AttributeError(f"a {kind} context has no attribute {name!r}")
