"""Run a stdio server as one that knows the handshake only: `handshake_only.py COMMAND …`.

What asks for the modern era is refused here; everything else reaches the server as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

MODERN = "server/discover"
REFUSAL = {"code": -32601, "message": "Method not found"}


def main() -> int:
    """Pass lines on until the input ends, then wait for the server."""
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
    assert server.stdin is not None
    for line in sys.stdin.buffer:
        if MODERN.encode() in line and (message := json.loads(line)).get("method") == MODERN:
            refused = {"jsonrpc": "2.0", "id": message["id"], "error": REFUSAL}
            os.write(1, json.dumps(refused).encode() + b"\n")
        else:
            server.stdin.write(line)
            server.stdin.flush()

    server.stdin.close()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
