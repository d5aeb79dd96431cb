"""The entry point: `bridge`, or `python -m bridge`."""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module

INTERRUPTED = 130
MISSING = 'the command line needs more: pip install "mcp-agent-bridge[gateway]"'


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        app = import_module("bridge.cli.app")
    except KeyboardInterrupt:
        return INTERRUPTED
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] not in {"typer", "rich"}:
            raise

        print(f"bridge: {MISSING}", file=sys.stderr)
        return 2

    code: int = app.run(sys.argv[1:])
    if threading.active_count() > 1:
        # Somebody's code still blocks in a thread, and must not keep the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    return code


if __name__ == "__main__":
    sys.exit(main())
