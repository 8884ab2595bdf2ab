"""`becket trace`: records, shows and replays transcripts."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from becket._text import escape, truncate
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import DataDirOptions, data_dir_options, run_async
from becket.cli.support.output import (
    console,
    is_terminal,
    json_option,
    pluralize,
    print_json,
    print_json_line,
    print_line,
    print_long_table,
    print_message,
)
from becket.cli.support.passthrough import PassthroughCommand
from becket.errors import StartFailed

if TYPE_CHECKING:
    from becket.dialects import Dialect
    from becket.testing.transcripts.file_format import Transcript
    from becket.testing.transcripts.replay import Difference, Replay
    from becket.testing.transcripts.steps import StepKind, TranscriptStep

__all__ = ["build_record_command", "trace", "wrap_each_command"]

MAX_LABEL_LENGTH = 1_000  # characters of content per step in a diagram
SHORT = 60  # characters of content per row in a table
PLAIN_WIDTH = 120  # columns of a diagram that is not drawn on a terminal
READ_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--follow", "-f", is_flag=True, help="Show the traffic of a running host, until Ctrl-C.")
@click.option(
    "--extension", "-e", "extensions", multiple=True, metavar="ID", help="Follow only this extension; repeatable."
)
@click.option("--full", is_flag=True, help="With --follow: do not truncate params and results, and show pings.")
@json_option
@data_dir_options
@click.pass_context
def trace(
    ctx: click.Context,
    options: DataDirOptions,
    follow: bool,
    extensions: tuple[str, ...],
    full: bool,
    as_json: bool,
) -> ExitCode | None:
    """Record, show and replay the messages between a host and an extension; or follow those of a running host.

    \b
    becket trace --follow                                 all messages of a running `becket run`
    becket trace --follow --data state -e notes --json
    becket trace record notes.jsonl -- python3 notes.py   record messages between any host and this program
    becket trace show notes.jsonl                         show a table of all messages
    becket trace show --diagram notes.jsonl               draw a sequence diagram
    becket trace replay notes.jsonl -- python3 notes.py   check that it still responds the same

    --follow works on a host in your own program if it was started with `HostSettings(live_trace=True)`.
    """
    if ctx.invoked_subcommand is not None:
        if follow:
            raise click.UsageError(f"--follow cannot be used with `{ctx.invoked_subcommand}`", ctx)
        return None
    if not follow:
        click.echo(ctx.get_help())
        return None
    from becket.cli.support.trace_follow import follow_host

    return run_async(
        follow_host, options.data_dir().folder, extensions, full, as_json, options.command_lines().keep("run")
    )


def build_record_command(path: Path, command: Sequence[str]) -> list[str]:
    """Returns the command that runs `command` and records its messages to a file, which it overwrites."""
    # -P: it runs in the folder of the extension, whose files must not shadow our imports.
    becket = [sys.executable, "-P", "-m", "becket"]
    return [*becket, "trace", "record", "--overwrite", str(path.absolute()), "--", *command]


def wrap_each_command(path: Path) -> Callable[[str, Sequence[str]], Sequence[str]]:
    """Returns a function that wraps the command of every start of every extension in a recorder.

    Each start has its own file, named after `path` and the extension: `trace.notes.jsonl`, `trace.notes.2.jsonl`."""
    starts: Counter[str] = Counter()

    def wrap(id: str, command: Sequence[str]) -> Sequence[str]:
        starts[id] += 1
        number = "" if starts[id] == 1 else f".{starts[id]}"
        return build_record_command(path.with_name(f"{path.stem}.{id}{number}{path.suffix}"), command)

    return wrap


# -- record


@trace.command(cls=PassthroughCommand)
@click.option("--overwrite", is_flag=True, help="Replace FILE if there is one, instead of adding a number.")
@click.argument("file", type=NEW_FILE)
def record(file: Path, program: tuple[str, ...], overwrite: bool) -> int:
    """Run CMD, relay its stdin and stdout, and record them to FILE.

    The host sees no difference: put this in front of the command in a manifest, or in the settings of any other host.
    If FILE exists, for example because a host has restarted the extension, a number is added to its name.

    \b
    command = ["becket", "trace", "record", "/tmp/notes.jsonl", "--", "python3", "notes.py"]

    The file holds all messages, including secrets: do not share it.
    """
    from becket.cli.support.relay import exit_like, open_recording, relay

    path, opened = open_recording(file, overwrite=overwrite)
    if path != file:
        print_message(f"recording to {path}")
    with opened:
        try:
            exit_code = relay(program, opened)
        except StartFailed:
            path.unlink()
            raise
    exit_like(exit_code)
    return exit_code


# -- show


dialect_option = click.option(
    "--dialect",
    metavar="NAME",
    help="Dialect of the messages, such as synaps; detected from the recording by default.",
)


@trace.command()
@dialect_option
@click.option("--diagram", "-d", is_flag=True, help="Draw a sequence diagram.")
@click.option("--full", is_flag=True, help="Do not truncate params and results.")
@click.option("--method", "-m", multiple=True, metavar="NAME", help="Show only this method; repeatable.")
@json_option
@click.argument("file", type=READ_FILE)
def show(file: Path, dialect: str | None, diagram: bool, full: bool, method: tuple[str, ...], as_json: bool) -> None:
    """Show the messages recorded in FILE, as a table or a diagram.

    \b
    becket trace show notes.jsonl
    becket trace show --diagram notes.jsonl | less -R
    becket trace show --json -m tool.call notes.jsonl | jq .seconds
    """
    from becket.cli.support.sequence_diagram import step_object, without_meta

    notes: set[str] = set()

    def read() -> Iterator[TranscriptStep]:  # called twice for a table: for its column widths, then for its rows
        for step in read_file(file, dialect, notes):
            if not method or step.method in method:
                yield step if full or as_json else without_meta(step)

    if as_json:
        for step in read():
            print_json_line(step_object(step))
    elif diagram:
        print_diagram([step if full else with_short_content(step) for step in read()], full=full)
    else:
        print_steps(read, full=full)
    for note in notes:
        print_message(note)


def read_file(file: Path, dialect: str | None, notes: set[str]) -> Iterator[TranscriptStep]:
    """Yields the steps of a transcript in constant memory; adds remarks about the file to `notes`."""
    from becket.testing.transcripts.decoder import TranscriptDecoder
    from becket.testing.transcripts.file_format import TranscriptReader, bounded_lines
    from becket.testing.transcripts.steps import read_steps

    with file.open("rb") as opened:
        reader = TranscriptReader(bounded_lines(opened, str(file)), str(file))
        yield from read_steps(reader, TranscriptDecoder(choose_dialect(dialect, reader.head)).decode)
    if reader.is_cut:
        notes.add(f"{file}: the last line is incomplete: the recorder was killed")
    elif not reader.head.entries:
        notes.add(f"{file}: no messages")


def with_short_content(step: TranscriptStep) -> TranscriptStep:
    """Returns a step with its content truncated for a diagram, unless the content must be parsed."""
    if step.kind in ("error", "exit") or len(step.content) <= MAX_LABEL_LENGTH:
        return step
    return msgspec.structs.replace(step, content=step.content[:MAX_LABEL_LENGTH])


def choose_dialect(name: str | None, transcript: Transcript) -> Dialect:
    """Returns the dialect of this name, or the one detected from the transcript."""
    from becket.dialects import find_dialect

    try:
        return transcript.detect_dialect() if name is None else find_dialect(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--dialect") from error


def print_steps(read: Callable[[], Iterable[TranscriptStep]], *, full: bool) -> None:
    from becket.cli.support.sequence_diagram import format_content, format_seconds

    def rows() -> Iterator[Sequence[str]]:
        for step in read():
            yield (
                str(step.number),
                format_seconds(step.at),
                "" if step.to is None else str(step.to),
                str(step.kind),
                step.id,
                step.method,
                "" if step.seconds is None else format_seconds(step.seconds),
                str(step.size) if step.size else "",
                format_content(step) if full else truncate(format_content(step), SHORT),
            )

    print_long_table(["no", "at", "to", "kind", "id", "method", "took", "bytes", "content"], rows)


def print_diagram(steps: Sequence[TranscriptStep], *, full: bool) -> None:
    from becket.cli.support.sequence_diagram import ASCII_STYLE, UNICODE_STYLE, draw_sequence, max_label_width

    width = shutil.get_terminal_size().columns if is_terminal() else PLAIN_WIDTH
    if full:
        width = max(width, max_label_width(steps))
    drawing = UNICODE_STYLE if can_write("│▶", sys.stdout.encoding) else ASCII_STYLE
    for kind, line in draw_sequence(steps, width, drawing):
        print_styled(kind, line)


def can_write(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def print_styled(kind: StepKind | None, line: str) -> None:
    if not is_terminal():
        print_line(line.rstrip())
        return
    from rich.text import Text

    styles = {"response": "green", "error": "bold red", "notification": "cyan", "invalid": "red", "stray": "red"}
    style = "bold" if kind is None else styles.get(kind, "")
    console().print(Text(line, style=style, no_wrap=True, overflow="ignore"), crop=False)


# -- replay


@trace.command(cls=PassthroughCommand)
@dialect_option
@click.option("--timeout", default=5.0, show_default=True, metavar="SECONDS", help="Timeout for each message.")
@click.option(
    "--ignore",
    "-i",
    multiple=True,
    metavar="POINTER",
    help="Do not compare this member, such as /result/thrown; `*` matches any name. Repeatable.",
)
@json_option
@click.argument("file", type=READ_FILE)
def replay(
    file: Path, program: tuple[str, ...], dialect: str | None, timeout: float, ignore: tuple[str, ...], as_json: bool
) -> int:
    """Send the host's messages in FILE to CMD, and compare its responses with the recorded ones.

    Calls that CMD makes get the recorded responses, so no host is needed. Concurrent messages may arrive in any order.
    Not compared: ids of CMD's own calls, remaining time, and notifications that begin with `$/`. The exit code is 1 if
    there are differences.

    \b
    becket trace replay notes.jsonl -- python3 notes.py
    becket trace replay --ignore /result/thrown --ignore '/params/*' dice.jsonl -- node dice.js
    """
    from becket.testing.transcripts.file_format import load_transcript

    for pointer in ignore:
        if not pointer.startswith("/"):
            raise click.BadParameter(f"`{pointer}` is not a JSON pointer: it must begin with /", param_hint="--ignore")
    transcript = load_transcript(file)
    played: Replay = run_async(run_replay, transcript, program, choose_dialect(dialect, transcript), timeout, ignore)
    if as_json:
        print_json({"compared": played.compared, "differences": played.differences})
    else:
        for difference in played.differences:
            print_line(format_difference(difference))
        print_message(
            f"{pluralize(played.compared, 'message')} compared, {pluralize(len(played.differences), 'difference')}"
        )
    return ExitCode.FAILED if played.differences else ExitCode.DONE


async def run_replay(
    transcript: Transcript, command: Sequence[str], dialect: Dialect, timeout: float, ignore: Sequence[str]
) -> Replay:
    from becket.cli.support import replay

    return await replay.replay(
        transcript, command, dialect=dialect, timeout=timeout, ignore=ignore, on_stderr=print_message
    )


def format_difference(difference: Difference) -> str:
    where = "" if difference.number is None else f"entry {difference.number}: "
    at = f" at {difference.pointer}" if difference.pointer else ""
    lines = [f"{where}{difference.message}{at}: {difference.problem}"]
    if difference.expected is not None:
        lines.append(f"  recorded: {difference.expected}")
    if difference.found is not None:
        lines.append(f"  received: {difference.found}")
    return "\n".join(escape(line) for line in lines)
