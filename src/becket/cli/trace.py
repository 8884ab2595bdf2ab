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
    from becket.testing.transcripts.file import Transcript
    from becket.testing.transcripts.replay import Difference, Replay
    from becket.testing.transcripts.steps import StepKind, TranscriptStep

__all__ = ["build_record_command", "trace", "wrap_each_command"]

LONGEST_LABEL = 1_000  # characters of params that a diagram keeps of each step
SHORT = 60  # characters of params that a table shows
PLAIN_WIDTH = 120  # columns of a diagram that is no picture on a terminal
READ_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--follow", "-f", is_flag=True, help="Show the traffic of a running host, until Ctrl-C.")
@click.option("--extension", "-e", "extensions", multiple=True, metavar="ID", help="Follow only this one; repeatable.")
@click.option("--full", is_flag=True, help="With --follow: params and results whole, and pings.")
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
    """Record a conversation between a host and a child, show it, and replay it; or follow that of a running host.

    \b
    becket trace --follow                                 all that a running `becket run` and its extensions send
    becket trace --follow --data state -e notes --json
    becket trace record notes.jsonl -- python3 notes.py   between any host and this program
    becket trace show notes.jsonl                         a table of all messages
    becket trace show --diagram notes.jsonl               who said what to whom
    becket trace replay notes.jsonl -- python3 notes.py   does it still answer the same?

    A host in Python is followed where it was started with `Host(live_trace=True)`.
    """
    if ctx.invoked_subcommand is not None:
        if follow:
            raise click.UsageError(f"--follow stands without `{ctx.invoked_subcommand}`", ctx)
        return None
    if not follow:
        click.echo(ctx.get_help())
        return None
    from becket.cli.support.trace_follow import follow_host

    return run_async(
        follow_host, options.data_dir().folder, extensions, full, as_json, options.command_lines().keep("run")
    )


def build_record_command(path: Path, command: Sequence[str]) -> list[str]:
    """Returns the command that runs another one and records what passes, in place of what is in that file."""
    # It runs in the folder of the extension, whose files are none of ours: -P.
    becket = [sys.executable, "-P", "-m", "becket"]
    return [*becket, "trace", "record", "--overwrite", str(path.absolute()), "--", *command]


def wrap_each_command(path: Path) -> Callable[[str, Sequence[str]], Sequence[str]]:
    """Returns what puts a recorder in front of every start of every extension.

    Each conversation has a file of its own, named after `path` and the extension: `trace.notes.jsonl`, and with its
    number if it is not the first."""
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
    """Run CMD, pass on all that goes in and out, and record it to FILE.

    To the host it is as if CMD itself ran: put this in front of the command in a manifest, or in the settings of any
    other host. Where FILE is there already (a host starts its extensions again) a number is added to its name.

    \b
    command = ["becket", "trace", "record", "/tmp/notes.jsonl", "--", "python3", "notes.py"]

    The file holds all that was said, secrets included: it is for your eyes.
    """
    from becket.cli.support.relay import exit_like, open_recording, relay

    path, opened = open_recording(file, overwrite=overwrite)
    if path != file:
        print_message(f"records to {path}")
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
    help="What was spoken, such as synaps; told by the recording or its first words unless given.",
)


@trace.command()
@dialect_option
@click.option("--diagram", "-d", is_flag=True, help="Draw who said what to whom, time downwards.")
@click.option("--full", is_flag=True, help="Show params and results whole, however long.")
@click.option("--method", "-m", multiple=True, metavar="NAME", help="Show only this method; repeatable.")
@json_option
@click.argument("file", type=READ_FILE)
def show(file: Path, dialect: str | None, diagram: bool, full: bool, method: tuple[str, ...], as_json: bool) -> None:
    """Show what was said in the conversation in FILE: as a table, or drawn.

    \b
    becket trace show notes.jsonl
    becket trace show --diagram notes.jsonl | less -R
    becket trace show --json -m tool.call notes.jsonl | jq .seconds
    """
    from becket.cli.support.sequence_diagram import step_object, without_meta

    notes: set[str] = set()

    def read() -> Iterator[TranscriptStep]:  # a table is read twice: for its widths, then for its rows
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
    """Yields the steps of a conversation in constant memory; `notes` gets what is odd about the file."""
    from becket.testing.transcripts.decoder import TranscriptDecoder
    from becket.testing.transcripts.file import TranscriptReader, bounded_lines
    from becket.testing.transcripts.steps import read_steps

    with file.open("rb") as opened:
        reader = TranscriptReader(bounded_lines(opened, str(file)), str(file))
        yield from read_steps(reader, TranscriptDecoder(choose_dialect(dialect, reader.head)).decode)
    if reader.is_cut:
        notes.add(f"{file}: its last line is torn: whoever recorded it was ended")
    elif not reader.head.entries:
        notes.add(f"{file}: nothing was said")


def with_short_content(step: TranscriptStep) -> TranscriptStep:
    """Returns a step with no more content than a line of a diagram can show, unless its content must be parsed."""
    if step.kind in ("error", "exit") or len(step.content) <= LONGEST_LABEL:
        return step
    return msgspec.structs.replace(step, content=step.content[:LONGEST_LABEL])


def choose_dialect(name: str | None, transcript: Transcript) -> Dialect:
    """Returns the dialect that somebody has named, or that the transcript tells."""
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

    styles = {"answer": "green", "error": "bold red", "notification": "cyan", "invalid": "red", "stray": "red"}
    style = "bold" if kind is None else styles.get(kind, "")
    console().print(Text(line, style=style, no_wrap=True, overflow="ignore"), crop=False)


# -- replay


@trace.command(cls=PassthroughCommand)
@dialect_option
@click.option("--timeout", default=5.0, show_default=True, metavar="SECONDS", help="Wait so long for each message.")
@click.option(
    "--ignore",
    "-i",
    multiple=True,
    metavar="POINTER",
    help="Do not compare this, such as /result/thrown; `*` is any name. Repeatable.",
)
@json_option
@click.argument("file", type=READ_FILE)
def replay(
    file: Path, program: tuple[str, ...], dialect: str | None, timeout: float, ignore: tuple[str, ...], as_json: bool
) -> int:
    """Say to CMD what the host says in FILE, and compare its answers with the recorded ones.

    Its calls are answered with the recorded answers, so it needs no host. Messages that may come at the same time may
    come in any order; ids of its own calls, time that was left, and notifications that begin with `$/` do not count.
    The exit code is 1 where something differs.

    \b
    becket trace replay notes.jsonl -- python3 notes.py
    becket trace replay --ignore /result/thrown --ignore '/params/*' dice.jsonl -- node dice.js
    """
    from becket.testing.transcripts.file import load_transcript

    for pointer in ignore:
        if not pointer.startswith("/"):
            raise click.BadParameter(f"`{pointer}` is no JSON pointer: it begins with a slash", param_hint="--ignore")
    transcript = load_transcript(file)
    spoken = choose_dialect(dialect, transcript)
    played: Replay = run_async(run_replay, transcript, program, spoken, timeout, ignore)
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
        lines.append(f"  came:     {difference.found}")
    return "\n".join(escape(line) for line in lines)


def pluralize(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
