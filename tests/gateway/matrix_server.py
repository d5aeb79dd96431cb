"""The conformance server with what the era matrix needs beside: `everything`'s arguments.

It can also be asked for a page to be opened, for a call that never ends and how many of those were
called off, and for a list of resources that changes.
"""

from __future__ import annotations

import anyio
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestURLParams, ElicitResult, Resource

from tests.servers.everything.__main__ import main
from tests.servers.everything.asking import Ask, Call
from tests.servers.everything.contents import answer
from tests.servers.everything.offer import tool
from tests.servers.everything.resources import RESOURCES

PAGE = "https://example.com/sign-in"
COUNTS = {"waiting": 0, "cancelled": 0}


@tool("Asks the person to open a page.")
async def test_url_elicitation(call: Call) -> CallToolResult | Ask:
    reply = call.answer("page", ElicitResult)
    if reply is None:
        # Only the legacy era has an id; its type model wants it there.
        name = None if call.is_modern else "page-1"
        params = ElicitRequestURLParams(message="Please sign in.", url=PAGE, elicitation_id=name)
        return Ask({"page": ElicitRequest(params=params)})

    return answer(f"The person chose to {reply.action}.")


@tool("Waits until it is called off.")
async def test_wait(call: Call) -> CallToolResult:
    COUNTS["waiting"] += 1
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        COUNTS["cancelled"] += 1
        raise

    return answer("never")


@tool("Says how many calls of test_wait began, and how many were called off.")
async def test_waited(call: Call) -> CallToolResult:
    return answer(f"{COUNTS['waiting']} {COUNTS['cancelled']}")


@tool("Lists one resource more.")
async def test_trigger_resource_list_change(call: Call) -> CallToolResult:
    name = f"new-{len(RESOURCES)}"
    RESOURCES.append(Resource(uri=f"test://{name}", name=name))
    await call.world._announce(ResourcesListChanged())
    return answer(name)


if __name__ == "__main__":
    main()
