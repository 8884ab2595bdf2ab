"""`becket run`: a host on folders of extensions, until somebody ends it; or once, to see whether all of them start."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from time import strftime
from typing import TYPE_CHECKING, Any, Final

import anyio
import click

from becket.cli.event_lines import describe_event, event_object
from becket.cli.exits import Exit
from becket.cli.hosting import FILE, HostOptions, host_options, run_async
from becket.cli.logs import matters, show_logs
from becket.cli.output import (
    console,
    is_terminal,
    json_option,
    print_json,
    print_json_line,
    print_line,
    print_table,
    say,
)
from becket.cli.status import COLOURS, HEADERS, is_up, problem_objects, status_objects, status_rows
from becket.cli.trace import record_each
from becket.errors import BecketError, harmless
from becket.host.events import ExtensionLogged, HostEvent
from becket.host.host import Host
from becket.stores.store import now_ms

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["run"]

WIDE: Final = 150  # columns of a terminal that has room for all headers, and for a note
NARROW: Final = frozenset({"extension", "state", "calls/s", "latency", "restarts", "note"})  # what one with less shows
LEAST_NOTE: Final = 8  # columns of a note that tells something
GAP: Final = 3  # columns between two cells
NUMBERS: Final = frozenset({"pid", "tools", "calls", "calls/s", "latency", "95 %", "asked", "asked/s", "restarts"})
PICTURES: Final = 0.25  # seconds between two pictures of the table: more cannot be read


@click.command()
@host_options(roots="argument")
@click.option("--once", is_flag=True, help="Start all, print how they do, and end; for scripts.")
@click.option("--watch", type=click.Choice(["report", "reload"]), help="What to do when files of an extension change.")
@click.option("--logs", is_flag=True, help="Tell what extensions log among the events, instead of on stderr.")
@click.option("--trace", type=FILE, metavar="FILE", help="Record what is said: FILE with the id of each extension.")
@json_option
def run(
    options: HostOptions, once: bool, watch: str | None, logs: bool, trace: Path | None, as_json: bool
) -> Exit | None:
    """Start a host on the extensions in ROOTS, or in the current folder.

    On a terminal there is a table of all extensions with their state, calls a second, latency and restarts; elsewhere
    one line for each event, or with --json one JSON object. Ctrl-C ends it in good order.

    \b
    becket run extensions --grant notes=memory.read
    becket run --config host.toml --watch reload
    becket run extensions --json --logs | jq 'select(.event == "extension_logged")'
    becket run extensions --trace run.jsonl       # run.notes.jsonl, ...: see becket trace show
    becket run extensions --once --json --yes     # 0 if all of them start
    """
    more: dict[str, Any] = {} if watch is None else {"watch": watch}
    if trace is not None:
        trace.parent.mkdir(parents=True, exist_ok=True)
        more["wrap"] = record_each(trace)
    if once:
        return run_async(run_once, options, more, as_json)
    return run_async(run_on, options, more, as_json, logs)


# -- once


async def run_once(options: HostOptions, more: dict[str, Any], as_json: bool) -> Exit:
    with show_logs(options.log_config()):
        async with options.open(**more) as host:
            await wait_for_all(host)
            statuses = host.status()
            problems = host.problems
    if as_json:
        print_json({"extensions": status_objects(statuses), "problems": problem_objects(problems)})
    elif statuses:
        print_table(HEADERS, status_rows(statuses))
    for problem in () if as_json else problems:
        say(f"{problem.severity}: {problem}")
    if not statuses:
        return none_found(host)
    return Exit.DONE if all(map(is_up, statuses)) and not host.report.invalid else Exit.NOT_RUNNING


async def wait_for_all(host: Host) -> None:
    """Waits until each extension runs or has failed to."""
    async with anyio.create_task_group() as tasks:
        for id in host:
            tasks.start_soon(wait_for_one, host, id)


async def wait_for_one(host: Host, id: str) -> None:
    try:
        await host.ready(id)
    except BecketError:
        pass  # its status tells


def none_found(host: Host) -> Exit:
    roots = ", ".join(str(root) for root in host.roots)
    say(f"error: there is no extension to start in: {roots} (try: becket doctor)")
    return Exit.NOT_FOUND


# -- until it is ended


async def run_on(options: HostOptions, more: dict[str, Any], as_json: bool, logs: bool) -> Exit:
    screen: Screen | Lines = Screen() if is_terminal() and not as_json else Lines(as_json=as_json)
    host = options.open(pausing=screen.pausing, **more)
    config = options.log_config()
    reader_gone = anyio.Event()

    def tell(event: HostEvent) -> None:
        if not isinstance(event, ExtensionLogged) or (logs and matters(event.level, config)):
            try:
                screen.tell(event)
            except BrokenPipeError:
                unsubscribe()
                reader_gone.set()

    unsubscribe = host.events.subscribe(HostEvent, tell)
    with show_logs(config, screen.log, of_extensions=not logs):
        async with host, screen.showing(host):
            await wait_for_all(host)
            statuses = host.status()
            if any(map(is_up, statuses)):
                await reader_gone.wait()
                raise BrokenPipeError
    return Exit.NOT_RUNNING if statuses else none_found(host)


class Lines:
    """A line for each event."""

    log: Callable[[str], None] | None = None

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def tell(self, event: HostEvent) -> None:
        """Writes an event down."""
        if self._as_json:
            print_json_line(event_object(event, now_ms()))
        elif (text := describe_event(event)) is not None:
            print_line(f"{strftime('%H:%M:%S')} {harmless(text)}")

    @asynccontextmanager
    async def showing(self, host: Host) -> AsyncGenerator[None, None]:
        """Does nothing more."""
        yield

    def pausing(self) -> AbstractContextManager[object]:
        """Returns a block in which nothing special is done either."""
        return nullcontext()


class Screen:
    """A table of all extensions at the foot of a terminal, and the events above it."""

    def __init__(self) -> None:
        self._console = console()
        self._live: Live | None = None

    def tell(self, event: HostEvent) -> None:
        """Writes an event down, above the table."""
        if (text := describe_event(event)) is not None:
            self.log(f"{strftime('%H:%M:%S')} {text}")

    def log(self, line: str) -> None:
        """Writes a line above the table."""
        self._console.print(harmless(line), markup=False, soft_wrap=True)

    @asynccontextmanager
    async def showing(self, host: Host) -> AsyncGenerator[None, None]:
        """Keeps the table up to date in the block."""
        from rich.live import Live

        # Drawn from the loop: a thread of its own would draw in the midst of a question.
        with Live(build_table(host, self._console.width), console=self._console, auto_refresh=False) as self._live:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_drawing, host, self._live)
                try:
                    yield
                finally:
                    self._live.update(build_table(host, self._console.width), refresh=True)
                    tasks.cancel_scope.cancel()

    async def _keep_drawing(self, host: Host, live: Live) -> None:
        while True:
            if live.is_started:
                live.update(build_table(host, self._console.width), refresh=True)
            await anyio.sleep(PICTURES)

    @contextmanager
    def pausing(self) -> Generator[None]:
        """Draws nothing in the block."""
        live = self._live
        if live is None:
            yield
            return
        live.stop()
        try:
            yield
        finally:
            live.start()


def build_table(host: Host, width: int = WIDE) -> Table:
    """Returns the picture of how the extensions do now, for a terminal of so many columns: one line for each."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    statuses = host.status()
    rows = fit_rows([HEADERS, *([harmless(cell) for cell in row] for row in status_rows(statuses))], width)
    table = Table(box=box.SIMPLE, padding=(0, 1), pad_edge=False)
    for header in rows[0]:
        table.add_column(header, justify="right" if header in NUMBERS else "left", no_wrap=True)
    for status, row in zip(statuses, rows[1:], strict=True):
        cells = [Text(cell) for cell in row]
        cells[rows[0].index("state")].stylize(COLOURS.get(status.state, ""))
        table.add_row(*cells)
    return table


def fit_rows(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Returns the rows with the columns that a terminal has room for, headers first; the note gives way to the rest."""
    all_headers = range(len(HEADERS))
    for columns in (all_headers, [number for number in all_headers if HEADERS[number] in NARROW]):
        *shown, note = columns
        room = width - sum(max(len(row[number]) for row in rows) + GAP for number in shown) - GAP
        if room >= LEAST_NOTE:
            break
    room = max(len(HEADERS[note]), room)
    return [[*(row[number] for number in shown), shorten(row[note], room)] for row in rows]


def shorten(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
