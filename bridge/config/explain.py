"""What the settings models refused, said in our words, at the line where it is written."""

from __future__ import annotations

import difflib
import itertools
import json
import re
import shlex
from collections.abc import Sequence

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bridge.config.agent import AgentSettings, ModelSettings, OpenAICompatibleSettings
from bridge.config.fields import BAD, WRONG
from bridge.config.nodes import ListNode, MappingNode, Node, ScalarNode, kind
from bridge.config.oauth import OAuthSettings
from bridge.config.problems import Problems, shown
from bridge.config.process import ARGV
from bridge.config.results import ResultsSettings
from bridge.config.settings import (
    INCOMPLETE,
    HttpSettings,
    LocalToolSettings,
    ServeSettings,
    Settings,
    ToolRules,
    UpstreamSettings,
)
from bridge.config.state import StateSettings

UNEXPLAINED = "this cannot be used. Correct it."
Location = Sequence[str | int]

_KEY = "[key]"  # how pydantic marks an error of a mapping's key
_INSIDE: dict[type[BaseModel], dict[str, type[BaseModel]]] = {
    Settings: {"serve": ServeSettings, "results": ResultsSettings, "agent": AgentSettings},
    UpstreamSettings: {"tools": ToolRules, "oauth": OAuthSettings},
    ServeSettings: {"http": HttpSettings, "state": StateSettings},
    AgentSettings: {"model": ModelSettings},
    ModelSettings: {"openai_compatible": OpenAICompatibleSettings},
}
_AROUND: dict[type[BaseModel], tuple[str, type[BaseModel]]] = {
    ToolRules: ("tools", UpstreamSettings),
    OAuthSettings: ("oauth", UpstreamSettings),
    HttpSettings: ("http", ServeSettings),
    StateSettings: ("state", ServeSettings),
    ModelSettings: ("model", AgentSettings),
    OpenAICompatibleSettings: ("openai_compatible", ModelSettings),
}
_OF_AGENT: tuple[type[BaseModel], ...] = (AgentSettings, ModelSettings, OpenAICompatibleSettings)
_FAMILIAR = {
    "args": 'Put the arguments into the command: "command: [program, argument]".',
    "type": 'Write "transport: auto", "http" or "sse" beside a url, and nothing beside a command.',
    "disabled": 'Write "enabled: false".',
}
_ESSENTIAL: dict[type[BaseModel], tuple[str, ...]] = {
    Settings: ("upstreams", "tools"),
    UpstreamSettings: ("command", "url"),
}
_WANTED = {
    "string_type": ("a text", "Write one text, in quotes if it looks like something else."),
    "tuple_type": ("a list", "Write [item, item], or one item a line behind a dash."),
    "dict_type": ("a mapping", 'Write "key: value" lines.'),
    "mapping_type": ("a mapping", 'Write "key: value" lines.'),
    "model_type": ("a mapping", 'Write "key: value" lines.'),
    "path_type": ("a text", "Write the path of a directory."),
}
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./-]+")
_WORDS_SHOWN = 2


def explain(error: ValidationError, root: Node, problems: Problems) -> None:
    """Add what `error` holds against `root` to `problems`, but for values known to be broken."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    mistyped = {detail["loc"][:-1] for detail in details if _is_mistyped(detail)}
    for detail in details:
        location = detail["loc"]
        if detail["type"] == INCOMPLETE and location[:-1] in mistyped:
            continue  # what is missing is there, under a name that is already complained of

        is_key = bool(location) and location[-1] == _KEY
        node = _nearest(root, location[:-1] if is_key else location)
        if not _is_broken(node):
            problems.add(node.place, _sentence(detail, node, is_key=is_key))


def _is_mistyped(detail: ErrorDetails) -> bool:
    if detail["type"] != "extra_forbidden":
        return False

    model = _model(detail["loc"][:-1])
    return _near(str(detail["loc"][-1]), model) in _ESSENTIAL.get(model, ())


def _nearest(root: Node, location: Location) -> Node:
    """The node at a location; where nothing is written there, the one that lacks it."""
    node = root
    for part in location:
        if isinstance(node, MappingNode) and part in node.entries:
            node = node.entries[str(part)]
        elif isinstance(node, ListNode) and isinstance(part, int):
            node = node.items[part]
        else:
            break

    return node


def _is_broken(node: Node) -> bool:
    children = node.items if isinstance(node, ListNode) else (node,)
    return any(isinstance(child, ScalarNode) and child.is_broken for child in children)


def _sentence(detail: ErrorDetails, node: Node, *, is_key: bool) -> str:
    error, location = detail["type"], detail["loc"]
    if error == "model_type" and _model(location) is LocalToolSettings:
        return f'{kind(node)} stands where a tool belongs. Write "module:function".'

    if error in _WANTED:
        wanted, advice = _WANTED[error]
        return f"{kind(node)} stands where {wanted} belongs. {advice}"

    if error == "extra_forbidden":
        return f"this key is not known. {_advice(str(location[-1]), _model(location[:-1]))}"

    if error == "missing":
        return f'"{location[-1]}" is missing. Add it.'

    if error == ARGV:
        return f"{detail['msg']} {_list_form(node)}"

    if error == WRONG:
        subject = shown(str(location[-2])) if is_key else _subject(node)
        return f"{subject} {detail['msg']}"

    return detail["msg"] if error in (BAD, INCOMPLETE) else UNEXPLAINED


def _subject(node: Node) -> str:
    if not isinstance(node, ScalarNode) or node.is_secret:
        return "this value"

    if isinstance(node.value, str):
        return shown(node.value)

    return json.dumps(node.value) if isinstance(node.value, int | float) else kind(node)


def _model(location: Location) -> type[BaseModel]:
    """Whose keys stand at a location."""
    match location:
        case ():
            return Settings
        case ("upstreams", _):
            return UpstreamSettings
        case ("upstreams", _, key):
            return _INSIDE[UpstreamSettings].get(str(key), ToolRules)
        case ("tools", _):
            return LocalToolSettings
        case ("serve" | "results" as part,):
            return _INSIDE[Settings][part]
        case ("serve", "state"):
            return StateSettings
        case ("agent", *inner):
            return _OF_AGENT[len(inner)]
        case _:
            return HttpSettings


def _advice(key: str, model: type[BaseModel]) -> str:
    """What to do about an unknown key: where it belongs, what it may be, or what there is."""
    for name, inside in _INSIDE.get(model, {}).items():
        if key in inside.model_fields:
            return f'Put it under "{name}".'

    name, around = _AROUND.get(model, ("", model))
    if name and key in around.model_fields:
        return f'Put it beside "{name}", one level up.'

    if key in _FAMILIAR and model is UpstreamSettings:
        return _FAMILIAR[key]

    near = _near(key, model)
    if near:
        return f'Did you mean "{near}"?'

    return f"Known here: {', '.join(model.model_fields)}."


def _near(key: str, model: type[BaseModel]) -> str:
    """The known key that looks most like `key`; empty where none does."""
    near = difflib.get_close_matches(key.lower(), model.model_fields, 1)
    return near[0] if near else ""


def _list_form(node: Node) -> str:
    """How to write a command that is one text; no more of it than its first words is shown."""
    text = node.value if isinstance(node, ScalarNode) and not node.is_secret else ""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []

    plain = list(itertools.takewhile(_PLAIN_WORD.fullmatch, words[:_WORDS_SHOWN]))
    if not plain:
        plain, words = ["program"], []

    rest = [] if len(plain) == len(words) else ["…"]
    return f"Write a list, one item an argument: [{', '.join(plain + rest)}]."
