"""Tools, commands, providers, hooks and methods of an extension, as a host uses them, on both runtimes."""

from __future__ import annotations

import asyncio
import sys
import threading
from argparse import ArgumentParser
from typing import Any

import anyio
import pytest
from msgspec import Struct
from tests.extension.notes import Notes
from tests.extension.raw_host import RUNTIMES, hosted, use_tool
from tests.peer.scripted import Script, request, settled

from becket import Context, ExtensionServer, Meaning, Peer, RemoteError, RpcError
from becket.blocking import BlockingContext
from becket.contract.commands import COMMAND_INVOKE, CommandDone, CommandInvoke, Table, Text
from becket.contract.hooks import (
    HOOK_HANDLE,
    Block,
    Confirm,
    Continue,
    HookEvent,
    HookResult,
    Inject,
    Modify,
)
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS, BuildInfo, ExtensionInfo, SidecarArgs
from becket.contract.memory import MEMORY_QUERY, Query, Record, Records
from becket.contract.providers import (
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    Model,
    ProviderDone,
    ProviderRequest,
    ProviderResult,
    TextDelta,
    user,
)
from becket.contract.settings import (
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    EditorCommit,
    EditorKey,
    EditorOpen,
    EditorRender,
    EditorRow,
)
from becket.contract.tasks import TaskEnded, TaskKind, TaskStarted, TaskUpdated
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.extension import (
    BlockingCommandOutput,
    BlockingProviderStream,
    CommandOutput,
    command,
    handles,
    hook,
    provider,
    tool,
)
from becket.methods.descriptors import Method, Notification

pytestmark = pytest.mark.loops
both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)

REQUEST = ProviderRequest("local", "small", "notes:local:small", (user("hi"),))


async def refused(host: Peer, *call: Any) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await host.call(*call)
    return error.value


def pointers(error: RemoteError) -> set[str]:
    return {problem["pointer"] for problem in error.data["problems"]}


async def run_command(host: Peer, name: str, *args: str) -> tuple[list[Any], Any]:
    async with host.stream(COMMAND_INVOKE, CommandInvoke(name, args, f"run of {name}")) as run:
        return [event async for event in run], await run.result()


async def streamed(host: Peer, called: ProviderRequest = REQUEST) -> tuple[list[Any], ProviderResult]:
    async with host.stream(PROVIDER_STREAM, called) as run:
        return [event async for event in run], await run.result()


# -- the example of the documentation


async def test_the_notes_extension_works_as_a_whole() -> None:
    async with hosted(Notes()) as host:
        called: list[Query] = []

        @host.handle(MEMORY_QUERY.name)
        def query(params: Query) -> Records:
            called.append(params)
            return Records((Record("notes", 1, "milk", ()),))

        assert await use_tool(host, "count", text="milk") == 1
        assert called == [Query("notes", content_contains="milk", limit=10)]

        events, result = await run_command(host, "reindex")
        started, *updates, ended, table, done = events
        assert started == TaskStarted("run of reindex/1", "Indexing", TaskKind.REBUILD)
        assert [update.current for update in updates] == list(range(301))
        assert {update.total for update in updates} == {300}
        assert ended == TaskEnded("run of reindex/1")
        assert (table, done) == (Table(("file", "lines"), (("todo.md", "12"),)), CommandDone())
        assert result is None

        parts, response = await streamed(host)
        assert parts == [TextDelta("hel"), TextDelta("lo"), ProviderDone()]
        assert response.text == (await host.call(PROVIDER_COMPLETE, REQUEST)).text == "hello"

        dangerous = HookEvent.before_tool_call("bash", {"command": "rm -rf /"})
        assert await host.call(HOOK_HANDLE, dangerous) == Block("no")
        assert await host.call(HOOK_HANDLE, HookEvent.before_tool_call("bash", {"command": "ls"})) == Continue()
        assert await host.call(HOOK_HANDLE, HookEvent.before_tool_call("rm -rf", {})) == Continue()

        assert await host.call("notes/stats", {"since": 3}) == {"notes": 3}


# -- the same in plain functions


class Point(Struct):
    x: int


class Stats(Struct):
    threads: int


STATS: Method[Point, Stats] = Method("plain/stats", Point, Stats, requires="stats.read")
NEWS = Notification("plain/news", Point)


