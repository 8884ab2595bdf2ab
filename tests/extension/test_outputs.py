"""The output of commands and providers: one event per method; invalid output is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from tests.extension.raw_host import RUNTIMES, hosted
from tests.extension.test_serving import REQUEST, run_command, streamed

from becket import ConnectionLost, DisconnectReason, ExtensionServer, RpcError
from becket.contract.commands import (
    COMMAND_INVOKE,
    CommandDone,
    CommandInvoke,
    ErrorText,
    SystemText,
    Table,
    Text,
)
from becket.contract.providers import (
    PROVIDER_STREAM_EVENT,
    Model,
    ProviderDone,
    ProviderFailed,
    ProviderRequest,
    ProviderResult,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
)
from becket.contract.tasks import TASK_DONE, TaskEnded, TaskKind, TaskLogged, TaskStarted, TaskUpdated
from becket.extension import (
    BlockingCommandOutput,
    BlockingProviderStream,
    CommandOutput,
    ProviderStream,
    command,
    provider,
)

pytestmark = pytest.mark.loops

Wrongly = Callable[[], Any]


async def raised_by(ask: Callable[[], Awaitable[None]]) -> str:
    try:
        await ask()
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return "nothing"


def raised_plainly_by(ask: Callable[[], None]) -> str:
    try:
        ask()
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return "nothing"


class Coroutines(ExtensionServer):
    id = "notes"

    @command("all")
    async def all(self, args: list[str], out: CommandOutput) -> None:
        await out.text("text")
        await out.system("system")
        await out.error("error")
        await out.table(["a", "b"], [["1", "2"], ["3"]])
        async with out.task("Task") as task:
            await task.advance(message="one")
            await task.update(total=9)
            await task.update(current=4)
            await task.log("line")
            assert task.current == 4
        async with out.task("Another", kind="download"):
            pass

    @command("wrong")
    async def wrong(self, args: list[str], out: CommandOutput) -> list[str]:
        odd: Any = 5
        return [
            await raised_by(lambda: out.error("")),
            await raised_by(lambda: out.table(["a"], [[odd]])),
            await raised_by(lambda: out.table([odd], [])),
            raised_plainly_by(lambda: out.task("x", kind=odd)),  # type: ignore[arg-type, return-value]
        ]

    @provider("local", models=[Model("small", streaming=True)])
    async def provide(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("a")
        await out.thinking("b")
        await out.tool_use("1", "bash", {"command": "ls"})
        await out.usage({"tokens": 3, "type": "mine"})
        await out.error("slow", code=7)
        wrong = [
            await raised_by(lambda: out.error("")),
            await raised_by(lambda: out.tool_use("", "bash", {})),
            await raised_by(lambda: out.tool_use("1", "", {})),
        ]
        return ProviderResult.of_text(" ".join(wrong))


class Plain(ExtensionServer):
    id = "notes"

    @command("all")
    def all(self, args: list[str], out: BlockingCommandOutput) -> None:
        out.text("text")
        out.system("system")
        out.error("error")
        out.table(["a", "b"], [["1", "2"], ["3"]])
        with out.task("Task") as task:
            task.advance(message="one")
            task.update(total=9)
            task.update(current=4)
            task.log("line")
            assert task.current == 4
        with out.task("Another", kind="download"):
            pass

    @command("wrong")
    def wrong(self, args: list[str], out: BlockingCommandOutput) -> list[str]:
        odd: Any = 5
        return [
            raised_plainly_by(lambda: out.error("")),
            raised_plainly_by(lambda: out.table(["a"], [[odd]])),
            raised_plainly_by(lambda: out.table([odd], [])),
            raised_plainly_by(lambda: out.task("x", kind=odd)),  # type: ignore[arg-type, return-value]
        ]

    @provider("local", models=[Model("small", streaming=True)])
    def provide(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        out.text("a")
        out.thinking("b")
        out.tool_use("1", "bash", {"command": "ls"})
        out.usage({"tokens": 3, "type": "mine"})
        out.error("slow", code=7)
        wrong = [
            raised_plainly_by(lambda: out.error("")),
            raised_plainly_by(lambda: out.tool_use("", "bash", {})),
            raised_plainly_by(lambda: out.tool_use("1", "", {})),
        ]
        return ProviderResult.of_text(" ".join(wrong))


class Sink:
    """An output that must not get any event."""

    async def notify(self, notification: Any, params: object) -> None:
        raise AssertionError(f"{params} was sent")

    def tell_anyway(self, notification: Any, params: object) -> None:
        raise AssertionError(f"{params} was sent")


COMMAND: Any = CommandOutput(Sink(), "r")  # type: ignore[arg-type]
STREAM: Any = ProviderStream(Sink())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("put", "output"),
    [
        (lambda: COMMAND.text(5), "the output of a command must be str, got int"),
        (lambda: COMMAND.system(None), "the output of a command must be str, got NoneType"),
        (lambda: COMMAND.error(ValueError("x")), "an error must be str"),
        (lambda: COMMAND.task("Indexing").update(current=0.5), "how much of a task is done must be int"),
        (lambda: COMMAND.task("Indexing").advance(-1), "how much of a task is done must not be negative"),
        (lambda: COMMAND.task("Indexing").update(total="9"), "the total of a task must be int"),
        (lambda: COMMAND.task("Indexing").update(message=5), "the message of a task must be str"),
        (lambda: COMMAND.task("Indexing").log(5), "the line of a task must be str"),
        (lambda: STREAM.text(5), "the text of a completion must be str"),
        (lambda: STREAM.thinking(b"x"), "the thinking of a model must be str"),
        (lambda: STREAM.tool_use(1, "bash", {}), "the id of a tool use must be str"),
        (lambda: STREAM.tool_use("1", bytes, {}), "the name of a tool use must be str"),
        (lambda: STREAM.error(5), "an error must be str"),
    ],
)
async def test_output_that_no_host_could_read_is_refused_where_the_author_sees_it(put: Any, output: str) -> None:
    with pytest.raises((TypeError, ValueError), match=output):
        await put()


def test_a_task_has_a_label_and_a_total_that_can_be_shown() -> None:
    with pytest.raises(TypeError, match="the label of a task must be str"):
        COMMAND.task(5)
    with pytest.raises(TypeError, match="the total of a task must be int"):
        COMMAND.task("Indexing", total=2.5)


everywhere = pytest.mark.parametrize(
    ("extension", "runtime"), [(Coroutines, "loop"), *((Plain, runtime) for runtime in RUNTIMES)], ids=str
)


@everywhere
async def test_a_command_sends_every_kind_of_output(extension: type[ExtensionServer], runtime: str) -> None:
    async with hosted(extension(), runtime) as host:
        events, _ = await run_command(host, "all")

    task, other = "run of all/1", "run of all/2"
    assert events == [
        Text("text"),
        SystemText("system"),
        ErrorText("error"),
        Table(("a", "b"), (("1", "2"), ("3",))),
        TaskStarted(task, "Task"),
        TaskUpdated(task, 1, None, "one"),
        TaskUpdated(task, 1, 9),
        TaskUpdated(task, 4, 9),
        TaskLogged(task, "line"),
        TaskEnded(task),
        TaskStarted(other, "Another", TaskKind.DOWNLOAD),
        TaskEnded(other),
        CommandDone(),
    ]


@everywhere
async def test_output_that_no_host_would_show_is_refused(extension: type[ExtensionServer], runtime: str) -> None:
    async with hosted(extension(), runtime) as host:
        events, errors = await run_command(host, "wrong")

    assert errors == ["ValueError", "TypeError", "TypeError", "ValueError"]
    assert events == [CommandDone()]


@everywhere
async def test_a_provider_sends_every_kind_of_event(extension: type[ExtensionServer], runtime: str) -> None:
    async with hosted(extension(), runtime) as host:
        events, response = await streamed(host)

    assert events == [
        TextDelta("a"),
        ThinkingDelta("b"),
        ToolUse("1", "bash", {"command": "ls"}),
        Usage({"tokens": 3}),
        ProviderFailed("slow", 7),
        ProviderDone(),
    ]
    assert response.text == "ValueError ValueError ValueError"


@everywhere
async def test_events_for_an_old_host_have_no_additional_members(
    extension: type[ExtensionServer], runtime: str
) -> None:
    received: list[Any] = []
    async with hosted(extension(), runtime, features=()) as host:
        host.on(PROVIDER_STREAM_EVENT.name)(lambda params: received.append(params))
        host.on("command.output")(lambda params: received.append(params))
        await host.call("provider.stream", REQUEST)
        await host.call(COMMAND_INVOKE.name, CommandInvoke("wrong", (), "r1"))

    assert received[0] == {"type": "text", "delta": "a"}
    assert received[3] == {"type": "usage", "tokens": 3}
    assert received[-1] == {"request_id": "r1", "event": {"kind": "done"}}


class Cancelled(ExtensionServer):
    id = "notes"

    @command("wait")
    async def wait(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Waiting"):
            await anyio.sleep_forever()


async def test_a_task_of_a_cancelled_command_ends_for_all_subscribers() -> None:
    ended: list[TaskEnded] = []
    is_over = anyio.Event()
    async with hosted(Cancelled()) as host:

        @host.on(TASK_DONE)
        def take(params: TaskEnded) -> None:
            ended.append(params)
            is_over.set()

        async with host.stream(COMMAND_INVOKE, CommandInvoke("wait", (), "r")) as run:
            assert await anext(run) == TaskStarted("r/1", "Waiting")
        await is_over.wait()

    assert ended == [TaskEnded("r/1", "cancelled")]


class LostLink:
    """Events after the end of the link."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    async def notify(self, notification: Any, params: object) -> None:
        self.received.append(params)
        if isinstance(params, TaskEnded):
            raise ConnectionLost(DisconnectReason.REMOTE_CLOSE)

    def tell_anyway(self, notification: Any, params: object) -> None: ...


@pytest.mark.parametrize(("error", "text"), [(LookupError("mine"), "failed"), (RpcError(5, "told"), "told")])
async def test_a_task_raises_its_own_error_although_its_notification_fails(error: Exception, text: str) -> None:
    lost_link: Any = LostLink()
    with pytest.raises(type(error)):
        async with CommandOutput(lost_link, "r").task("Trying"):
            raise error

    assert lost_link.received[-1] == TaskEnded("r/1", text)
