"""Writes data to stdout and messages to stderr; tables, JSON and plain text.

Text from outside goes through `escape`, so that it cannot control the terminal. `NO_COLOR` turns colours off. `rich` is
imported only when something is drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from becket._text import escape

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "console",
    "escape_json",
    "is_terminal",
    "json_option",
    "pluralize",
    "print_json",
    "print_json_line",
    "print_line",
    "print_long_table",
    "print_message",
    "print_table",
]

F = TypeVar("F", bound=Callable[..., Any])
COLUMN_GAP = "  "
BETWEEN = "   "  # between two cells of a drawn table
MIN_COLUMN = 12  # minimum width of a column whose cells are wrapped
MAX_DRAWN = 1_000  # rows of a drawn table; a longer one is written as plain columns


def json_option(function: F) -> F:
    """Adds the option `--json` to a command, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout, for programs.")(function)


def is_terminal() -> bool:
    """Returns whether stdout is a terminal."""
    return sys.stdout.isatty()


def console(*, stderr: bool = False) -> Console:
    """Returns a rich console for stdout or stderr."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(value: object) -> None:
    """Writes one JSON document as one line, or indented on a terminal. Structs become objects."""
    data = msgspec.json.encode(value)
    print_line(escape_json((msgspec.json.format(data, indent=2) if is_terminal() else data).decode()))


def print_json_line(value: object) -> None:
    """Writes one JSON document as one line of many, also on a terminal."""
    print_line(escape_json(msgspec.json.encode(value).decode()))


def escape_json(document: str) -> str:
    """Returns the same JSON with escapes for control, bidirectional and invisible characters."""
    is_safe = all(line == escape(line) for line in document.split("\n"))
    return document if is_safe else "".join(map(escape_for_json, document))


def escape_for_json(char: str) -> str:
    if char == "\n" or escape(char) == char:
        return char
    units = char.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_line(text: str = "") -> None:
    """Writes one line of data to stdout, unescaped: the caller escapes text from outside."""
    try:
        click.echo(text)
    except OSError as error:
        error.filename = error.filename or "stdout"
        raise


def print_message(text: str) -> None:
    """Writes a message for people to stderr, escaped."""
    click.echo("\n".join(escape(line) for line in text.split("\n")), err=True)


def pluralize(number: int, noun: str) -> str:
    """Returns a number with a noun in the singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Draws a table on a terminal, or writes plain columns with headers in capitals. Cells are escaped."""
    cells = [[escape(cell) for cell in row] for row in rows]
    if is_terminal():
        draw_table(headers, cells, title)
    else:
        print_columns(headers, lambda: cells)


def print_long_table(headers: Sequence[str], rows: Callable[[], Iterable[Sequence[str]]]) -> None:
    """Writes a table of any length in constant memory, like `print_table`; draws it only if it is short.

    Each call of `rows` returns all rows."""

    def cells() -> Iterator[Sequence[str]]:
        return ([escape(cell) for cell in row] for row in rows())

    if is_terminal() and len(drawn := list(islice(cells(), MAX_DRAWN + 1))) <= MAX_DRAWN:
        draw_table(headers, drawn, "")
    else:
        print_columns(headers, cells)


def print_columns(headers: Sequence[str], rows: Callable[[], Iterable[Sequence[str]]]) -> None:
    """Writes one row per line in aligned columns; the last column is not padded."""
    first = [header.upper() for header in headers]
    widths = list(map(len, first))
    for row in rows():
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], len(cell))
    widths[-1] = 0
    for row in chain([first], rows()):
        print_line(
            COLUMN_GAP.join((cell or "-").ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def draw_table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = console()
    widths = share_columns([headers, *rows], screen.width - len(headers) * len(BETWEEN))
    if widths is None:
        draw_records(headers, rows, title)
        return
    table = Table(box=box.SIMPLE, title=title or None, title_justify="left")
    for header, width in zip(headers, widths, strict=True):
        table.add_column(header, width=width, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    screen.print(table)


def share_columns(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Returns the width of each column, in total at most `room`; None if they do not fit.

    The first column, which names the row, keeps its width; the widest of the others are shrunk, and their cells
    wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    least = [widths[0], *(min(width, max(MIN_COLUMN, len(rows[0][at + 1]))) for at, width in enumerate(widths[1:]))]
    if sum(least) > room:
        return None
    for _ in range(sum(widths) - room):
        widest = max((at for at, width in enumerate(widths) if width > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def draw_records(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Draws each row as a block of lines, for a terminal that is too narrow for columns. Nothing is truncated."""
    from rich.table import Table
    from rich.text import Text

    screen = console()
    if title:
        screen.print(Text(title, style="italic"))
    for row in rows:
        screen.print(Text(row[0], style="bold", overflow="fold"))
        block = Table.grid(padding=(0, 2))
        block.add_column(no_wrap=True)
        block.add_column(overflow="fold")
        for header, cell in zip(headers[1:], row[1:], strict=True):
            if cell:
                block.add_row(f"  {header}", Text(cell))
        screen.print(block)
