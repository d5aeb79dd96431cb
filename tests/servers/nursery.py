"""The nursery: a process that has loaded the SDK and forks a server for whoever asks.

    python -m tests.servers.nursery SOCKET

It ends when its standard input does, a server when whoever asked for it ends.
"""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = (
    "mcp.server.lowlevel",
    "mcp.server.mcpserver",
    "mcp.server.sse",
    "mcp.server.stdio",
    "mcp.server.streamable_http_manager",
    "bridge.config.settings",
    "cryptography.hazmat.primitives.ciphers.aead",
    "jsonschema",
    "orjson",
    "rich.console",
    "ruamel.yaml",
    "typer",
    "uvicorn",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvloop",
)
"""What servers and bridge itself are made of; bridge's own rooms are loaded anew by each."""


def main(place: Path) -> int:
    for name in LOADED:
        with suppress(ModuleNotFoundError):  # of an extra: who needs it will say so
            import_module(name)

    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the servers
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([sys.stdin, listener], [], [])
            if sys.stdin in ready:
                shutil.rmtree(place.parent)
                return 0

            asker, _ = listener.accept()
            with asker:
                if os.fork() == 0:
                    listener.close()
                    os._exit(serve(asker))


def serve(asker: socket.socket) -> int:
    """Be the server that is asked for; returns its exit code."""
    task = begun(asker)
    threading.Thread(target=end_with, args=[asker], daemon=True).start()
    code = 0
    try:
        run(task["words"])
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1

    sys.stdout.flush()
    sys.stderr.flush()
    asker.sendall(bytes([code & 0xFF]))
    return code


def begun(asker: socket.socket) -> Any:
    """Take over the streams, the folder and the environment of whoever asks; what it asks for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    head, streams, _, _ = socket.recv_fds(asker, 4, 3)
    length = int.from_bytes(head, "big")
    text = b""
    while len(text) < length:
        text += asker.recv(length - len(text))

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)

    task = json.loads(text)
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["env"])
    random.seed()
    return task


def run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def end_with(asker: socket.socket) -> None:
    """End this process when whoever asked for it is gone."""
    asker.recv(1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
