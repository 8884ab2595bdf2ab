"""Provides the output objects of commands and providers, whose methods send contract events.

As everywhere, the objects for coroutines are awaited, and those for plain functions, whose names begin with
`Blocking`, are called. What a host would not take is refused here, where the author sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from becket.contract.argument_checks import check_non_negative_int, check_str
from becket.contract.commands import (
    COMMAND_OUTPUT,
    CommandDone,
    CommandOutputEvent,
    CommandOutputParams,
    ErrorText,
    SystemText,
    Table,
    Text,
)
from becket.contract.providers import (
    PROVIDER_STREAM_EVENT,
    ProviderDone,
    ProviderEvent,
    ProviderFailed,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
    build_event_params,
)
from becket.contract.tasks import (
    TASK_DONE,
    TASK_LOG,
    TASK_START,
    TASK_UPDATE,
    TaskEnded,
    TaskKind,
    TaskLogged,
    TaskStarted,
    TaskUpdated,
)
from becket.errors import BecketError, RpcError

if TYPE_CHECKING:
    from typing import Literal

    from becket.extension.runtime_async import EventSender
    from becket.extension.runtime_blocking import BlockingEventSender, CoroutineRunner

    TaskKindName = TaskKind | Literal["download", "rebuild", "generic"]

__all__ = [
    "BlockingCommandOutput",
    "BlockingProviderStream",
    "BlockingTask",
    "CommandOutput",
    "ProviderStream",
    "Task",
]


# -- commands


class CommandOutput:
    """What a command puts out, in an `async def`. That it is done is said for it when it returns."""

    def __init__(self, events: EventSender | BlockingEventSender, request_id: str) -> None:
        self._events = events
        self._request_id = request_id
        self._tasks = 0

    async def text(self, content: str) -> None:
        """Puts out text for the person who gave the command, in Markdown."""
        check_str(content, "what a command puts out")
        await self._send_event(Text(content))

    async def system(self, content: str) -> None:
        """Puts out a remark beside the output proper."""
        check_str(content, "what a command puts out")
        await self._send_event(SystemText(content))

    async def error(self, content: str) -> None:
        """Tells that something has gone wrong; the command may go on.

        Raises:
            ValueError: the text is empty: no host would show it.
        """
        check_str(content, "an error")
        if not content:
            raise ValueError("an error has a text")
        await self._send_event(ErrorText(content))

    async def table(self, headers: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """Puts out a table.

        Raises:
            TypeError: a cell or a header is no text: no host would show it.
        """
        table = Table(tuple(headers), tuple(tuple(row) for row in rows))
        for cell in (*table.headers, *(cell for row in table.rows for cell in row)):
            check_str(cell, "a cell of a table")
        await self._send_event(table)

    def task(self, label: str, *, kind: TaskKindName = TaskKind.GENERIC, total: int | None = None) -> Task:
        """Returns work that takes long, to be shown while it goes on: `async with out.task("Indexing") as task:`.

        Raises:
            ValueError: there is no such kind, or the total is negative.
            TypeError: the label is no text, or the total no whole number.
        """
        check_str(label, "the label of a task")
        check_non_negative_int(total, "the total of a task")
        self._tasks += 1
        return Task(self._events, f"{self._request_id}/{self._tasks}", label, TaskKind(kind), total)

    async def done(self) -> None:
        """Says that no more comes; called for you when the command returns."""
        await self._send_event(CommandDone())

    async def _send_event(self, output: CommandOutputEvent) -> None:
        await self._events.notify(COMMAND_OUTPUT, CommandOutputParams(self._request_id, output))


class Task:
    """Work that takes long, in an `async def`. It ends with its block, and with an error where that raises."""

    def __init__(
        self, events: EventSender | BlockingEventSender, id: str, label: str, kind: TaskKind, total: int | None
    ) -> None:
        self._events = events
        self.id = id
        self.label = label
        self.kind = kind
        self.total = total
        self.current = 0

    async def advance(self, by: int = 1, *, message: str | None = None) -> None:
        """Tells that so much more is done."""
        await self.update(current=self.current + by, message=message)

    async def update(self, *, current: int | None = None, total: int | None = None, message: str | None = None) -> None:
        """Tells how far it is; what is left out stays as it was.

        Raises:
            TypeError, ValueError: no host could read it: how far a task is are whole numbers from 0 on.
        """
        check_non_negative_int(current, "how much of a task is done")
        check_non_negative_int(total, "the total of a task")
        if message is not None:
            check_str(message, "the message of a task")
        if current is not None:
            self.current = current
        if total is not None:
            self.total = total
        await self._events.notify(TASK_UPDATE, TaskUpdated(self.id, self.current, self.total, message))

    async def log(self, line: str) -> None:
        """Adds a line to what is shown below it."""
        check_str(line, "the line of a task")
        await self._events.notify(TASK_LOG, TaskLogged(self.id, line))

    async def __aenter__(self) -> Self:
        await self._events.notify(TASK_START, TaskStarted(self.id, self.label, self.kind))
        if self.total is not None:
            await self.update()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            await self._events.notify(TASK_DONE, TaskEnded(self.id))
        elif isinstance(error, Exception):
            try:
                # As with an answer: only what was raised to be told is told.
                told = str(error) if isinstance(error, RpcError) else "failed"
                await self._events.notify(TASK_DONE, TaskEnded(self.id, told))
            except BecketError:
                pass  # what the block raised is what its caller learns
        else:
            self._events.notify_best_effort(TASK_DONE, TaskEnded(self.id, "cancelled"))


class BlockingCommandOutput:
    """`CommandOutput` for a plain `def`."""

    def __init__(self, out: CommandOutput, run: CoroutineRunner) -> None:
        self._out = out
        self._run = run

    def text(self, content: str) -> None:
        """Puts out text for the person who gave the command, in Markdown."""
        self._run(self._out.text, content)

    def system(self, content: str) -> None:
        """Puts out a remark beside the output proper."""
        self._run(self._out.system, content)

    def error(self, content: str) -> None:
        """Tells that something has gone wrong, as `CommandOutput.error` does."""
        self._run(self._out.error, content)

    def table(self, headers: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
        """Puts out a table, as `CommandOutput.table` does."""
        self._run(self._out.table, headers, rows)

    def task(self, label: str, *, kind: TaskKindName = TaskKind.GENERIC, total: int | None = None) -> BlockingTask:
        """Returns work that takes long, to be shown while it goes on: `with out.task("Indexing") as task:`."""
        return BlockingTask(self._out.task(label, kind=kind, total=total), self._run)


class BlockingTask:
    """`Task` for a plain `def`."""

    def __init__(self, task: Task, run: CoroutineRunner) -> None:
        self._task = task
        self._run = run

    @property
    def current(self) -> int:
        """How much is done."""
        return self._task.current

    def advance(self, by: int = 1, *, message: str | None = None) -> None:
        """Tells that so much more is done."""
        self._run(self._task.advance, by, message=message)

    def update(self, *, current: int | None = None, total: int | None = None, message: str | None = None) -> None:
        """Tells how far it is; what is left out stays as it was."""
        self._run(self._task.update, current=current, total=total, message=message)

    def log(self, line: str) -> None:
        """Adds a line to what is shown below it."""
        self._run(self._task.log, line)

    def __enter__(self) -> Self:
        self._run(self._task.__aenter__)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._run(self._task.__aexit__, kind, error, trace)


# -- providers


class ProviderStream:
    """The pieces of an answer, in an `async def`. Where the host asked for the whole alone, they go nowhere."""

    def __init__(self, events: EventSender | BlockingEventSender | None) -> None:
        self._events = events

    @property
    def is_wanted(self) -> bool:
        """Whether the host asked for pieces: there is no need to make them otherwise."""
        return self._events is not None

    async def text(self, text: str) -> None:
        """Sends a further piece of the answer."""
        check_str(text, "a piece of an answer")
        await self._send_event(TextDelta(text))

    async def thinking(self, text: str) -> None:
        """Sends a further piece of what the model thinks."""
        check_str(text, "a piece of what a model thinks")
        await self._send_event(ThinkingDelta(text))

    async def tool_use(self, id: str, name: str, input: Mapping[str, Any]) -> None:
        """Tells that the model asks for a tool.

        Raises:
            ValueError: the id or the name is empty.
        """
        check_str(id, "the id of a tool that a model asks for")
        check_str(name, "the name of a tool that a model asks for")
        if not id or not name:
            raise ValueError("a tool that a model asks for has an id and a name")
        await self._send_event(ToolUse(id, name, dict(input)))

    async def usage(self, values: Mapping[str, Any]) -> None:
        """Tells what the answer has cost so far, under whatever names the provider has."""
        await self._send_event(Usage(dict(values)))

    async def error(self, message: str, *, code: int | str | None = None) -> None:
        """Tells of an error; the call may still be answered.

        Raises:
            ValueError: the message is empty.
        """
        check_str(message, "an error")
        if not message:
            raise ValueError("an error has a message")
        await self._send_event(ProviderFailed(message, code))

    async def done(self) -> None:
        """Says that no more comes; called for you when the provider returns."""
        await self._send_event(ProviderDone())

    async def _send_event(self, event: ProviderEvent) -> None:
        if self._events is not None:
            await self._events.notify(PROVIDER_STREAM_EVENT, build_event_params(event))


class BlockingProviderStream:
    """`ProviderStream` for a plain `def`."""

    def __init__(self, out: ProviderStream, run: CoroutineRunner) -> None:
        self._out = out
        self._run = run

    @property
    def is_wanted(self) -> bool:
        """Whether the host asked for pieces: there is no need to make them otherwise."""
        return self._out.is_wanted

    def text(self, text: str) -> None:
        """Sends a further piece of the answer."""
        self._run(self._out.text, text)

    def thinking(self, text: str) -> None:
        """Sends a further piece of what the model thinks."""
        self._run(self._out.thinking, text)

    def tool_use(self, id: str, name: str, input: Mapping[str, Any]) -> None:
        """Tells that the model asks for a tool, as `ProviderStream.tool_use` does."""
        self._run(self._out.tool_use, id, name, input)

    def usage(self, values: Mapping[str, Any]) -> None:
        """Tells what the answer has cost so far, under whatever names the provider has."""
        self._run(self._out.usage, values)

    def error(self, message: str, *, code: int | str | None = None) -> None:
        """Tells of an error, as `ProviderStream.error` does."""
        self._run(self._out.error, message, code=code)
