"""Provides the output objects of commands and providers, whose methods send contract events.

Methods of the objects for coroutines are awaited; those whose names begin with `Blocking` are for plain functions.
Values that a host would reject raise here, where the author sees it.
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
    """Output of a command in an `async def`. The final `done` event is sent when the command returns."""

    def __init__(self, events: EventSender | BlockingEventSender, request_id: str) -> None:
        self._events = events
        self._request_id = request_id
        self._tasks = 0

    async def text(self, content: str) -> None:
        """Sends text for the user, in Markdown."""
        check_str(content, "the output of a command")
        await self._send_event(Text(content))

    async def system(self, content: str) -> None:
        """Sends a remark that is not part of the output."""
        check_str(content, "the output of a command")
        await self._send_event(SystemText(content))

    async def error(self, content: str) -> None:
        """Sends an error; the command may go on.

        Raises:
            ValueError: the text is empty.
        """
        check_str(content, "an error")
        if not content:
            raise ValueError("the text of an error must not be empty")
        await self._send_event(ErrorText(content))

    async def table(self, headers: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """Sends a table.

        Raises:
            TypeError: a cell or a header is no str.
        """
        table = Table(tuple(headers), tuple(tuple(row) for row in rows))
        for cell in (*table.headers, *(cell for row in table.rows for cell in row)):
            check_str(cell, "a cell of a table")
        await self._send_event(table)

    def task(self, label: str, *, kind: TaskKindName = TaskKind.GENERIC, total: int | None = None) -> Task:
        """Returns a task whose progress the host shows: `async with out.task("Indexing") as task:`.

        Raises:
            ValueError: there is no such kind, or the total is negative.
            TypeError: the label is no str, or the total no int.
        """
        check_str(label, "the label of a task")
        check_non_negative_int(total, "the total of a task")
        self._tasks += 1
        return Task(self._events, f"{self._request_id}/{self._tasks}", label, TaskKind(kind), total)

    async def done(self) -> None:
        """Sends the final event; called when the command returns."""
        await self._send_event(CommandDone())

    async def _send_event(self, output: CommandOutputEvent) -> None:
        await self._events.notify(COMMAND_OUTPUT, CommandOutputParams(self._request_id, output))


class Task:
    """A task with progress, in an `async def`. It ends with its block, with an error if the block raises."""

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
        """Adds to the completed amount."""
        await self.update(current=self.current + by, message=message)

    async def update(self, *, current: int | None = None, total: int | None = None, message: str | None = None) -> None:
        """Sends the progress; omitted values stay as they are.

        Raises:
            TypeError, ValueError: an amount is no int, or is negative.
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
        """Sends a log line of the task."""
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
                # As in a response, only the text of an RpcError leaves the process.
                text = str(error) if isinstance(error, RpcError) else "failed"
                await self._events.notify(TASK_DONE, TaskEnded(self.id, text))
            except BecketError:
                pass  # the error of the block is raised
        else:
            self._events.notify_best_effort(TASK_DONE, TaskEnded(self.id, "cancelled"))


class BlockingCommandOutput:
    """`CommandOutput` for a plain `def`."""

    def __init__(self, out: CommandOutput, run: CoroutineRunner) -> None:
        self._out = out
        self._run = run

    def text(self, content: str) -> None:
        """Sends text for the user, in Markdown."""
        self._run(self._out.text, content)

    def system(self, content: str) -> None:
        """Sends a remark that is not part of the output."""
        self._run(self._out.system, content)

    def error(self, content: str) -> None:
        """Sends an error, as `CommandOutput.error` does."""
        self._run(self._out.error, content)

    def table(self, headers: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
        """Sends a table, as `CommandOutput.table` does."""
        self._run(self._out.table, headers, rows)

    def task(self, label: str, *, kind: TaskKindName = TaskKind.GENERIC, total: int | None = None) -> BlockingTask:
        """Returns a task whose progress the host shows: `with out.task("Indexing") as task:`."""
        return BlockingTask(self._out.task(label, kind=kind, total=total), self._run)


class BlockingTask:
    """`Task` for a plain `def`."""

    def __init__(self, task: Task, run: CoroutineRunner) -> None:
        self._task = task
        self._run = run

    @property
    def current(self) -> int:
        """The completed amount."""
        return self._task.current

    def advance(self, by: int = 1, *, message: str | None = None) -> None:
        """Adds to the completed amount."""
        self._run(self._task.advance, by, message=message)

    def update(self, *, current: int | None = None, total: int | None = None, message: str | None = None) -> None:
        """Sends the progress; omitted values stay as they are."""
        self._run(self._task.update, current=current, total=total, message=message)

    def log(self, line: str) -> None:
        """Sends a log line of the task."""
        self._run(self._task.log, line)

    def __enter__(self) -> Self:
        self._run(self._task.__aenter__)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._run(self._task.__aexit__, kind, error, trace)


# -- providers


class ProviderStream:
    """Events of a provider in an `async def`. If the host called `provider.complete`, they are dropped."""

    def __init__(self, events: EventSender | BlockingEventSender | None) -> None:
        self._events = events

    @property
    def is_wanted(self) -> bool:
        """Whether the host called `provider.stream`; otherwise events need not be produced."""
        return self._events is not None

    async def text(self, text: str) -> None:
        """Sends the next part of the text."""
        check_str(text, "the text of a completion")
        await self._send_event(TextDelta(text))

    async def thinking(self, text: str) -> None:
        """Sends the next part of the model's thinking."""
        check_str(text, "the thinking of a model")
        await self._send_event(ThinkingDelta(text))

    async def tool_use(self, id: str, name: str, input: Mapping[str, Any]) -> None:
        """Sends a tool use of the model.

        Raises:
            ValueError: the id or the name is empty.
        """
        check_str(id, "the id of a tool use")
        check_str(name, "the name of a tool use")
        if not id or not name:
            raise ValueError("the id and the name of a tool use must not be empty")
        await self._send_event(ToolUse(id, name, dict(input)))

    async def usage(self, values: Mapping[str, Any]) -> None:
        """Sends usage figures under the names of the provider."""
        await self._send_event(Usage(dict(values)))

    async def error(self, message: str, *, code: int | str | None = None) -> None:
        """Sends an error; the call may still return a result.

        Raises:
            ValueError: the message is empty.
        """
        check_str(message, "an error")
        if not message:
            raise ValueError("the message of an error must not be empty")
        await self._send_event(ProviderFailed(message, code))

    async def done(self) -> None:
        """Sends the final event; called when the provider returns."""
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
        """Whether the host called `provider.stream`; otherwise events need not be produced."""
        return self._out.is_wanted

    def text(self, text: str) -> None:
        """Sends the next part of the text."""
        self._run(self._out.text, text)

    def thinking(self, text: str) -> None:
        """Sends the next part of the model's thinking."""
        self._run(self._out.thinking, text)

    def tool_use(self, id: str, name: str, input: Mapping[str, Any]) -> None:
        """Sends a tool use of the model, as `ProviderStream.tool_use` does."""
        self._run(self._out.tool_use, id, name, input)

    def usage(self, values: Mapping[str, Any]) -> None:
        """Sends usage figures under the names of the provider."""
        self._run(self._out.usage, values)

    def error(self, message: str, *, code: int | str | None = None) -> None:
        """Sends an error, as `ProviderStream.error` does."""
        self._run(self._out.error, message, code=code)
