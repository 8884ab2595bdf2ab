"""`LiveView`: draws the events of a running command or completion on a terminal with rich.

`async with notes.invoke_command("reindex") as run: await live(run)` shows all of it and returns the result. On an
output that is not a terminal it is plain text, and of a task only its messages, beginning and end are shown. An
extension's output is never interpreted: control characters become visible, and markup stays text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any, Final, Protocol, TypeVar, assert_never

from rich import box
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text as RichText

from becket._text import escape
from becket.contract.commands import CommandDone, CommandEvent, ErrorText, PlainText, SystemText, Table, Text
from becket.contract.providers import (
    ProviderDone,
    ProviderEvent,
    ProviderFailed,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
)
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.peer.streams import Gap

__all__ = ["LiveView", "live"]

R_co = TypeVar("R_co", covariant=True)
ViewEvent = CommandEvent | ProviderEvent | Gap
REFRESH_INTERVAL: Final = 0.1  # seconds between two drawings of the bars: more cannot be followed
MAX_IMMEDIATE_DRAWS: Final = 2  # drawings in such a time all the same, when a task begins or ends
MAX_BARS: Final = 12  # in one drawing, and left above it at once; further tasks are only counted
MAX_LABELS: Final = 1_000  # labels that are remembered; an older task is shown by its id


class ResultStream(Protocol[R_co]):
    """A run, or any other stream of such events."""

    def batches(self) -> AsyncIterator[list[Any]]: ...

    async def result(self) -> R_co: ...


async def live(run: ResultStream[R_co], console: Console | None = None) -> R_co:
    """Shows a run until it ends, and returns its result.

    Raises:
        BecketError: the error of the run; the events before it are shown.
    """
    with LiveView(console) as view:
        async for batch in run.batches():
            for event in batch:
                view.show(event)
    return await run.result()


class LiveView:
    """Shows events one by one: `with LiveView() as view: view.show(event)`, on the console or on stdout."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console() if console is None else console
        self._is_terminal = self._console.is_terminal
        self._bars = ProgressBars(self._console) if self._is_terminal else None
        self._labels: dict[str, str] = {}
        self._line: type[ViewEvent] | None = None  # the parts of the open line

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_line()
        if self._bars is not None:
            self._bars.stop()

    def show(self, event: ViewEvent) -> None:
        """Shows one event."""
        match event:
            case TextDelta(text) | ThinkingDelta(text):
                self._add(text, type(event))
            case PlainText(content):
                self._print(plain(content))
            case Text(content):
                self._print(Markdown(strip_control(content), hyperlinks=False) if self._is_terminal else plain(content))
            case SystemText(content):
                self._print(plain(content, "dim"))
            case ErrorText(content):
                self._print(plain(f"error: {content}", "red"))
            case ProviderFailed(message):
                self._print(plain(f"error: {message}", "red"))
            case Table():
                self._print(build_table(event, is_terminal=self._is_terminal))
            case ToolUse(_, name):
                self._print(plain(f"calls the tool {name}", "dim"))
            case Gap(dropped):
                self._print(plain(f"({dropped} events were dropped)", "dim"))
            case TaskStarted() | TaskUpdated() | TaskLogged() | TaskEnded():
                self._show_task(event)
            case Usage() | CommandDone() | ProviderDone():
                pass
            case _:
                assert_never(event)

    def begin_line(self) -> None:
        """Ends an open line on a terminal before other output."""
        if self._is_terminal:
            self._end_line()

    def _show_task(self, event: TaskStarted | TaskUpdated | TaskLogged | TaskEnded) -> None:
        match event:
            case TaskStarted(id, label):
                if len(self._labels) >= MAX_LABELS:
                    del self._labels[next(iter(self._labels))]
                self._labels[id] = label
                if self._bars is None:
                    self._print(plain(f"{label}: started"))
            case TaskLogged(id, line):
                self._print(plain(f"{self._labels.get(id, id)}: {line}", "dim"))
            case TaskEnded(id, error) if id in self._labels:
                label = self._labels.pop(id)
                if error is not None:
                    self._print(plain(f"{label}: failed: {error}", "red"))
                elif self._bars is None:
                    self._print(plain(f"{label}: done"))
            case _:
                pass
        if self._bars is not None:
            self._bars.update(event)

    def _print(self, what: RenderableType) -> None:
        self._end_line()
        self._console.print(what, soft_wrap=not self._is_terminal)

    def _add(self, text: str, kind: type[ViewEvent]) -> None:
        """Appends to the open line, which is either text or thought."""
        if self._line is not kind:
            self._end_line()
            self._line = kind
        style = "dim italic" if kind is ThinkingDelta else ""
        self._console.print(plain(text, style), end="", soft_wrap=True)

    def _end_line(self) -> None:
        if self._line is not None:
            self._line = None
            self._console.print()


