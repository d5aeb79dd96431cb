"""The same upstream over Streamable HTTP: `python -m tests.bench.http_upstream PORT`.

Both eras, JSON answers, no sessions, raw ASGI: it costs as little as a Python server can.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
import uvicorn

from tests.bench.upstream import answer, definitions

TOOLS = definitions(2)
JSON = (b"content-type", b"application/json")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request with one JSON body; a notification with 202, anything else with 405."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)

    status, reply = 405, b""
    if scope["method"] == "POST":
        request = orjson.loads(body)
        is_request = "method" in request and request.get("id") is not None
        status, reply = (200, orjson.dumps(answer(request, TOOLS))) if is_request else (202, b"")

    headers = [JSON, (b"content-length", b"%d" % len(reply))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        lifespan="off",
        log_level="error",
        timeout_keep_alive=600,
    )
