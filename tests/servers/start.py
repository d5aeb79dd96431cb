"""Has the nursery start a server with this process's streams, and ends when that server does.

    start.py SOCKET (-m MODULE | SCRIPT) [ARGUMENT...]

The standard library alone, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import socket
import sys

STREAMS = (0, 1, 2)


def main() -> int:
    place, *words = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as nursery:
        nursery.connect(place)
        task = json.dumps({"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}).encode()
        socket.send_fds(nursery, [len(task).to_bytes(4, "big")], STREAMS)
        nursery.sendall(task)
        for stream in STREAMS:  # the server's alone from now on: who reads them sees their end
            os.close(stream)

        code = nursery.recv(1)

    return code[0] if code else 1


if __name__ == "__main__":
    os._exit(main())
