"""`becket memory`: lists, searches, shows and deletes stored records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from becket._text import escape, truncate
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import DataDirOptions, data_dir_options
from becket.cli.support.output import json_option, print_json, print_line, print_message, print_table

if TYPE_CHECKING:
    from becket.contract.memory import Record

    MomentType = click.ParamType[int]
else:
    MomentType = click.ParamType  # older ones take no parameter

__all__ = ["format_time", "memory"]

MAX_CONTENT_WIDTH = 70  # characters of a record that a table shows
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class TimeParam(MomentType):
    """A time on the command line, in milliseconds since 1970: a date, a date and a time, or how long ago."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the time."""
        text = str(value)
        if text[:-1].isdigit() and text[-1:] in UNITS:
            moment = datetime.now(UTC) - timedelta(**{UNITS[text[-1]]: int(text[:-1])})
        else:
            try:
                moment = datetime.fromisoformat(text).astimezone()
            except ValueError:
                self.fail(f"`{text}` is no time: give 2024-05-31, 2024-05-31T12:00, or 90m, 2h, 3d for so long ago")
        return max(0, int(moment.timestamp() * 1000))


limit_option = click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="At most so many.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def memory() -> None:
    """Look into what extensions have remembered, also while their host runs.

    \b
    becket memory list                       who remembers how much
    becket memory list notes --since 2h      the newest records of one
    becket memory search notes buy milk      those that have all these words, the best first
    becket memory show notes 17              one record, whole
    becket memory forget notes --up-to 17    remove the oldest
    becket memory verify                     look for damage
    """


@memory.command("list")
@click.option("--contains", metavar="TEXT", help="Only records with this text, in upper or lower case.")
@click.option("--tag", metavar="PREFIX", help="Only records with a tag that begins so.")
@click.option("--since", type=TimeParam(), help="Not before this time: 2024-05-31T12:00, or 2h for so long ago.")
@click.option("--until", type=TimeParam(), help="Not after this time.")
@limit_option
@json_option
@data_dir_options
@click.argument("extension", required=False)
def list_records(options: DataDirOptions, extension: str | None, limit: int, as_json: bool, **conditions: Any) -> None:
    """List the newest records of EXTENSION; without it, who remembers how much.

    \b
    becket memory list notes --since 2h --tag shop
    """
    if extension is None:
        list_usage(options, as_json)
        return
    from becket.contract.memory import Query
    from becket.stores.sqlite import SqliteStore

    query = Query(
        extension,
        content_contains=conditions["contains"],
        tag_prefix=conditions["tag"],
        since_ms=conditions["since"],
        until_ms=conditions["until"],
        limit=limit,
    )
    with SqliteStore(options.data_dir().store, read_only=True) as store:
        print_records(store.query(query), as_json)


def list_usage(options: DataDirOptions, as_json: bool) -> None:
    from becket.stores.sqlite.inspect import load_usage

    shares = [share for share in load_usage(options.data_dir().store) if share.records]
    if as_json:
        print_json(shares)
        return
    rows = [(share.extension, str(share.records), str(share.bytes), format_time(share.newest_ms)) for share in shares]
    print_table(["extension", "records", "bytes", "newest"], rows)


@memory.command()
@limit_option
@json_option
@data_dir_options
@click.argument("extension")
@click.argument("words", nargs=-1, required=True)
def search(options: DataDirOptions, extension: str, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find the records of EXTENSION that have all WORDS, the best first.

    \b
    becket memory search notes buy milk
    """
    from becket.stores.sqlite import SqliteStore

    with SqliteStore(options.data_dir().store, read_only=True) as store:
        print_records(store.search(extension, " ".join(words), limit=limit), as_json)


@memory.command()
@json_option
@data_dir_options
@click.argument("extension")
@click.argument("id", type=click.IntRange(min=0))
def show(options: DataDirOptions, extension: str, id: int, as_json: bool) -> int:
    """Show the record ID of EXTENSION whole, with its tags and what else belongs to it.

    \b
    becket memory show notes 17
    """
    from becket.stores.sqlite.inspect import load_record

    record = load_record(options.data_dir().store, extension, id)
    if record is None:
        line = options.command_lines().keep("memory", "list", extension)
        print_message(f"error: {extension} has no record {id} (`{line}` shows which)")
        return ExitCode.NOT_FOUND
    if as_json:
        print_json(record)
        return ExitCode.DONE
    print_message(f"{format_time(record.timestamp_ms)}  {' '.join(record.tags)}".rstrip())
    for line in record.content.split("\n"):
        print_line(escape(line))
    if record.meta is not None:
        print_json(record.meta)
    return ExitCode.DONE


@memory.command()
@click.option("--up-to", type=click.IntRange(min=0), metavar="ID", help="Only records up to this one.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@data_dir_options
@click.argument("extension")
def forget(options: DataDirOptions, extension: str, up_to: int | None, yes: bool) -> int | None:
    """Remove all records of EXTENSION, or those up to an id. They cannot be brought back.

    The host must not run meanwhile.

    \b
    becket memory forget notes --up-to 17
    """
    from becket.cli.support.store import open_store

    with open_store(options) as store:
        what = "all records" if up_to is None else f"the records up to {up_to}"
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("There is nobody to ask: give --yes")
            click.confirm(f"Remove {what} of {extension}?", abort=True, err=True)
        count = store.forget(extension, up_to=up_to)
    print_message(f"{extension}: {count} removed")
    return ExitCode.DONE if count else ExitCode.NOT_FOUND


@memory.command()
@click.option("--accept", is_flag=True, help="Report no more what was found lost earlier. The host must not run.")
@json_option
@data_dir_options
def verify(options: DataDirOptions, accept: bool, as_json: bool) -> int:
    """Read the whole store and list what in it was lost or changed since it was acknowledged.

    That takes about 10 seconds for 100,000 records; the host may run meanwhile. Damaged records can be removed with
    `becket memory forget`, damaged values with `becket config set`; a damaged index is made anew by itself.

    \b
    becket memory verify
    becket memory verify --accept
    """
    from becket.cli.support.store import open_store
    from becket.stores.sqlite import SqliteStore

    if accept:
        with open_store(options) as store:
            store.accept_losses()
            found = store.verify()
    else:
        with SqliteStore(options.data_dir().store, read_only=True) as store:
            found = store.verify()
    if as_json:
        print_json(found)
    else:
        for one in found:
            print_line(escape(str(one)))
        print_message(f"damage: {len(found)} found" if found else "all is well")
    return ExitCode.FAILED if found else ExitCode.DONE


# -- records


def print_records(records: Sequence[Record], as_json: bool) -> None:
    """Writes records in the order in which they come."""
    if as_json:
        print_json(records)
        return
    rows = [
        (
            str(record.id or ""),
            format_time(record.timestamp_ms),
            " ".join(record.tags),
            truncate(" ".join(record.content.split()), MAX_CONTENT_WIDTH),
        )
        for record in records
    ]
    print_table(["id", "time", "tags", "content"], rows)


def format_time(time_ms: int | None) -> str:
    """Returns a time for people, in their own time zone; nothing for no time."""
    if time_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"  # no year that a calendar has