class Plain(ExtensionServer):
    id, version = "notes", "1"

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.threads: list[str] = []

    @tool("Adds.", inline=True)
    def add(self, a: int, b: int = 1) -> int:
        return a + b

    @tool("Fails.")
    def fail(self, how: str) -> None:
        if how == "known":
            raise RpcError(Meaning.QUOTA, "too much")
        raise ValueError("a secret")

    @tool("Tells what it runs in.")
    def thread(self, ctx: BlockingContext) -> list[Any]:
        return [threading.current_thread() is threading.main_thread(), ctx.method, ctx.is_cancelled, ctx.caller]

    @command("shout")
    def shout(self, args: list[str], out: BlockingCommandOutput) -> dict[str, int]:
        for word in args:
            out.text(word.upper())
        with out.task("Shouting", total=2) as task:
            task.advance(2)
        return {"words": len(args)}

    @command("args")
    def args(self, args: list[str]) -> list[str]:
        return args

    @command("nothing")
    def nothing(self) -> None: ...

    @provider("local", models=[Model("small", streaming=True), Model("big")])
    def response(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        for part in ("a", "b"):
            out.text(part)
        return ProviderResult.of_text(f"{request.model_id} {out.is_wanted}")

    @provider("whole", models=[Model("small")])
    def whole(self, request: ProviderRequest) -> ProviderResult:
        return ProviderResult.of_text("whole") if request.model else None  # type: ignore[return-value]

    @hook("before_tool_call")
    def ask_first(self, event: HookEvent) -> HookResult | None:
        return Confirm("sure?") if event.tool_name == "write" else None

    @hook("before_tool_call", tool="write", input_contains="secret", inline=True)
    def redact(self, event: HookEvent) -> HookResult:
        return Modify({})

    @hook("before_message")
    def remind(self, event: HookEvent) -> HookResult:
        return Inject("it rains")

    @hook("before_message")
    def remind_again(self, event: HookEvent) -> HookResult:
        return Inject(f"you said {event.message}")

    @hook("on_session_end")
    def confuse(self, event: HookEvent) -> HookResult:
        return Block("this kind cannot be blocked")

    @handles(STATS)
    def stats(self, params: Point, ctx: BlockingContext) -> Stats:
        return Stats(params.x)

    @handles("plain/double")
    def double(self, params: Point) -> int:
        return 2 * params.x

    @handles("plain/raw")
    def raw(self, params):  # type: ignore[no-untyped-def]
        return params

    @handles("plain/name", inline=True)
    def name(self) -> str:
        return self.id

    @handles(NEWS)
    def take_news(self, params: Point, ctx: BlockingContext) -> None:
        self.news.append((params, ctx.id))

    @handles("plain/news_so_far")
    def news_so_far(self) -> list[int]:
        return [news.x for news, _ in self.news]


@both_runtimes
async def test_tools_get_typed_arguments(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        assert await use_tool(host, "add", a=1) == 2
        assert await use_tool(host, "add", a=1, b=5) == 6
        wrong = await refused(host, TOOL_CALL, ToolCall("add", {"a": "1", "c": 1}))
        missing = await refused(host, TOOL_CALL, ToolCall("subtract", {}))

    assert (wrong.code, pointers(wrong)) == (-32602, {"/input/a", "/input/c"})
    assert (missing.code, pointers(missing)) == (-32602, {"/name"})


@both_runtimes
async def test_a_tool_that_fails_sends_only_its_intended_message(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosted(Plain(), runtime) as host:
        known = await refused(host, TOOL_CALL, ToolCall("fail", {"how": "known"}))
        other = await refused(host, TOOL_CALL, ToolCall("fail", {"how": "other"}))

    assert (known.meaning, known.message) == (Meaning.QUOTA, "too much")
    assert (other.meaning, "secret" in other.message) == (Meaning.INTERNAL, False)
    assert other.data["incident"] in caplog.text
    caplog.clear()


class Leaving(ExtensionServer):
    id, version = "leaving", "1"

    @tool("Lets something out that ends programs, or coroutines.")
    def leave(self, what: str) -> None:
        raise {"exit": SystemExit(2), "cancelled": asyncio.CancelledError(), "left": GeneratorExit()}[what]

    @tool("The same, inline.", inline=True)
    def leave_inline(self, what: str) -> None:
        self.leave(what)

    @command("parse")
    def parse(self, args: list[str]) -> None:
        ArgumentParser("parse").parse_args(args)

    def on_stop(self) -> None:
        sys.exit(3)


@both_runtimes
@pytest.mark.parametrize("name", ["leave", "leave_inline"])
@pytest.mark.parametrize("what", ["exit", "cancelled", "left"])
async def test_a_tool_that_exits_the_program_fails_only_its_call(
    runtime: str, name: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosted(Leaving(), runtime) as host:
        error = await refused(host, TOOL_CALL, ToolCall(name, {"what": what}))
        again = await refused(host, TOOL_CALL, ToolCall(name, {"what": what}))

    assert error.meaning is again.meaning is Meaning.INTERNAL
    assert error.data["incident"] in caplog.text
    assert "on_stop failed" in caplog.text
    caplog.clear()


@both_runtimes
async def test_a_command_whose_arguments_cannot_be_parsed_fails_only_its_call(
    runtime: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with hosted(Leaving(), runtime) as host:
        error = await refused(host, COMMAND_INVOKE, CommandInvoke("parse", ("--no-such",), "r"))
        assert await host.call(COMMAND_INVOKE, CommandInvoke("parse", (), "r")) is None

    assert error.meaning is Meaning.INTERNAL
    assert "unrecognized arguments: --no-such" in capfd.readouterr().err
    caplog.clear()


@both_runtimes
async def test_plain_functions_run_in_workers_and_may_have_the_context(
    runtime: str, internal_errors: list[Any]
) -> None:
    async with hosted(Plain(), runtime) as host:
        assert await use_tool(host, "thread") == [False, "tool.call", False, None]


@both_runtimes
async def test_commands_put_out_and_return(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        events, result = await run_command(host, "shout", "a", "b")
        nothing = await run_command(host, "nothing")
        unknown = await refused(host, COMMAND_INVOKE, CommandInvoke("whisper", (), "r"))
        assert (await run_command(host, "args", "x"))[1] == ["x"]

    id = "run of shout/1"
    assert events == [
        Text("A"),
        Text("B"),
        TaskStarted(id, "Shouting"),
        TaskUpdated(id, 0, 2),
        TaskUpdated(id, 2, 2),
        TaskEnded(id),
        CommandDone(),
    ]
    assert result == {"words": 2}
    assert nothing == ([CommandDone()], None)
    assert pointers(unknown) == {"/command"}
    assert "shout" in unknown.message  # one of those that there are


@both_runtimes
async def test_one_function_streams_and_completes(runtime: str) -> None:
    big = ProviderRequest("local", "big", "notes:local:big", (user("hi"),))
    async with hosted(Plain(), runtime) as host:
        parts, response = await streamed(host)
        completed = await host.call(PROVIDER_COMPLETE, big)
        whole = await streamed(host, ProviderRequest("whole", "small", "notes:whole:small", ()))

    assert parts == [TextDelta("a"), TextDelta("b"), ProviderDone()]
    assert (response.text, completed.text) == ("small True", "big False")
    assert (whole[0], whole[1].text) == ([ProviderDone()], "whole")


@both_runtimes
async def test_providers_and_models_that_are_not_there_are_named(runtime: str, internal_errors: list[Any]) -> None:
    async with hosted(Plain(), runtime) as host:
        provider = await refused(host, PROVIDER_COMPLETE, ProviderRequest("other", "small", "m", ()))
        model = await refused(host, PROVIDER_STREAM, ProviderRequest("local", "huge", "m", ()))
        nothing = await refused(host, PROVIDER_COMPLETE, ProviderRequest("whole", "small", "", ()))

    assert (pointers(provider), pointers(model)) == ({"/provider_id"}, {"/model_id"})
    assert nothing.meaning is Meaning.INTERNAL
    internal_errors.clear()


@both_runtimes
async def test_unknown_tools_and_commands_are_invalid_params(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        tool = await refused(host, TOOL_CALL, ToolCall("none", {}))
        command = await refused(host, COMMAND_INVOKE, CommandInvoke("none", (), "r1"))

    assert (tool.code, pointers(tool)) == (-32602, {"/name"})
    assert (command.code, pointers(command)) == (-32602, {"/command"})


@both_runtimes
async def test_hooks_handle_the_events_that_they_are_declared_for(runtime: str, internal_errors: list[Any]) -> None:
    before = HookEvent.before_tool_call
    async with hosted(Plain(), runtime) as host:
        ask = [
            before("bash", {}),
            before("write", {"text": "secret"}),
            HookEvent.before_message("hello"),
            HookEvent.on_session_start("s"),
        ]
        responses = [await host.call(HOOK_HANDLE, event) for event in ask]
        disallowed = await refused(host, HOOK_HANDLE, HookEvent.on_session_end("s"))

    assert responses == [Continue(), Confirm("sure?"), Inject("it rains\n\nyou said hello"), Continue()]
    assert disallowed.meaning is Meaning.INTERNAL
    internal_errors.clear()


@both_runtimes
async def test_methods_of_the_author_are_typed(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        assert await host.call(STATS, Point(3)) == Stats(3)
        assert await host.call("plain/double", {"x": 2}) == 4
        assert await host.call("plain/raw", [1, "a"]) == [1, "a"]
        assert await host.call("plain/name") == "notes"
        assert pointers(await refused(host, "plain/double", {"x": "2"})) == {"/x"}
        assert (await refused(host, "plain/name", [1])).meaning is Meaning.INVALID_PARAMS
        assert (await refused(host, "plain/none")).meaning is Meaning.UNKNOWN_METHOD


@both_runtimes
async def test_notifications_are_handled_in_order(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        for number in range(5):
            await host.notify(NEWS, Point(number))
        with anyio.fail_after(60):
            while len(received := await host.call("plain/news_so_far")) < 5:
                await anyio.lowlevel.checkpoint()

    assert received == [0, 1, 2, 3, 4]


@both_runtimes
async def test_only_declared_tools_exist(runtime: str) -> None:
    class Empty(ExtensionServer):
        id = "notes"

    async with hosted(Empty(), runtime) as host:
        absent = [
            await refused(host, method)
            for method in ("tool.call", "command.invoke", "provider.complete", "hook.handle", "settings.editor.open")
        ]

    assert {error.meaning for error in absent} == {Meaning.UNKNOWN_METHOD}


# -- what authors may write themselves


class Editing(ExtensionServer):
    id = "notes"

    def info(self) -> ExtensionInfo:
        return ExtensionInfo(BuildInfo("cuda"))

    def sidecar_args(self) -> SidecarArgs:
        return SidecarArgs(("--fast",), "de")

    def on_editor_open(self, opened: EditorOpen) -> object:
        return EditorRender((EditorRow(opened.field),))

    def on_editor_key(self, pressed: EditorKey) -> object:
        return pressed.key

    def on_editor_commit(self, taken: EditorCommit) -> object:
        return taken.value


class EditingLater(ExtensionServer):
    id = "notes"

    async def info(self) -> ExtensionInfo:
        return ExtensionInfo(BuildInfo("cuda"))

    async def sidecar_args(self) -> SidecarArgs:
        return SidecarArgs(("--fast",), "de")

    async def on_editor_open(self, opened: EditorOpen) -> object:
        return EditorRender((EditorRow(opened.field),))

    async def on_editor_key(self, pressed: EditorKey) -> object:
        return pressed.key

    async def on_editor_commit(self, taken: EditorCommit) -> object:
        return taken.value


@pytest.mark.parametrize(("extension", "runtime"), [(Editing, "loop"), (Editing, "blocking"), (EditingLater, "loop")])
async def test_the_author_defines_the_settings_editor_info_and_sidecar(
    extension: type[ExtensionServer], runtime: str
) -> None:
    async with hosted(extension(), runtime) as host:
        assert await host.call(INFO_GET) == ExtensionInfo(BuildInfo("cuda"))
        assert await host.call(SIDECAR_SPAWN_ARGS) == SidecarArgs(("--fast",), "de")
        opened = {"category": "look", "field": "colour", "render": {"rows": [{"label": "colour"}]}}
        assert await host.call(SETTINGS_EDITOR_OPEN, EditorOpen("look", "colour")) == opened
        assert await host.call(SETTINGS_EDITOR_KEY, EditorKey("look", "colour", "Down")) == "Down"
        assert await host.call(SETTINGS_EDITOR_COMMIT, EditorCommit("look", "colour", [1])) == [1]


# -- mixed


class Mixed(ExtensionServer):
    id = "notes"

    def __init__(self) -> None:
        self.loop_thread = threading.get_ident()
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.cancelled = anyio.Event()

    @tool("Where.")
    async def coroutine(self, ctx: Context) -> list[Any]:
        return [threading.get_ident() == self.loop_thread, ctx.method]

    @tool("Where.")
    def plain(self) -> bool:
        return threading.get_ident() == self.loop_thread

    @tool("Where.", inline=True)
    def inline(self) -> bool:
        return threading.get_ident() == self.loop_thread

    @tool("Waits.")
    def wait(self, ctx: BlockingContext) -> bool:
        self.has_begun.set()
        self.may_end.wait(60)
        return ctx.is_cancelled

    @tool("Waits for ever.")
    async def wait_for_ever(self) -> None:
        self.has_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()

    @tool("Returns what nobody awaits.")
    def forgets(self) -> Any:
        return self.coroutine(None)  # type: ignore[arg-type]


async def test_coroutines_run_on_the_loop_and_plain_functions_beside_it() -> None:
    async with hosted(Mixed()) as host:
        assert await use_tool(host, "coroutine") == [True, "tool.call"]
        assert await use_tool(host, "plain") is False
        assert await use_tool(host, "inline") is True


async def test_a_plain_function_that_waits_does_not_block_others() -> None:
    mixed = Mixed()
    async with hosted(mixed) as host, anyio.create_task_group() as group:
        group.start_soon(use_tool, host, "wait")
        await anyio.to_thread.run_sync(mixed.has_begun.wait)
        assert await use_tool(host, "coroutine") == [True, "tool.call"]
        assert await use_tool(host, "plain") is False
        mixed.may_end.set()


async def test_a_cancelled_coroutine_ends_and_a_cancelled_thread_sees_it() -> None:
    mixed = Mixed()
    async with hosted(mixed) as host:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(use_tool, host, "wait_for_ever")
                await anyio.to_thread.run_sync(mixed.has_begun.wait)
                group.cancel_scope.cancel()
            await mixed.cancelled.wait()

    script = Script()
    mixed = Mixed()
    async with mixed.over(script):
        first = {"extension_protocol_version": 1, "plugin_id": "notes", "plugin_root": None, "config": {}}
        script.send(request(1, "initialize", {**first, "features": ["cancel"]}))
        await script.receive()
        script.send(request(2, "tool.call", {"name": "wait", "input": {}}))
        await anyio.to_thread.run_sync(mixed.has_begun.wait)
        script.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}})
        await settled()
        mixed.may_end.set()
        response = await script.receive()
        script.leave()

    assert response["id"] == 2
    assert response.get("result", True) is True


async def test_a_plain_function_that_returns_a_coroutine_is_reported_as_an_error(internal_errors: list[Any]) -> None:
    async with hosted(Mixed()) as host:
        error = await refused(host, TOOL_CALL, ToolCall("forgets", {}))

    assert error.meaning is Meaning.INTERNAL
    assert ["returned an awaitable" in str(record.exc_info) for record in internal_errors] == [True]
    internal_errors.clear()


@pytest.mark.parametrize(
    ("error", "received"),
    [(ValueError("the password is x"), "failed"), (RpcError(5, "the disk is gone"), "the disk is gone")],
)
async def test_a_failing_task_of_a_command_sends_only_its_intended_message(
    error: Exception, received: str, internal_errors: list[Any]
) -> None:
    class Failing(ExtensionServer):
        id = "notes"

        @command("fail")
        async def fail(self, args: list[str], out: CommandOutput) -> None:
            async with out.task("Trying"):
                raise error

    events: list[Any] = []

    async def take_all(host: Peer) -> None:
        async with host.stream(COMMAND_INVOKE, CommandInvoke("fail", (), "r")) as run:
            async for event in run:
                events.append(event)

    async with hosted(Failing()) as host:
        with pytest.raises(RemoteError):
            await take_all(host)

    assert events == [TaskStarted("r/1", "Trying"), TaskEnded("r/1", received)]
    internal_errors.clear()
