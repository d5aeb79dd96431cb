"""A program that works for a while and ends: `python -m tests.agents.desk FOLDER WORD`.

"ask" asks the agent for two things at once, of which one needs a person's yes; "yes" and "no"
decide. Every process prints the events of its turn as JSON lines, and notes in FOLDER what its
local tool really did.
"""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from bridge.agents.agent_tool import AgentTool
from bridge.agents.llm_agent import Agent
from bridge.agents.runner import Message, Runner
from bridge.core.session import SessionKey
from bridge.models.scripted import ScriptedModel
from bridge.stores.database import open_database
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore
from bridge.tools.function import function_tool
from bridge.upstream.toolset import MCPToolset
from tests.agents.talk import CONFIRMATION, asked, call, content, reply

ASK = [
    asked(
        call("buy", "buy_report", city="Tokyo"),
        call("note", "note", words="asked"),
        call("ann", "ann", request="What is the time?"),
        call("sky", "get_weather", city="Tokyo"),
    )
]
DECIDE = ["All done."]


async def main(folder: Path, word: str) -> None:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            open_database(f"sqlite:///{folder / 'bridge.db'}")
        )
        demo = await stack.enter_async_context(
            MCPToolset([sys.executable, "-m", "bridge.demo"], name="demo")
        )

        async def note(words: str) -> str:
            """Write something down."""
            with (folder / "notes").open("a") as notes:
                notes.write(f"{words}\n")

            return words

        agent = Agent(
            "clerk",
            ScriptedModel(ASK if word == "ask" else DECIDE),
            tools=[
                demo.confirmed(["buy_*"]),
                function_tool(note),
                AgentTool(Agent("ann", ScriptedModel(["Noon."]), description="Knows the time.")),
            ],
        )
        runner = Runner(
            agent, sessions=SqlSessionService(database), approvals=SqlApprovalStore(database)
        )
        message: Message = "Buy the report."
        if word != "ask":
            session = await runner.sessions.get(SessionKey("bridge", "local", "default"))
            questions = (each for event in session.events for each in event.function_calls())
            question = next(each for each in questions if each.name == CONFIRMATION)
            message = content(*reply(question.id, word == "yes").parts)

        async for event in runner.run(message):
            sys.stdout.write(json.dumps(event.to_json()) + "\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
