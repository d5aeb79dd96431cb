"""Run the demo: `python -m bridge.demo`, over stdio unless another transport is asked for.

The environment variable UNITS chooses metric or imperial, PACE how many seconds one day of a
forecast takes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence

from bridge.demo.server import demo_server, pace_of, units_of


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the client leaves (stdio) or a signal comes (http, sse)."""
    parser = argparse.ArgumentParser(prog="python -m bridge.demo", description="A demo MCP server.")
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8809)
    options = parser.parse_args(argv)
    try:
        server = demo_server(units_of(os.environ), pace_of(os.environ))
    except ValueError as exc:
        parser.error(str(exc))

    with contextlib.suppress(KeyboardInterrupt):
        if options.transport == "stdio":
            server.run()
        elif options.transport == "http":
            server.run("streamable-http", host=options.host, port=options.port)
        else:
            server.run("sse", host=options.host, port=options.port)


if __name__ == "__main__":
    main()
