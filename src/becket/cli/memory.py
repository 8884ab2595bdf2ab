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
    MomentType = click.ParamType  # not generic in older versions

__all__ = ["format_time", "memory"]

MAX_CONTENT_WIDTH = 70  # characters of a record in a table
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class TimeParam(MomentType):
    """A time in milliseconds since 1970, given as a date, a date with a time, or an age."""

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
                self.fail(f"`{text}` is not a time: give 2024-05-31, 2024-05-31T12:00, or an age such as 90m, 2h, 3d")
        return max(0, int(moment.timestamp() * 1000))


limit_option = click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="Maximum number of records.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def memory() -> None:
    """Show and remove the records that extensions have stored. The host may be running, except for `forget`.

    \b
    becket memory list                       number and size of records by extension
    becket memory list notes --since 2h      the newest records of an extension
    becket memory search notes buy milk      records that have all these words, best match first
    becket memory show notes 17              one record in full
    becket memory forget notes --up-to 17    remove the oldest records
    becket memory verify                     check the store for damage
    """


@memory.command("list")
@click.option("--contains", metavar="TEXT", help="Only records with this text, ignoring case.")
@click.option("--tag", metavar="PREFIX", help="Only records with a tag that begins with this.")
@click.option(
    "--since", type=TimeParam(), help="Only records since this time: 2024-05-31T12:00, or 2h for 2 hours ago."
)
@click.option("--until", type=TimeParam(), help="Only records until this time.")
@limit_option
@json_option
@data_dir_options
@click.argument("extension", required=False)
def list_records(options: DataDirOptions, extension: str | None, limit: int, as_json: bool, **conditions: Any) -> None:
    """List the newest records of EXTENSION; without it, the number and size of records by extension.

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
    """Find the records of EXTENSION that have all WORDS, best match first.

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
    """Show the record ID of EXTENSION in full, with its tags and metadata.

    \b
    becket memory show notes 17
    """
    from becket.stores.sqlite.inspect import load_record

    record = load_record(options.data_dir().store, extension, id)
    if record is None:
        line = options.command_lines().keep("memory", "list", extension)
        print_message(f"error: {extension} has no record {id} (`{line}` lists its records)")
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
@click.option("--yes", "-y", is_flag=True, help="Do not prompt.")
@data_dir_options
@click.argument("extension")
def forget(options: DataDirOptions, extension: str, up_to: int | None, yes: bool) -> int | None:
    """Remove all records of EXTENSION, or those up to an id. This cannot be undone.

    The host must not be running.

    \b
    becket memory forget notes --up-to 17
    """
    from becket.cli.support.store import open_store

    with open_store(options) as store:
        what = "all records" if up_to is None else f"the records up to {up_to}"
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("Cannot prompt, because stdin is not a terminal: give --yes")
            click.confirm(f"Remove {what} of {extension}?", abort=True, err=True)
        count = store.forget(extension, up_to=up_to)
    print_message(f"{extension}: {count} removed")
    return ExitCode.DONE if count else ExitCode.NOT_FOUND


@memory.command()
@click.option(
    "--accept", is_flag=True, help="Accept known losses: do not report them again. The host must not be running."
)
@json_option
@data_dir_options
def verify(options: DataDirOptions, accept: bool, as_json: bool) -> int:
    """Read the whole store and list data that was lost or changed after it was acknowledged.

    This takes about 10 seconds for 100,000 records; the host may be running. Remove damaged records with `becket memory
    forget`, replace damaged values with `becket config set`; a damaged index is rebuilt automatically.

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
        print_message(f"damage: {len(found)} found" if found else "no damage found")
    return ExitCode.FAILED if found else ExitCode.DONE


# -- records


def print_records(records: Sequence[Record], as_json: bool) -> None:
    """Prints records in the given order."""
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
    """Returns a time in the local time zone; an empty string for None."""
    if time_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"  # outside the range of datetime
