"""`becket run`: runs a host on folders of extensions and shows their status."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import strftime
from typing import Any

import anyio
import click

from becket._text import escape
from becket.cli.support.event_format import build_event_object, format_event
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.logs import is_level_enabled, show_logs
from becket.cli.support.options import FILE, HostOptions, host_options, run_async
from becket.cli.support.output import (
    console,
    is_terminal,
    json_option,
    print_json,
    print_json_line,
    print_line,
    print_message,
    print_table,
)
from becket.cli.support.screen import Screen, build_table
from becket.cli.support.status_table import (
    HEADERS,
    build_problem_objects,
    build_status_objects,
    build_status_rows,
    is_up,
)
from becket.cli.support.terminal_prompt import read_answer
from becket.cli.trace import wrap_each_command
from becket.errors import BecketError
from becket.host.events import ExtensionLogged, HostEvent
from becket.host.host import Host
from becket.stores.store import now_ms

__all__ = ["run"]


@click.command()
@host_options(roots="argument")
@click.option("--once", is_flag=True, help="Start all extensions, print their status, and exit; for scripts.")
@click.option("--watch", type=click.Choice(["report", "reload"]), help="What to do when files of an extension change.")
@click.option("--logs", is_flag=True, help="Show extensions' log lines as events instead of on stderr.")
@click.option(
    "--trace", type=FILE, metavar="FILE", help="Record all messages; each extension's file has its id in the name."
)
@json_option
def run(
    options: HostOptions, once: bool, watch: str | None, logs: bool, trace: Path | None, as_json: bool
) -> ExitCode | None:
    """Start a host on the extensions in ROOTS, or in the current folder.

    A terminal shows a table of all extensions with their state, calls per second, latency and restarts. Otherwise each
    event is printed as one line of text, or of JSON with --json. Ctrl-C stops the extensions and exits.

    \b
    becket run extensions --grant notes=memory.read
    becket run --config host.toml --watch reload
    becket run extensions --json --logs | jq 'select(.event == "extension_logged")'
    becket run extensions --trace run.jsonl       # run.notes.jsonl, ...: see becket trace show
    becket run extensions --once --json --yes     # exits with 0 if all extensions start
    """
    more: dict[str, Any] = {} if watch is None else {"watch": watch}
    if trace is not None:
        trace.parent.mkdir(parents=True, exist_ok=True)
        more["wrap"] = wrap_each_command(trace)
    if once:
        return run_async(run_once, options, more, as_json)
    config = options.load_config()
    more["live_trace"] = config is None or config.live_trace
    return run_async(run_until_closed, options, more, as_json, logs)


# -- once


async def run_once(options: HostOptions, more: dict[str, Any], as_json: bool) -> ExitCode:
    with show_logs(options.log_config()):
        async with options.build_host(**more) as host:
            await wait_for_all(host)
            statuses = host.status()
            problems = host.problems
    if as_json:
        print_json({"extensions": build_status_objects(statuses), "problems": build_problem_objects(problems)})
    elif statuses and is_terminal():
        screen = console()
        screen.print(build_table(statuses, screen.width))
    elif statuses:
        print_table(HEADERS, build_status_rows(statuses))
    for problem in () if as_json else problems:
        print_message(f"{problem.severity}: {problem}")
    if not statuses:
        return report_none_found(host)
    return ExitCode.DONE if all(map(is_up, statuses)) and not host.report.invalid else ExitCode.NOT_RUNNING


async def wait_for_all(host: Host) -> None:
    """Waits until each extension runs or has failed to start."""
    async with anyio.create_task_group() as tasks:
        for id in host:
            tasks.start_soon(wait_for_one, host, id)


async def wait_for_one(host: Host, id: str) -> None:
    try:
        await host.ready(id)
    except BecketError:
        pass  # reported by its status


def report_none_found(host: Host) -> ExitCode:
    roots = ", ".join(str(root) for root in host.roots)
    print_message(f"error: no extension to start in: {roots} (try: {host.command_lines.look('doctor')})")
    return ExitCode.NOT_FOUND


# -- until closed


async def run_until_closed(options: HostOptions, more: dict[str, Any], as_json: bool, logs: bool) -> ExitCode:
    screen: Screen | LineDisplay = Screen() if is_terminal() and not as_json else LineDisplay(as_json=as_json)
    host = options.build_host(read_answer=screen.read_answer, **more)
    config = options.log_config()
    reader_gone = anyio.Event()

    def print_event(event: HostEvent) -> None:
        if not isinstance(event, ExtensionLogged) or (logs and is_level_enabled(event.level, config)):
            try:
                screen.on_event(event)
            except BrokenPipeError:
                unsubscribe()
                reader_gone.set()

    unsubscribe = host.events.subscribe(HostEvent, print_event)
    with show_logs(config, screen.log, of_extensions=not logs):
        async with screen.active(host), host:
            await wait_for_all(host)
            statuses = host.status()
            if any(map(is_up, statuses)):
                await reader_gone.wait()
                raise BrokenPipeError
    return ExitCode.NOT_RUNNING if statuses else report_none_found(host)


class LineDisplay:
    """Prints one line per event."""

    log: Callable[[str], None] | None = None
    read_answer = staticmethod(read_answer)

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def on_event(self, event: HostEvent) -> None:
        """Prints an event."""
        if self._as_json:
            print_json_line(build_event_object(event, now_ms()))
        elif (text := format_event(event)) is not None:
            print_line(f"{strftime('%H:%M:%S')} {escape(text)}")

    @asynccontextmanager
    async def active(self, host: Host) -> AsyncGenerator[None, None]:
        """Does nothing; the counterpart of `Screen.active`."""
        yield
