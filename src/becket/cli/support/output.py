"""Writes data to stdout and messages to stderr; tables, JSON and plain text.

What comes from outside is shown and never obeyed: it goes through `escape`. Where `NO_COLOR` is set nothing has a
colour. `rich` is imported only when something is drawn.
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
BETWEEN = "   "  # what stands between two cells of a table that is drawn
LEAST_COLUMN = 12  # columns of a terminal for a cell that goes on in the next line
MOST_DRAWN = 1_000  # rows of a table that is drawn; a longer one is written line by line


def json_option(function: F) -> F:
    """Gives a command the option `--json`, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout, for programs.")(function)


def is_terminal() -> bool:
    """Returns whether stdout is a terminal, so that something can be drawn there."""
    return sys.stdout.isatty()


def console(*, stderr: bool = False) -> Console:
    """Returns what draws on stdout or on stderr."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(value: object) -> None:
    """Writes one JSON document as one line; on a terminal, with line breaks. Structs become objects."""
    data = msgspec.json.encode(value)
    print_line(escape_json((msgspec.json.format(data, indent=2) if is_terminal() else data).decode()))


def print_json_line(value: object) -> None:
    """Writes one JSON document as one line of many, also on a terminal."""
    print_line(escape_json(msgspec.json.encode(value).decode()))


def escape_json(document: str) -> str:
    """Returns the same JSON with visible escapes for what could move a cursor, change a direction or hide."""
    is_printable = all(line == escape(line) for line in document.split("\n"))
    return document if is_printable else "".join(map(escape_for_json, document))


def escape_for_json(char: str) -> str:
    if char == "\n" or escape(char) == char:
        return char
    units = char.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_line(text: str = "") -> None:
    """Writes one line of data. It stays as it is: what came from outside was made `escape` before."""
    try:
        click.echo(text)
    except OSError as error:
        error.filename = error.filename or "stdout"
        raise


def print_message(text: str) -> None:
    """Writes words for people, on stderr."""
    click.echo("\n".join(escape(line) for line in text.split("\n")), err=True)


def pluralize(number: int, noun: str) -> str:
    """Returns a number and a noun that fits it."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Writes a table: drawn on a terminal; elsewhere one row a line in columns, headers in capitals above.

    Cells may hold what came from outside."""
    cells = [[escape(cell) for cell in row] for row in rows]
    if is_terminal():
        draw_table(headers, cells, title)
    else:
        print_columns(headers, lambda: cells)


def print_long_table(headers: Sequence[str], rows: Callable[[], Iterable[Sequence[str]]]) -> None:
    """Writes a table of any length in constant memory, like `print_table`; it is drawn only if it is short.

    `rows` returns the rows from the beginning, each time that it is called."""

    def cells() -> Iterator[Sequence[str]]:
        return ([escape(cell) for cell in row] for row in rows())

    if is_terminal() and len(drawn := list(islice(cells(), MOST_DRAWN + 1))) <= MOST_DRAWN:
        draw_table(headers, drawn, "")
    else:
        print_columns(headers, cells)


def print_columns(headers: Sequence[str], rows: Callable[[], Iterable[Sequence[str]]]) -> None:
    """Writes rows one a line, in columns as wide as they must be; the last one ends where it ends."""
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
    """Returns how wide each column is drawn, in as many columns of a terminal; None where they do not fit.

    The first column, which names the row, keeps its width; the widest of the others give way, and their cells go on in
    the next line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    least = [widths[0], *(min(width, max(LEAST_COLUMN, len(rows[0][at + 1]))) for at, width in enumerate(widths[1:]))]
    if sum(least) > room:
        return None
    for _ in range(sum(widths) - room):
        widest = max((at for at, width in enumerate(widths) if width > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def draw_records(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Draws each row as a block of lines, for a terminal that has no room for columns. Nothing is cut."""
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
