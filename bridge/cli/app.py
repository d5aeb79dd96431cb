"""What `bridge` understands: every command, its arguments and its help.

The commands themselves are in rooms of their own, loaded when named, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.output import UNWRITTEN, complain
from bridge.cli.standard import give_up_output, output_failure, prepare_streams
from bridge.errors import BridgeError
from bridge.version import VERSION

app = typer.Typer(
    name="bridge",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

Config = Annotated[
    list[Path],
    typer.Argument(
        metavar="CONFIG…",
        help="YAML files, merged left to right; or an mcp.json of another client.",
    ),
]
MaybeConfig = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[CONFIG…]", help="YAML files, merged left to right. Default: ./bridge.yaml"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Demo = Annotated[bool, typer.Option("--demo", help="Use the demo that comes with bridge.")]
INTERRUPTED = 130


def _print_version(asked: bool) -> None:
    if asked:
        print(f"bridge {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Connect agents to MCP servers: one toolset, filtered, renamed, guarded by people."""


@app.command()
def serve(
    config: MaybeConfig = None,
    transport: Annotated[
        str,
        typer.Option(
            metavar="http|stdio|sse",
            help="Streamable HTTP, standard streams, or the deprecated HTTP+SSE.",
        ),
    ] = "http",
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Wins over serve.http.host.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Wins over serve.http.port; 0 picks one."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Processes that serve together; wins over serve.http.workers."
        ),
    ] = None,
    demo: Demo = False,
) -> int | None:
    """Serve the configured toolset to MCP clients, until interrupted.

    Example: [bold]bridge serve bridge.yaml --port 8808[/bold]
    """
    return _command("serve", config, demo, transport, host, port, workers)


@app.command()
def tools(config: Config, as_json: AsJson = False) -> int | None:
    """List the tools on offer, where each comes from, and who has to say yes.

    Example: [bold]bridge tools bridge.yaml --json[/bold]
    """
    return _command("tools", config, as_json)


@app.command()
def call(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file; or an mcp.json.")],
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="The offered name, as `bridge tools` shows it."),
    ],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[ARGS_JSON]", help="A JSON object; - reads it from standard input."
        ),
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
def chat(
    config: MaybeConfig = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which conversation; begun if there is none."),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin a conversation.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the conversations.")] = False,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", metavar="TEXT", help="Say this alone; - reads it."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print events as JSON lines, for machines.")
    ] = False,
    demo: Demo = False,
) -> int | None:
    """Talk to an agent that has the configured tools.

    The agent is what the file says under [bold]agent[/bold]: name, instruction, model, store.
    Without a model the answers are scripted: the demo's whole loop, offline.

    What the agent says goes to standard output. Its calls, their results and
    errors and the questions to you go to standard error, without a terminal.

    A call that needs approval is shown with its upstream, its tool and the very
    arguments that would be sent. [bold]y[/bold] runs it, [bold]N[/bold] or Enter refuses it,
    [bold]e[/bold] edits the arguments first; on one line: [bold]e {"city": "Lima"}[/bold]

    Ctrl-C ends a turn; a second one, or Ctrl-D, leaves. Open questions are kept:
    [bold]--session[/bold] goes on with them later, also after the process has ended.
    An empty line asks again, or goes on with a turn that was cut off.

    Without a terminal each line is a message, or the answer to a question.
    [bold]--message[/bold] takes one turn. Exit code 1: it failed, or it waits for a person.

    Examples:

    [bold]bridge chat --demo[/bold]

    [bold]bridge chat configs/agent.yaml --session work[/bold]

    [bold]bridge chat configs/agent.yaml --new -m "What is the weather in Tokyo?"[/bold]
    """
    return _command("chat", config, demo, session, new, listing, message, as_json)


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


@app.command()
def login(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file; or an mcp.json.")],
    upstream: Annotated[
        str, typer.Argument(metavar="UPSTREAM", help="Its name in the configuration.")
    ],
) -> int | None:
    """Log in to an upstream that has [bold]oauth[/bold], in a browser; the login is kept.

    Example: [bold]bridge login bridge.yaml docs[/bold]
    """
    return _command("login", config, upstream)


def run(argv: list[str]) -> int:
    """Run one command; returns the exit code. What goes wrong is said in a line, never a trace."""
    prepare_streams()
    code = _ended(argv)
    failure = output_failure()
    if failure is None:
        return code

    give_up_output()
    if isinstance(failure, BrokenPipeError) or code:
        return code

    complain(f"{UNWRITTEN}: {failure.strerror or failure}")
    return 1


def _ended(argv: list[str]) -> int:
    """Run one command; returns the exit code, before what it printed is known to be written."""
    try:
        result = app(args=argv, standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BridgeError as exc:
        complain(str(exc))
        return exc.exit_code
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read has read enough, as `| head` does
        give_up_output()
        return 0
    except Exception as exc:
        return _unexpected(exc)

    return result if isinstance(result, int) else 0


def _unexpected(exc: Exception) -> int:
    """A usage error, which knows how to show itself; or a fault of ours, which must not hide."""
    if hasattr(exc, "show") and hasattr(exc, "exit_code"):
        with suppress(OSError):
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
