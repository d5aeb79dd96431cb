"""What `bridge` understands: every command, its arguments and its help.

The commands themselves are in rooms of their own, loaded when named, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.output import complain
from bridge.errors import BridgeError

app = typer.Typer(
    name="bridge",
    help="Connect agents to MCP servers: one toolset, filtered, renamed, guarded by people.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

Config = Annotated[
    list[Path],
    typer.Argument(help="YAML files, merged left to right; or an mcp.json of another client."),
]
MaybeConfig = Annotated[
    list[Path] | None,
    typer.Argument(help="YAML files, merged left to right. Default: ./bridge.yaml"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Demo = Annotated[bool, typer.Option("--demo", help="Use the demo that comes with bridge.")]
INTERRUPTED = 130


@app.command()
def serve(
    config: MaybeConfig = None,
    transport: Annotated[
        str, typer.Option(help="http (Streamable HTTP), stdio, or sse (the deprecated HTTP+SSE).")
    ] = "http",
    host: Annotated[str | None, typer.Option(help="Wins over serve.http.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Wins over serve.http.port; 0 picks one.")
    ] = None,
    demo: Demo = False,
) -> int | None:
    """Serve the configured toolset to MCP clients, until interrupted.

    Example: [bold]bridge serve bridge.yaml --port 8808[/bold]
    """
    return _command("serve", config, demo, transport, host, port)


@app.command()
def tools(config: Config, as_json: AsJson = False) -> int | None:
    """List the tools on offer, where each comes from, and who has to say yes.

    Example: [bold]bridge tools bridge.yaml --json[/bold]
    """
    return _command("tools", config, as_json)


@app.command()
def call(
    config: Annotated[Path, typer.Argument(help="A YAML file; or an mcp.json.")],
    tool: Annotated[str, typer.Argument(help="The offered name, as `bridge tools` shows it.")],
    arguments: Annotated[
        str, typer.Argument(help="A JSON object; - reads it from standard input.")
    ] = "{}",
    yes: Annotated[bool, typer.Option("--yes", help="Approve the call, if it asks.")] = False,
    as_json: AsJson = False,
) -> int | None:
    """Call one tool and print its answer.

    Exit code 0: answered. 1: the tool failed, was refused, or cannot be reached. 2: wrong usage.

    Example: [bold]bridge call configs/demo.yaml weather__get_weather '{"city": "Tokyo"}'[/bold]
    """
    return _command("call", config, tool, arguments, yes, as_json)


@app.command()
def check(
    config: Config,
    live: Annotated[
        bool, typer.Option("--live", help="Connect, and show what each server answers.")
    ] = False,
    as_json: AsJson = False,
) -> int | None:
    """Say everything that is wrong with a configuration, in one go."""
    return _command("check", config, live, as_json)


def run(argv: list[str]) -> int:
    """Run one command; returns the exit code. What goes wrong is said in a line, never a trace."""
    try:
        result = app(args=argv, standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BridgeError as exc:
        complain(str(exc))
        return exc.exit_code
    except typer.Abort:
        return INTERRUPTED
    except Exception as exc:
        return _unexpected(exc)

    return result if isinstance(result, int) else 0


def _unexpected(exc: Exception) -> int:
    """A usage error, which knows how to show itself; or a fault of ours, which must not hide."""
    if hasattr(exc, "show") and hasattr(exc, "exit_code"):
        exc.show(file=sys.stderr)
        return int(exc.exit_code)

    if os.environ.get("BRIDGE_DEBUG"):
        raise exc

    complain(
        f"an unexpected {type(exc).__name__}: {exc}\n"
        "This is a fault in bridge. Set BRIDGE_DEBUG=1 to see where, and please report it."
    )
    return 1


def _command(room: str, *arguments: object) -> int | None:
    code: int | None = import_module(f"bridge.cli.{room}").run(*arguments)
    return code
