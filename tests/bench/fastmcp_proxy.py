"""FastMCP's proxy, as its documentation builds one: PORT COMMAND... or PORT URL.

It runs under the interpreter of FastMCP's own environment and imports nothing of ours.
"""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

port, first, *rest = sys.argv[1:]
target = first if first.startswith("http://") else StdioTransport(first, rest)
create_proxy(target, name="fastmcp").run(
    transport="http", host="127.0.0.1", port=int(port), log_level="error", show_banner=False
)
