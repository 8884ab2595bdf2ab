"""`becket run`: a host on folders of extensions, until somebody ends it; or once, to see whether all of them start."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import strftime
from typing import Any

import anyio
import click

from becket.cli.asking import read_answer
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
from becket.cli.screen import Screen, build_table
from becket.cli.status import HEADERS, is_up, problem_objects, status_objects, status_rows
from becket.cli.trace import record_each
from becket.errors import BecketError, harmless
from becket.host.events import ExtensionLogged, HostEvent
from becket.host.host import Host
from becket.stores.store import now_ms

__all__ = ["run"]


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
    more["live_trace"] = True
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
    elif statuses and is_terminal():
        screen = console()
        screen.print(build_table(statuses, screen.width))
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
    say(f"error: there is no extension to start in: {roots} (try: {host.command_lines.look('doctor')})")
    return Exit.NOT_FOUND


# -- until it is ended


async def run_on(options: HostOptions, more: dict[str, Any], as_json: bool, logs: bool) -> Exit:
    screen: Screen | Lines = Screen() if is_terminal() and not as_json else Lines(as_json=as_json)
    host = options.open(read_answer=screen.read_answer, **more)
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
        async with screen.showing(host), host:
            await wait_for_all(host)
            statuses = host.status()
            if any(map(is_up, statuses)):
                await reader_gone.wait()
                raise BrokenPipeError
    return Exit.NOT_RUNNING if statuses else none_found(host)


class Lines:
    """A line for each event."""

    log: Callable[[str], None] | None = None
    read_answer = staticmethod(read_answer)

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
