"""The screen of `becket run`: events and log lines, below them a table of all extensions, and prompts at the bottom.

Everything is drawn from the event loop: a drawing thread would interleave with other output, and a blocking prompt
would stop updates of the table.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from time import strftime
from typing import TYPE_CHECKING, Final

import anyio

from becket._text import escape, truncate
from becket.cli.support.event_format import format_event
from becket.cli.support.output import console
from becket.cli.support.status_table import COLOURS, HEADERS, build_status_rows
from becket.cli.support.terminal_prompt import discard_typed
from becket.errors import LocalProtocolError
from becket.host.events import ExtensionLogged, HostEvent
from becket.host.host import ExtensionStatus, Host

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

__all__ = ["WIDE", "Screen", "build_table", "fit_rows"]

WIDE: Final = 150  # columns that have room for all headers and a note
# The first of these that fits the terminal is shown.
COLUMNS: Final = (
    HEADERS,
    ("extension", "state", "calls/s", "latency", "restarts", "note"),
    ("extension", "state", "restarts", "note"),
    ("extension", "state", "note"),
    ("extension", "state"),
)
NOTE: Final = "note"
MIN_NOTE: Final = 8  # columns; a shorter note is not useful
GAP: Final = 3  # columns between two cells
NUMBERS: Final = frozenset({"pid", "tools", "calls", "calls/s", "latency", "95 %", "inbound", "inbound/s", "restarts"})
PICTURES: Final = 0.25  # seconds between updates of the table: more cannot be read
AROUND: Final = 5  # lines of a table besides its rows, and the cursor's line
MIN_ROWS: Final = 1
ANSWER: Final = "[y/N] "
MAX_ANSWER_LENGTH: Final = 20  # characters
ENTER, BACKSPACE, KILL_LINE, END_OF_INPUT = "\r\n", "\x7f\b", "\x15", "\x04"
ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")  # sent by keys such as the arrows


class Screen:
    """Draws while a host runs: `async with screen.active(host), host`, because a starting host may already prompt."""

    def __init__(self) -> None:
        self._console = console()
        self._host: Host | None = None
        self._live: Live | None = None
        self._prompt: ConsolePrompt | None = None
        self._terminal = ExitStack()

    def on_event(self, event: HostEvent) -> None:
        """Writes an event above the table."""
        if (text := format_event(event)) is not None:
            self.log(f"{strftime('%H:%M:%S')} {text}")
            if not isinstance(event, ExtensionLogged):  # frequent, and changes no state
                self._draw()

    def log(self, line: str) -> None:
        """Writes a line above the table."""
        self._console.print(escape(line), markup=False, soft_wrap=True)

    @asynccontextmanager
    async def active(self, host: Host) -> AsyncGenerator[None, None]:
        """Keeps the table up to date in the block, and restores the terminal afterwards."""
        self._host = host
        with self._terminal:
            self._take_terminal()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_drawing)
                tasks.start_soon(self._release_when_stopped)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
                    self._draw()

    def _take_terminal(self) -> None:
        from rich.live import Live

        self._terminal.enter_context(without_echo())
        self._live = self._terminal.enter_context(Live(console=self._console, auto_refresh=False))

    async def _release_when_stopped(self) -> None:
        """Restores the terminal at Ctrl-Z, and draws again after `fg`."""
        while True:
            with anyio.open_signal_receiver(signal.SIGTSTP) as signals:
                await anext(aiter(signals))
            self._terminal.close()
            signal.raise_signal(signal.SIGTSTP)  # no longer handled: stops the program until SIGCONT
            self._take_terminal()
            self._draw()

    async def _keep_drawing(self) -> None:
        while True:
            self._draw()
            await anyio.sleep(PICTURES)

    def _draw(self) -> None:
        assert self._live is not None
        assert self._host is not None
        try:
            picture = build_picture(self._host, self._prompt, *self._console.size)
        except LocalProtocolError:  # the host has not started
            return
        self._live.update(picture, refresh=True)

    async def read_answer(self, question: str) -> str | None:
        """Prompts below the table and returns the typed line, or None at the end of input."""
        discard_typed()
        prompt = ConsolePrompt([escape(line) for line in question.split("\n")])
        if not prompt.fits(*self._console.size):
            self._console.print("\n".join(prompt.lines[:-1]), markup=False, soft_wrap=True)
            prompt.lines = prompt.lines[-1:]
        self._prompt = prompt
        try:
            while not prompt.is_done:
                self._draw()
                await anyio.wait_readable(sys.stdin)
                prompt.take(os.read(sys.stdin.fileno(), 4096).decode(errors="replace"))
        finally:
            self._prompt = None
            self.leave(prompt)
        return None if prompt.has_ended else prompt.typed.strip()

    def leave(self, prompt: ConsolePrompt) -> None:
        """Writes a prompt and its response permanently above the table."""
        for line in [*prompt.lines[:-1], f"{prompt.lines[-1]} {ANSWER}{escape(prompt.typed)}"]:
            self._console.print(line, markup=False, soft_wrap=True)
        self._draw()


# -- the prompt


class ConsolePrompt:
    """A prompt and the text typed so far."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.typed = ""
        self.is_done = False
        self.has_ended = False  # end of input without a decision

    def take(self, keys: str) -> None:
        """Handles typed keys; an empty string is the end of input."""
        if not keys:
            self.is_done = self.has_ended = True
        for key in ESCAPES.sub("", keys):
            if key in ENTER:
                self.is_done = True
                return
            if key == END_OF_INPUT:
                self.is_done = True
                self.has_ended = not self.typed
                return
            if key in BACKSPACE:
                self.typed = self.typed[:-1]
            elif key == KILL_LINE:
                self.typed = ""
            elif key.isprintable():
                self.typed = (self.typed + key)[:MAX_ANSWER_LENGTH]

    def fits(self, width: int, height: int) -> bool:
        """Returns whether the prompt fits below a table of one row."""
        return self.height(width) + AROUND + MIN_ROWS <= height

    def height(self, width: int) -> int:
        """Returns the number of lines of the prompt."""
        lines = [*self.lines[:-1], f"{self.lines[-1]} {ANSWER}{self.typed} "]
        return sum(max(1, -(-len(line) // width)) for line in lines)

    def draw(self) -> Text:
        """Returns the prompt with a cursor after the typed text."""
        from rich.text import Text

        text = Text("\n".join(self.lines), overflow="fold")
        return text.append(f" {ANSWER}{escape(self.typed)}", style="bold").append(" ", style="reverse")


@contextmanager
def without_echo() -> Generator[None]:
    """Turns off echo and line buffering in the block: the terminal would echo keys into the table."""
    import termios

    fd = sys.stdin.fileno()
    if not sys.stdin.isatty() or os.tcgetpgrp(fd) != os.getpgrp():  # tcsetattr stops a background job
        yield
        return
    before = termios.tcgetattr(fd)
    changed = termios.tcgetattr(fd)
    changed[3] &= ~(termios.ECHO | termios.ICANON)  # ISIG stays: Ctrl-C ends the program
    termios.tcsetattr(fd, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


# -- the table


def build_picture(host: Host, prompt: ConsolePrompt | None, width: int, height: int) -> Group:
    """Returns the table, with as many rows as fit, and the prompt."""
    from rich.console import Group
    from rich.text import Text

    below = 0 if prompt is None else prompt.height(width)
    rows = max(MIN_ROWS, height - below - AROUND)
    statuses = host.status()
    parts: list[Table | Text] = [build_table(statuses[:rows], width)]
    if (hidden := len(statuses) - rows) > 0:
        parts.append(Text(f"{hidden} more extensions", style="dim"))
    if prompt is not None:
        parts.append(prompt.draw())
    return Group(*parts)


def build_table(statuses: Sequence[ExtensionStatus], width: int = WIDE) -> Table:
    """Returns the status table for a terminal of this width."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = fit_rows([HEADERS, *([escape(cell) for cell in row] for row in build_status_rows(statuses))], width)
    table = Table(box=box.SIMPLE, padding=(0, 1), pad_edge=False)
    for header in rows[0]:
        is_folded = header == "extension"  # a long id is wrapped, never truncated
        table.add_column(
            header,
            justify="right" if header in NUMBERS else "left",
            no_wrap=not is_folded,
            overflow="fold" if is_folded else "ellipsis",
        )
    for status, row in zip(statuses, rows[1:], strict=True):
        cells = [Text(cell) for cell in row]
        cells[rows[0].index("state")].stylize(COLOURS.get(status.state, ""))
        table.add_row(*cells)
    return table


def fit_rows(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Returns the rows, headers first, with the columns that fit the width; the note is truncated."""
    return next(fitted for headers in COLUMNS if (fitted := fit_columns(rows, headers, width)) is not None)


def fit_columns(rows: Sequence[Sequence[str]], headers: Sequence[str], width: int) -> list[list[str]] | None:
    shown = [HEADERS.index(header) for header in headers if header != NOTE]
    if NOTE not in headers:
        return [[row[number] for number in shown] for row in rows]
    room = width - sum(max(len(row[number]) for row in rows) + GAP for number in shown) - GAP
    if room < MIN_NOTE:
        return None
    return [[*(row[number] for number in shown), truncate(row[HEADERS.index(NOTE)], room, "…")] for row in rows]
