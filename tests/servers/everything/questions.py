"""The tools that ask the client: its person, its model, its roots."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import CallToolResult, CreateMessageResult, ElicitResult, ListRootsResult

from tests.servers.everything.asking import Ask, Call, form, roots, sample
from tests.servers.everything.contents import answer
from tests.servers.everything.offer import object_of, tool

TEXT = {"type": "string"}
OPTIONS = ["option1", "option2", "option3"]

DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": title} for n, title in enumerate(titles, 1)]


ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {
        "type": "string",
        "oneOf": _titled("First Option", "Second Option", "Third Option"),
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")},
    },
}

NAME = form("What is your name?", {"name": TEXT}, "name")
CAPITAL = sample("What is the capital of France?")


def _filled(call: Call, key: str) -> dict[str, Any] | None:
    """What the person put into a form; None while it has not come back."""
    reply = call.answer(key, ElicitResult)
    return None if reply is None else reply.content or {}


def _said(reply: CreateMessageResult) -> str:
    return str(getattr(reply.content, "text", reply.content))


def _outcome(reply: ElicitResult) -> str:
    return f"action={reply.action}, content={json.dumps(reply.content or {})}"


@tool("Lets the client's model answer a prompt.", object_of("prompt", prompt=TEXT))
async def test_sampling(call: Call) -> CallToolResult | Ask:
    reply = call.answer("reply", CreateMessageResult)
    if reply is None:
        return Ask({"reply": sample(str(call.arguments.get("prompt", "")))})

    return answer(f"LLM response: {_said(reply)}")


@tool("Asks the person for a name and an address.", object_of("message", message=TEXT))
async def test_elicitation(call: Call) -> CallToolResult | Ask:
    reply = call.answer("user", ElicitResult)
    if reply is None:
        fields = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        message = str(call.arguments.get("message", "Who are you?"))
        return Ask({"user": form(message, fields, "username", "email")})

    return answer(f"User response: {_outcome(reply)}")


@tool("Asks with a form whose every field has a default.")
async def test_elicitation_sep1034_defaults(call: Call) -> CallToolResult | Ask:
    reply = call.answer("form", ElicitResult)
    if reply is None:
        return Ask({"form": form("Please look at these values.", DEFAULTS)})

    return answer(f"Elicitation completed: {_outcome(reply)}")


@tool("Asks with a form of every kind of choice.")
async def test_elicitation_sep1330_enums(call: Call) -> CallToolResult | Ask:
    reply = call.answer("form", ElicitResult)
    if reply is None:
        return Ask({"form": form("Please choose.", ENUMS)})

    return answer(f"Elicitation completed: {_outcome(reply)}")


@tool("Needs a client with a model.")
async def test_missing_capability(call: Call) -> CallToolResult | Ask:
    reply = call.answer("reply", CreateMessageResult)
    return Ask({"reply": CAPITAL}) if reply is None else answer(_said(reply))


@tool("Reports progress, then asks the person.")
async def test_streaming_elicitation(call: Call) -> CallToolResult | Ask:
    await call.ctx.session.report_progress(0, 1)
    filled = _filled(call, "user_name")
    return Ask({"user_name": NAME}) if filled is None else answer(f"Hello, {filled.get('name')}!")


@tool("Asks the person for a name.")
async def test_input_required_result_elicitation(call: Call) -> CallToolResult | Ask:
    filled = _filled(call, "user_name")
    return Ask({"user_name": NAME}) if filled is None else answer(f"Hello, {filled.get('name')}!")


@tool("Asks the client's model.")
async def test_input_required_result_sampling(call: Call) -> CallToolResult | Ask:
    reply = call.answer("capital_question", CreateMessageResult)
    return Ask({"capital_question": CAPITAL}) if reply is None else answer(_said(reply))


@tool("Asks for the client's roots.")
async def test_input_required_result_list_roots(call: Call) -> CallToolResult | Ask:
    reply = call.answer("client_roots", ListRootsResult)
    if reply is None:
        return Ask({"client_roots": roots()})

    return answer("Roots: " + ", ".join(str(root.uri) for root in reply.roots))


@tool("Asks the person, and must get its state back.")
async def test_input_required_result_request_state(call: Call) -> CallToolResult | Ask:
    return _confirmed(call)


@tool("Asks the person, and must get its state back as it was.")
async def test_input_required_result_tampered_state(call: Call) -> CallToolResult | Ask:
    return _confirmed(call)


def _confirmed(call: Call) -> CallToolResult | Ask:
    filled = _filled(call, "confirm")
    if filled is None or call.state != "asked":
        question = form("Please confirm", {"ok": {"type": "boolean"}}, "ok")
        return Ask({"confirm": question}, "asked")

    return answer(f"state-ok, and the answer is {filled.get('ok')}")


@tool("Asks the person, the model and for the roots, all at once.")
async def test_input_required_result_multiple_inputs(call: Call) -> CallToolResult | Ask:
    filled = _filled(call, "user_name")
    greeting = call.answer("greeting", CreateMessageResult)
    found = call.answer("client_roots", ListRootsResult)
    if call.state is None or filled is None or greeting is None or found is None:
        questions = {
            "user_name": NAME,
            "greeting": sample("Generate a greeting", 50),
            "client_roots": roots(),
        }
        return Ask(questions, "asked")

    return answer(f"{filled.get('name')}: {_said(greeting)} ({len(found.roots)} roots)")


@tool("Asks the person twice, the second time knowing the first answer.")
async def test_input_required_result_multi_round(call: Call) -> CallToolResult | Ask:
    known = json.loads(call.state or "{}")
    if (filled := _filled(call, "step1")) is not None and call.state is not None:
        known["name"] = filled.get("name")

    if "name" not in known:
        question = form("Step 1: What is your name?", {"name": TEXT}, "name")
        return Ask({"step1": question}, json.dumps(known))

    color = _filled(call, "step2")
    if color is None:
        question = form("Step 2: What is your favorite color?", {"color": TEXT}, "color")
        return Ask({"step2": question}, json.dumps(known))

    return answer(f"{known['name']} likes {color.get('color')}")


@tool("Asks whatever its client can be asked.")
async def test_input_required_result_capabilities(call: Call) -> CallToolResult | Ask:
    possible = {"user_name": NAME, "capital_question": CAPITAL, "client_roots": roots()}
    questions = {key: ask for key, ask in possible.items() if call.can_be_asked(ask)}
    if questions.keys() <= call.answers.keys():
        return answer(f"Answered: {', '.join(questions) or 'nothing'}")

    return Ask(questions)
