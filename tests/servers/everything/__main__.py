"""A server that does everything the conformance suite asks of one, in both eras.

python -m tests.servers.everything --port 3801 [--http h11|httptools] [--era modern|legacy]
python -m tests.servers.everything stdio [--era modern|legacy]
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial

import anyio
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.servers.everything.http import serve_http
from tests.servers.everything.server import everything
from tests.servers.everything.stdio import serve_stdio


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers.everything")
    parser.add_argument("transport", nargs="?", choices=("http", "stdio"), default="http")
    parser.add_argument("--port", type=int, default=3801)
    parser.add_argument("--http", choices=("h11", "httptools"), default="h11")
    parser.add_argument("--era", choices=("modern", "legacy"))
    args = parser.parse_args()

    # Logging and sampling are deprecated, and the suite asks for them.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    if args.transport == "stdio":
        anyio.run(partial(serve_stdio, everything(), args.era))
    else:
        serve_http(everything(), args.port, args.http, args.era)


if __name__ == "__main__":
    main()
