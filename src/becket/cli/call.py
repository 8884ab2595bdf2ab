"""`becket call`: calls one method or tool; JSON in, JSON out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from becket.cli.support.options import HostOptions, host_options, run_async
from becket.cli.support.output import print_json, print_message
from becket.cli.support.passthrough import PassthroughCommand
from becket.errors import JSON_ERRORS, Meaning, NotDeclared, RemoteError

__all__ = ["call", "read_json", "trace_option"]

trace_option = click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record all messages to this file; `becket trace show FILE` shows them.",
)


@click.command(cls=PassthroughCommand, needs_program=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Timeout of the call.")
@click.option("--dialect", default="plain", show_default=True, metavar="NAME", help="Dialect of the program CMD.")
@click.option("--hooks/--no-hooks", default=True, help="Call the hooks of extensions before and after a tool.")
@trace_option
@host_options()
@click.argument("words", nargs=-1, metavar="EXTENSION NAME [JSON]")
def call(
    options: HostOptions,
    words: tuple[str, ...],
    program: tuple[str, ...],
    timeout: float | None,
    dialect: str,
    trace: Path | None,
    hooks: bool,
) -> None:
    """Call a tool or a method of EXTENSION and print its result as JSON.

    NAME is a tool of the extension, or else a method such as info.get. JSON is the input of the tool, or the params of
    the method; null sends none, and `-` reads JSON from stdin. The extension and those that it depends on are started
    for this call and stopped after it; so are extensions with hooks, which may block or change the call of a tool.
    Their stderr output is shown on stderr.

    \b
    becket call notes keep '{"text": "buy milk"}'
    becket call --root extensions --yes notes find '{"text": "milk"}' | jq -r .
    becket call notes info.get

    With `-- CMD`, call a method of any program that speaks JSON-RPC over stdin and stdout, without a host:

    \b
    becket call add '[1, 2]' -- python3 calculator.py
    """
    most = 2 if program else 3
    if not most - 1 <= len(words) <= most:
        form = "METHOD [JSON] -- CMD..." if program else "EXTENSION NAME [JSON]"
        raise click.UsageError(f"Wrong number of arguments, expected: becket call {form}", click.get_current_context())
    value = read_json(words[most - 1]) if len(words) == most else None
    if program:
        result = run_async(call_program, program, words[0], value, timeout, dialect, trace)
    else:
        result = run_async(call_extension, options, words[0], words[1], value, timeout, trace, hooks)
    print_json(result)


def read_json(text: str) -> Any:
    """Returns the value of an argument, or of stdin for `-`: an object, an array, or null for no params.

    Raises:
        click.BadParameter: it is none of these.
    """
    try:
        value = msgspec.json.decode(sys.stdin.buffer.read() if text == "-" else text)
    except JSON_ERRORS as error:
        raise click.BadParameter(f"not valid JSON ({error})", param_hint="JSON") from error
    if not isinstance(value, dict | list | None):
        raise click.BadParameter("must be an object, an array or null", param_hint="JSON")
    return value  # pyright: ignore[reportUnknownVariableType]


async def call_extension(
    options: HostOptions, id: str, name: str, value: Any, timeout: float | None, trace: Path | None, hooks: bool
) -> Any:
    """Starts an extension for one call and returns the result."""
    from becket.cli.support.host_session import open_extension
    from becket.cli.support.logs import show_logs
    from becket.contract.names import strip_whitespace
    from becket.peer.outbound import UNSET

    seconds = UNSET if timeout is None else timeout
    with show_logs(options.log_config()):
        async with open_extension(options, id, trace=trace, with_hooks=hooks) as (host, extension):
            tools = sorted(strip_whitespace(tool.name) for tool in extension.tools)
            if name in tools:
                if isinstance(value, list):
                    raise click.BadParameter("the input of a tool must be an object", param_hint="JSON")
                return await host.call_tool_json(f"{extension.id}:{name}", value, timeout=seconds, hooks=hooks)
            try:
                return await extension.call(name, value, timeout=seconds)
            except RemoteError as error:
                if error.meaning is not Meaning.UNKNOWN_METHOD:
                    raise
                raise NotDeclared(id, "tool or method", name, tools) from error


async def call_program(
    program: tuple[str, ...], method: str, params: Any, timeout: float | None, dialect: str, trace: Path | None
) -> Any:
    """Starts a program for one call and returns the result."""
    from becket.cli.trace import build_record_command
    from becket.dialects import DIALECTS
    from becket.peer.outbound import UNSET
    from becket.peer.peer import Peer

    if dialect not in DIALECTS:
        raise click.BadParameter(f"`{dialect}` is not one of: {', '.join(sorted(DIALECTS))}", param_hint="--dialect")
    command = program if trace is None else build_record_command(trace, program)
    async with Peer.connect_process(command, inherit_env=True, on_stderr=print_message, dialect=dialect) as peer:
        return await peer.call(method, params, timeout=UNSET if timeout is None else timeout)