class ManualProgress(Progress):
    """Bars that are drawn on request, not whenever one is added."""

    def refresh(self) -> None:
        """Draws nothing."""

    def draw(self) -> None:
        """Draws the bars."""
        super().refresh()


class ProgressBars:
    """Progress bars at the foot of a terminal, for as long as a task runs. A finished bar is left above.

    The number of bars and of drawings is bounded for any number of tasks."""

    def __init__(self, console: Console) -> None:
        # Drawn when something has changed; a thread of its own would draw in the middle of other output.
        self._progress = ManualProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[message]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=False,
        )
        self._bars: dict[str, TaskID] = {}
        self._hidden: set[str] = set()  # those without room
        self._ended: deque[Task] = deque(maxlen=MAX_BARS)  # those that the next drawing leaves above it
        self._unseen = 0
        self._is_running = False
        self._drawn = 0.0
        self._at_once = 0

    def update(self, event: TaskStarted | TaskUpdated | TaskLogged | TaskEnded) -> None:
        """Updates the bar of a task; events of an unknown task are ignored."""
        match event:
            case TaskStarted(id, label):
                self._add_bar(id, escape(label))
            case TaskUpdated(id, current, total, message) if id in self._bars:
                bar = self._bars[id]
                self._progress.update(bar, completed=current, total=total)
                if message is not None:
                    self._progress.update(bar, message=escape(message))
                self._draw()
            case TaskEnded(id, error) if id in self._bars:
                self._finish_bar(self._bars.pop(id), is_full=error is None)
            case TaskEnded(id) if id in self._hidden:
                self._hidden.remove(id)
                self._unseen += 1
                self._draw(now=True)
            case _:
                pass

    def _add_bar(self, id: str, label: str) -> None:
        if not self._is_running:
            self._is_running = True
            self._progress.start()
        if id in self._bars:  # begun anew
            self._progress.reset(self._bars[id], description=label, total=None, message="")
        elif len(self._bars) < MAX_BARS:
            self._bars[id] = self._progress.add_task(label, total=None, message="")
        elif len(self._hidden) < MAX_LABELS:
            self._hidden.add(id)
        self._draw(now=True)

    def _finish_bar(self, bar: TaskID, *, is_full: bool) -> None:
        task = next(task for task in self._progress.tasks if task.id == bar)
        if is_full:
            total = task.total or task.completed or 1
            self._progress.update(bar, total=total, completed=total)
        self._progress.stop_task(bar)
        self._progress.remove_task(bar)
        self._unseen += len(self._ended) == MAX_BARS
        self._ended.append(task)
        self._draw(now=True)

    def _draw(self, *, now: bool = False) -> None:
        """Draws, unless it has just drawn. Beginnings and ends are shown `now`, up to a limit."""
        time = monotonic()
        if time - self._drawn >= REFRESH_INTERVAL:
            self._drawn = time
            self._at_once = 0
        elif not now or self._at_once >= MAX_IMMEDIATE_DRAWS:
            return
        self._at_once += 1
        self._progress.draw()
        self._print_finished()

    def _print_finished(self) -> None:
        if self._unseen:
            self._progress.console.print(plain(f"({self._unseen} other tasks have ended)", "dim"))
            self._unseen = 0
        if self._ended:
            self._progress.console.print(self._progress.make_tasks_table(self._ended))
            self._ended.clear()

    def stop(self) -> None:
        """Leaves the bars as they are."""
        if self._is_running:
            self._is_running = False
            self._progress.draw()
            self._print_finished()
            self._progress.stop()


# -- untrusted text


def strip_control(text: str) -> str:
    """Returns a text whose only control characters are line ends and tabs."""
    return "\n".join(escape(line) for line in text.replace("\r\n", "\n").split("\n"))


def plain(text: str, style: str = "") -> RichText:
    return RichText(strip_control(text), style=style)


def build_table(table: Table, *, is_terminal: bool) -> RichTable:
    built = RichTable(box=box.SIMPLE if is_terminal else None)
    for header in table.headers:
        built.add_column(plain(header))
    for row in table.rows:
        built.add_row(*(plain(cell) for cell in row))
    return built
