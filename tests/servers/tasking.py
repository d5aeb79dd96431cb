"""A legacy stdio MCP server that runs calls as tasks (MCP 2025-11-25); the standard library alone.

    python tests/servers/tasking.py [--name N] [--ids random|counted] [--journal F]
        [--undeclared] [--no-cancel]

Its tools:

* `work` may run as a task, `must` has to, `never` says that it does not, and `plain` says nothing.
  Each does what its arguments say: `{"say": text}` is its answer, `{"link": uri}` a resource that
  it names, `{"fail": true}` makes that an `isError`, `{"break": true}` a JSON-RPC error,
  `{"ask": message}` has it ask for a form first.
* `finish`, called with `{"say": text}`, lets every task with that text end; until then it works.
  A call that is no task ends at once.
* `hang` never answers.

With `--undeclared` it declares no tasks, though its tools still say what they support, and it
ignores a `task`. The journal gets one JSON line for the start and one for each message received.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

JSON = dict[str, Any]
VERSION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
SUPPORT = {"work": "optional", "must": "required", "never": "forbidden", "plain": None}
OVER = {"completed", "failed", "cancelled"}
PAGE = 2


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Tasking:
    """The server, and the tasks that it runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.tasks: dict[str, JSON] = {}
        self.calls: dict[str, JSON] = {}
        self.replies: dict[str, JSON] = {}

    def send(self, message: JSON) -> None:
        """One message."""
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def journal(self, entry: JSON) -> None:
        """One line in the journal."""
        if self.options.journal is not None:
            with self.options.journal.open("a") as file:
                file.write(json.dumps({"pid": os.getpid(), **entry}) + "\n")

    def answer(self, message: JSON) -> None:
        """Answer one request, as long as that takes."""
        reply: JSON = {"id": message["id"]}
        try:
            reply["result"] = self.result(message["method"], message.get("params") or {})
        except Refused as refused:
            reply["error"] = refused.error

        self.send(reply)

    def result(self, method: str, params: JSON) -> JSON:
        """The result of one request."""
        if method == "initialize":
            return self.greeting()
        if method == "tools/list":
            return {"tools": [self.definition(name) for name in (*SUPPORT, "finish", "hang")]}
        if method == "tools/call":
            return self.call(params)
        if method.startswith("tasks/") and not self.options.undeclared:
            return self.about_tasks(method, params)
        if method == "ping":
            return {}
        raise Refused(-32601, f"Method not found: {method}")

    def greeting(self) -> JSON:
        """What `initialize` answers."""
        tasks: JSON = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        if self.options.no_cancel:
            del tasks["cancel"]
        return {
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}}
            if self.options.undeclared
            else {"tools": {}, "tasks": tasks},
            "serverInfo": {"name": self.options.name, "version": "1"},
        }

    def definition(self, name: str) -> JSON:
        """One tool."""
        shape: JSON = {"name": name, "inputSchema": {"type": "object"}}
        support = SUPPORT.get(name)
        return shape if support is None else {**shape, "execution": {"taskSupport": support}}

    def call(self, params: JSON) -> JSON:
        """A call: what it answers, or the task that it has become."""
        name, args = params["name"], params.get("arguments") or {}
        if name == "finish":
            return self.finish(args["say"])
        if name == "hang":
            threading.Event().wait()

        task = None if self.options.undeclared else params.get("task")
        support = SUPPORT[name]
        if task is not None and support in (None, "forbidden"):
            raise Refused(-32601, f"{name} is not run as a task")
        if task is None and support == "required" and not self.options.undeclared:
            raise Refused(-32601, f"{name} is run as a task only")
        if task is None:
            return self.outcome(args, None)

        return {"task": self.begin(args, task), "_meta": {"example.com/created": True}}

    def begin(self, args: JSON, asked: JSON) -> JSON:
        """A new task, which works until it is finished."""
        with self.lock:
            counted = f"task-{len(self.tasks) + 1}"
            name = counted if self.options.ids == "counted" else secrets.token_hex(16)
            self.tasks[name] = {
                "taskId": name,
                "status": "working",
                "createdAt": now(),
                "lastUpdatedAt": now(),
                "ttl": asked.get("ttl"),
                "pollInterval": 20,
                "example.com/unknown": {"of": self.options.name},
            }
            self.calls[name] = args
            return dict(self.tasks[name])

    def finish(self, say: str) -> JSON:
        """Let the tasks with this text end; a question comes first."""
        with self.lock:
            names = [n for n, args in self.calls.items() if args.get("say") == say]
            working = [n for n in names if self.tasks[n]["status"] not in OVER]
        for name in working:
            threading.Thread(target=self.end, args=(name,), daemon=True).start()
        return text(f"finished {len(working)}")

    def end(self, name: str) -> None:
        """One task's end."""
        args = self.calls[name]
        if "ask" in args:
            self.become(name, "input_required")
            self.ask(name, args["ask"])
        fails = args.get("fail") or args.get("break")
        self.become(name, "failed" if fails else "completed")

    def ask(self, name: str, message: str) -> None:
        """Ask for a form, and keep the answer for the result."""
        form = {"type": "object", "properties": {"word": {"type": "string"}}}
        meta = {RELATED: {"taskId": name}}
        params = {"message": message, "requestedSchema": form, "_meta": meta}
        self.send({"id": f"ask-{name}", "method": "elicitation/create", "params": params})
        with self.changed:
            while f"ask-{name}" not in self.replies:
                self.changed.wait()

    def become(self, name: str, status: str) -> None:
        """Change a task's status, and tell of it."""
        with self.changed:
            task = self.tasks[name]
            if task["status"] in OVER:
                return
            task.update(status=status, lastUpdatedAt=now())
            self.send({"method": "notifications/tasks/status", "params": dict(task)})
            self.changed.notify_all()

    def about_tasks(self, method: str, params: JSON) -> JSON:
        """Answer what is asked about tasks."""
        if method == "tasks/list":
            return self.page(params.get("cursor"))

        with self.changed:
            name = params.get("taskId", "")
            task = self.tasks.get(name)
            if task is None:
                raise Refused(-32602, "Failed to retrieve task: Task not found")
            if method == "tasks/cancel":
                if task["status"] in OVER:
                    raise Refused(-32602, "Cannot cancel task: it is over")
                self.become(name, "cancelled")
            elif method == "tasks/result":
                while task["status"] not in OVER:
                    self.changed.wait()
                return self.outcome(self.calls[name], name)
            return dict(task)

    def page(self, cursor: str | None) -> JSON:
        """A page of everybody's tasks."""
        first = int(cursor or 0)
        more = {"nextCursor": str(first + PAGE)} if first + PAGE < len(self.tasks) else {}
        return {"tasks": list(self.tasks.values())[first : first + PAGE], **more}

    def outcome(self, args: JSON, name: str | None) -> JSON:
        """What a call comes to, as a task or not."""
        if args.get("break"):
            raise Refused(-32050, "broken as wanted")

        result = text(str(args.get("say", "")))
        if name is not None:
            result["_meta"] = {RELATED: {"taskId": name}, "example.com/kept": [1]}
        if "link" in args:
            result["content"].append({"type": "resource_link", "uri": args["link"], "name": "x"})
        if args.get("fail"):
            result["isError"] = True
        if (reply := self.replies.get(f"ask-{name}")) is not None:
            result["structuredContent"] = reply
        return result

    def receive(self, message: JSON) -> None:
        """Take one message."""
        self.journal(message)
        if "method" not in message:
            with self.changed:
                self.replies[message["id"]] = message.get("result") or message.get("error") or {}
                self.changed.notify_all()
        elif "id" in message:
            threading.Thread(target=self.answer, args=(message,), daemon=True).start()


def text(said: str) -> JSON:
    """An answer of one text."""
    return {"content": [{"type": "text", "text": said}]}


def now() -> str:
    """The time, as MCP writes it."""
    return datetime.now(UTC).isoformat()


def main() -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="tasking")
    parser.add_argument("--ids", choices=("random", "counted"), default="random")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--undeclared", action="store_true")
    parser.add_argument("--no-cancel", action="store_true")
    server = Tasking(parser.parse_args())
    server.journal({"started": True})
    for line in sys.stdin:
        server.receive(json.loads(line))


if __name__ == "__main__":
    main()
