"""`becket invoke`: runs one command of an extension and shows its output live."""

from __future__ import annotations

from pathlib import Path

import click

from becket.cli.call import trace_option
from becket.cli.support.options import HostOptions, host_options, run_async
from becket.cli.support.output import json_option, pluralize, print_json_line, print_message

__all__ = ["invoke"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@json_option
@trace_option
@host_options()
@click.argument("extension")
@click.argument("command")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def invoke(
    options: HostOptions, extension: str, command: str, args: tuple[str, ...], as_json: bool, trace: Path | None
) -> None:
    """Run a COMMAND of EXTENSION and show its output while it runs.

    Options of becket may stand anywhere before `--`; everything after `--` is passed to the command. If stdout is not
    a terminal, the output is plain text. With --json each event is one line with a JSON object, whose `event` is its
    kind; the last line has the result. Events that cannot be decoded are skipped and counted. The extension's stderr
    output is shown on stderr.

    \b
    becket invoke --root extensions census census "$PWD/src"
    becket invoke notes find --root extensions -- --all milk
    becket invoke --json census census "$PWD/src" | jq -c 'select(.event == "result").result'
    """
    run_async(invoke_command, options, extension, command, args, as_json, trace)


async def invoke_command(
    options: HostOptions, id: str, command: str, args: tuple[str, ...], as_json: bool, trace: Path | None
) -> None:
    """Starts an extension, runs one command and shows its output."""
    from becket.cli.support.host_session import open_extension
    from becket.cli.support.logs import show_logs
    from becket.cli.support.stream_output import print_result, show_stream

    with show_logs(options.log_config()):
        async with (
            open_extension(options, id, trace=trace, command=command) as (_, extension),
            extension.invoke_command(command, args) as run,
        ):
            try:
                result = await show_stream(run, as_json=as_json)
            finally:
                if run.skipped:
                    report_skipped(id, run.skipped, as_json)
            if as_json:
                print_result(result)


def report_skipped(id: str, skipped: int, as_json: bool) -> None:
    print_message(f"warning: {id}: skipped {pluralize(skipped, 'event')} that could not be decoded")
    if as_json:
        print_json_line({"event": "skipped", "skipped": skipped})
