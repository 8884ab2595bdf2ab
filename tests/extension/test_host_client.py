"""Host services of an extension: the same for coroutines and plain functions, on both runtimes."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from tests.extension.raw_host import RUNTIMES, hosted, use_tool
from tests.peer.scripted import settled

from becket import Context, ExtensionServer, Meaning, Peer, RemoteError, RpcError
from becket.blocking import BlockingContext
from becket.contract.config import (
    CONFIG_CHANGED,
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
    ConfigChanged,
    ConfigGet,
    ConfigSaved,
    ConfigSet,
    ConfigSubscribe,
    ConfigSubscribed,
    ConfigValue,
)
from becket.contract.handshake import FEATURES
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.memory import MEMORY_APPEND, MEMORY_QUERY, Append, Appended, Query, Record, Records
from becket.contract.widgets import WIDGET_UPSERT, WidgetUpsert
from becket.errors import LocalProtocolError, NotSupported
from becket.extension import handles, tool
from becket.extension.runtime_async import WorkerContext
from becket.methods.descriptors import Method

pytestmark = pytest.mark.loops
both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)

ADD: Method[list[int], int] = Method("host/add", list[int], int)
PING: Method[None, str] = Method("host/ping", None, str)


class HostServices:
    """What a host stores in these tests, and the notifications that it received."""

    def __init__(self, host: Peer) -> None:
        self.called: list[Any] = []
        self.received: list[Any] = []
        self.is_told = anyio.Event()
        # Under their names: a raw peer has no gate, and would refuse what needs a permission.
        host.handle(MEMORY_APPEND.name)(self.append)
        host.handle(MEMORY_QUERY.name)(self.query)
        host.handle(CONFIG_GET.name)(self.get)
        host.handle(CONFIG_SET.name)(self.set)
        host.handle(CONFIG_SUBSCRIBE.name)(self.subscribe)
        host.handle(ADD)(lambda params: sum(params))
        host.handle(PING)(lambda: "pong")
        host.on(WIDGET_UPSERT)(self.receive)
        host.on(LOG)(self.log)

    def append(self, params: Append) -> Appended:
        self.called.append(params)
        return Appended(True, 5, len(self.called))

    def query(self, params: Query) -> Records:
        self.called.append(params)
        return Records((Record("notes", 1, "milk", ()),))

    def get(self, params: ConfigGet) -> ConfigValue:
        return ConfigValue(params.key.upper(), 7)

    def set(self, params: ConfigSet) -> ConfigSaved:
        self.called.append(params)
        if params.if_revision == 1:
            raise RpcError(Meaning.PERMISSION_DENIED, "permission denied: config.write required")
        return ConfigSaved(True, 8)

    def subscribe(self, params: ConfigSubscribe) -> ConfigSubscribed:
        self.called.append(params)
        return ConfigSubscribed(True, 9)

    def receive(self, params: WidgetUpsert) -> None:
        self.received.append(params)
        self.is_told.set()

    def log(self, params: LogRecord) -> None:
        self.received.append(params)
        self.is_told.set()


class Coroutines(ExtensionServer):
    id = "notes"

    @tool("Uses all.")
    async def use(self) -> list[Any]:
        host = self.host
        kept = await host.memory.append("milk", tags=["a"], meta={"b": 1}, idem="once")
        found = await host.memory.query("milk", tag_prefix="a", since_ms=1, until_ms=2, limit=3)
        await host.notify(WIDGET_UPSERT, WidgetUpsert("w", ("line",)))
        return [
            kept.id,
            found[0].content,
            await host.config.get("colour"),
            (await host.config.read("colour")).revision,
            (await host.config.set("colour", "red", if_revision=0)).revision,
            (await host.config.subscribe(["colour"], since=3)).revision,
            await host.call(ADD, [1, 2]),
            await host.call(PING),
            await host.call("host/add", [3], returns=int),
        ]


AWAITED = ("memory", "config", "call", "notify")


class Plain(ExtensionServer):
    id = "notes"

    @tool("Uses all.")
    def use(self) -> list[Any]:
        host = self.host.blocking
        kept = host.memory.append("milk", tags=["a"], meta={"b": 1}, idem="once")
        found = host.memory.query("milk", tag_prefix="a", since_ms=1, until_ms=2, limit=3)
        host.notify(WIDGET_UPSERT, WidgetUpsert("w", ("line",)))
        return [
            kept.id,
            found[0].content,
            host.config.get("colour"),
            host.config.read("colour").revision,
            host.config.set("colour", "red", if_revision=0).revision,
            host.config.subscribe(["colour"], since=3).revision,
            host.call(ADD, [1, 2]),
            host.call(PING),
            host.call("host/add", [3], returns=int),
        ]

    @tool("Uses what only a coroutine can await.")
    def use_awaitables(self) -> list[str]:
        uses: list[Any] = [
            lambda: self.host.memory.query(),
            lambda: self.host.config.get("colour"),
            lambda: self.host.call(PING),
            lambda: self.host.notify(WIDGET_UPSERT, WidgetUpsert("w", ("line",))),
        ]
        errors: list[str] = []
        for use in uses:
            with pytest.raises(LocalProtocolError) as raised:
                use()
            errors.append(str(raised.value))
        return [*errors, self.host.extension]

    @tool("Asks from a thread of its own.")
    def use_from_a_thread(self) -> list[int]:
        responses: list[int] = []
        thread = threading.Thread(target=lambda: responses.append(self.host.blocking.call(ADD, [1, 2])))
        thread.start()
        thread.join(60)
        return responses

    @tool("Is refused.")
    def be_refused(self) -> str:
        try:
            self.host.blocking.config.set("colour", "red", if_revision=1)
        except RemoteError as error:
            return f"{error.meaning}"
        return "allowed"

    @handles("plain/context")
    def context(self, params: dict[str, Any], ctx: BlockingContext) -> list[Any]:
        ctx.notify(WIDGET_UPSERT, WidgetUpsert("ctx", ()))
        return [ctx.call(ADD, [1, 2]), ctx.remaining() > 0, ctx.deadline > 0, ctx.id is not None, ctx.caller]

    @tool("Reports.")
    def report(self, ctx: BlockingContext) -> None:
        ctx.progress({"percent": 50})


USED = [1, "milk", "COLOUR", 7, 8, 9, 3, "pong", 3]
REQUEST = [
    Append("notes", "milk", ("a",), {"b": 1}, "once"),
    Query("notes", "milk", "a", 1, 2, 3),
    ConfigSet("colour", "red", 0),
    ConfigSubscribe(("colour",), 3),
]


@pytest.mark.parametrize(
    ("extension", "runtime"), [(Coroutines, "loop"), (Plain, "loop"), (Plain, "blocking")], ids=str
)
async def test_all_services_of_the_host_can_be_used(extension: type[ExtensionServer], runtime: str) -> None:
    async with hosted(extension(), runtime) as host:
        desk = HostServices(host)
        assert await use_tool(host, "use") == USED
        await desk.is_told.wait()

    assert desk.called == REQUEST
    assert desk.received == [WidgetUpsert("w", ("line",))]


@both_runtimes
async def test_a_plain_function_that_uses_an_awaited_method_gets_an_error_naming_the_blocking_one(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        HostServices(host)
        *errors, extension = await use_tool(host, "use_awaitables")

    assert [f"use `self.host.blocking.{name}`" in error for name, error in zip(AWAITED, errors, strict=True)] == [
        True
    ] * 4
    assert extension == "notes"


@both_runtimes
async def test_any_thread_of_the_extension_may_call_the_host(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        HostServices(host)
        assert await use_tool(host, "use_from_a_thread") == [3]


@both_runtimes
async def test_a_refusal_of_the_host_is_an_error_with_its_meaning(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        HostServices(host)
        assert await use_tool(host, "be_refused") == str(Meaning.PERMISSION_DENIED)


@both_runtimes
async def test_the_context_of_a_plain_function_is_plain(runtime: str) -> None:
    async with hosted(Plain(), runtime) as host:
        desk = HostServices(host)
        assert await host.call("plain/context", {}) == [3, True, True, True, None]
        progress: list[Any] = []
        await host.call("tool.call", {"name": "report", "input": {}}, on_progress=progress.append)
        await desk.is_told.wait()

    assert progress == [{"percent": 50}]
    assert desk.received == [WidgetUpsert("ctx", ())]


def test_the_context_of_a_worker_has_all_that_a_plain_one_has() -> None:
    public = {name for name in dir(BlockingContext) if not name.startswith("_")}

    assert public == {name for name in dir(WorkerContext) if not name.startswith("_")}


# -- errors for calls that cannot work


class Wrong(ExtensionServer):
    id = "notes"

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    @tool("Waits where nothing can wait.", inline=True)
    def inline(self, how: str) -> Any:
        ways: dict[str, Any] = {
            "memory": lambda: self.host.blocking.memory.query(),
            "call": lambda: self.host.blocking.call(PING),
        }
        return self._note(ways[how])

    @tool("Would stop the loop.")
    async def coroutine(self) -> Any:
        return self._note(lambda: self.host.blocking.call(PING))

    @handles("wrong/context", inline=True)
    def context(self, params: dict[str, Any], ctx: BlockingContext) -> Any:
        assert ctx.remaining() > 0
        return self._note(lambda: ctx.call(PING))

    @handles("wrong/peer")
    def peer(self, params: dict[str, Any], ctx: BlockingContext) -> Any:
        return self._note(lambda: ctx.peer)

    @tool("Logs, which never waits.", inline=True)
    def log(self) -> None:
        self.host.log("hello")

    def _note(self, ask: Any) -> None:
        try:
            ask()
        except Exception as error:
            self.errors.append(error)


@pytest.mark.parametrize("how", ["memory", "call"])
async def test_an_inline_function_cannot_wait_for_the_host(how: str) -> None:
    wrong = Wrong()
    async with hosted(wrong) as host:
        await use_tool(host, "inline", how=how)

    assert [type(error) for error in wrong.errors] == [LocalProtocolError]
    assert "inline" in str(wrong.errors[0])


async def test_the_error_for_a_blocking_call_in_a_coroutine_suggests_await() -> None:
    wrong = Wrong()
    async with hosted(wrong) as host:
        await use_tool(host, "coroutine")

    assert [type(error) for error in wrong.errors] == [LocalProtocolError]
    assert "await" in str(wrong.errors[0])


async def test_the_context_of_an_inline_function_cannot_wait_and_a_worker_has_no_peer() -> None:
    wrong = Wrong()
    async with hosted(wrong) as host:
        await host.call("wrong/context", {})
        await host.call("wrong/peer", {})

    assert [type(error) for error in wrong.errors] == [LocalProtocolError, NotSupported]


class Careless(ExtensionServer):
    id = "notes"

    @tool("Gives one text where several are meant.")
    def one(self) -> list[str]:
        output: list[str] = []
        for ask in (
            lambda: self.host.blocking.memory.append("milk", tags="abc"),
            lambda: self.host.blocking.config.subscribe("colour"),
        ):
            try:
                ask()
            except TypeError as error:
                output.append(str(error))
        return output


@both_runtimes
async def test_a_string_instead_of_a_list_is_not_split_into_letters(runtime: str) -> None:
    async with hosted(Careless(), runtime) as host:
        output = await use_tool(host, "one")

    assert output == [
        "tags must be a list of str, got the str 'abc'",
        "keys must be a list of str, got the str 'colour'",
    ]


# -- the log


class Logs(ExtensionServer):
    id = "notes"

    @tool("Logs.")
    def plain(self) -> None:
        self.host.log("from a plain function")
        self.host.blocking.log("twice", level="error", logger="notes.plain")
        self.host.log(ValueError("no text at all"))

    @tool("Logs.")
    def wrongly(self) -> str:
        try:
            self.host.log("hello", level="loud")  # type: ignore[arg-type]
        except ValueError as error:
            return str(error)
        return ""


class LogsLater(Logs):
    @tool("Logs.")
    async def coroutine(self) -> None:
        self.host.log("from a coroutine", level=LogLevel.WARNING)


@both_runtimes
async def test_a_log_message_is_sent_to_the_host(runtime: str) -> None:
    async with hosted(Logs(), runtime) as host:
        desk = HostServices(host)
        await use_tool(host, "plain")
        while len(desk.received) < 3:
            await settled()
        assert "loud" in await use_tool(host, "wrongly")

    assert desk.received == [
        LogRecord(LogLevel.INFO, "notes", "from a plain function"),
        LogRecord(LogLevel.ERROR, "notes.plain", "twice"),
        LogRecord(LogLevel.INFO, "notes", "no text at all"),
    ]


async def test_coroutines_and_inline_functions_log_without_waiting() -> None:
    async with hosted(LogsLater()) as host:
        desk = HostServices(host)
        await use_tool(host, "coroutine")
        await settled()
    async with hosted(Wrong()) as host:
        other = HostServices(host)
        await use_tool(host, "log")
        await settled()

    assert desk.received == [LogRecord(LogLevel.WARNING, "notes", "from a coroutine")]
    assert other.received == [LogRecord(LogLevel.INFO, "notes", "hello")]


@both_runtimes
async def test_where_the_host_has_no_log_method_the_log_goes_to_stderr(
    runtime: str, capsys: pytest.CaptureFixture[str]
) -> None:
    features = tuple(feature for feature in FEATURES if feature != "log")
    async with hosted(Logs(), runtime, features=features) as host:
        desk = HostServices(host)
        await use_tool(host, "plain")

    assert desk.received == []
    assert capsys.readouterr().err == (
        "INFO:notes:from a plain function\nERROR:notes.plain:twice\nINFO:notes:no text at all\n"
    )


# Without a loop either the end of the link or that of the extension is noticed first.
async def test_a_log_message_after_the_end_of_the_link_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    class Late(ExtensionServer):
        id = "notes"

        def on_stop(self) -> None:
            self.host.log("too late")

    async with hosted(Late()) as host:
        await host.aclose()

    assert capsys.readouterr().err == "INFO:notes:too late\n"


# -- changes of the configuration


class Watches(ExtensionServer):
    id = "notes"

    def __init__(self) -> None:
        self.changes: list[Any] = []
        self.is_enough = threading.Event()

    @tool("Watches.")
    def watch(self) -> None:
        config = self.host.blocking.config

        @config.on_change
        def first(change: ConfigChanged) -> None:
            self.changes.append(("first", change.revision))

        config.on_change(self.second)
        config.subscribe()

    def second(self, change: ConfigChanged) -> None:
        self.changes.append((self.host.blocking.config.get("key"), change.revision))
        if change.revision == 2:
            self.is_enough.set()


class WatchesLater(Watches):
    @tool("Watches.")
    async def watch(self) -> None:  # type: ignore[override]
        self.host.config.on_change(self.later)
        self.host.config.on_change(self.second)
        await self.host.config.subscribe()

    async def later(self, change: ConfigChanged) -> None:
        self.changes.append((await self.host.config.get("first"), change.revision))


@pytest.mark.parametrize(
    ("extension", "runtime"), [(Watches, "loop"), (Watches, "blocking"), (WatchesLater, "loop")], ids=str
)
async def test_config_changes_reach_all_subscribers_one_after_the_other(extension: type[Watches], runtime: str) -> None:
    watches = extension()
    async with hosted(watches, runtime) as host:
        HostServices(host)
        await use_tool(host, "watch")
        for revision in (1, 2):
            await host.notify(CONFIG_CHANGED, ConfigChanged("colour", "red", revision))
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync(watches.is_enough.wait)

    first = "first" if extension is Watches else "FIRST"
    assert watches.changes == [(first, 1), ("KEY", 1), (first, 2), ("KEY", 2)]


async def test_without_a_loop_no_coroutine_subscribes_to_changes() -> None:
    class Confused(ExtensionServer):
        id = "notes"

        @tool("Watches.")
        def watch(self) -> str:
            async def later(change: ConfigChanged) -> None: ...

            try:
                self.host.blocking.config.on_change(later)
            except TypeError as error:
                return str(error)
            return ""

    async with hosted(Confused(), "blocking") as host:
        assert "without an event loop" in await use_tool(host, "watch")


# -- calls within calls


class Nested(ExtensionServer):
    id = "notes"

    @tool("Asks the host, who asks us, and so on.")
    def deep(self, depth: int) -> int:
        return 0 if depth == 0 else 1 + self.host.blocking.call("host/deep", {"depth": depth - 1}, returns=int)


class NestedLater(ExtensionServer):
    id = "notes"

    @tool("Asks the host, who asks us, and so on.")
    async def deep(self, depth: int, ctx: Context) -> int:
        return 0 if depth == 0 else 1 + await self.host.call("host/deep", {"depth": depth - 1}, returns=int)


@pytest.mark.parametrize(
    ("extension", "runtime"), [(Nested, "loop"), (Nested, "blocking"), (NestedLater, "loop")], ids=str
)
async def test_calls_nest_without_deadlock(extension: type[ExtensionServer], runtime: str) -> None:
    async with hosted(extension(), runtime) as host:

        @host.handle("host/deep")
        async def deep(params: dict[str, int]) -> int:
            return await use_tool(host, "deep", depth=params["depth"])  # type: ignore[no-any-return]

        assert await use_tool(host, "deep", depth=12) == 12


async def test_a_call_from_a_worker_belongs_to_its_request() -> None:
    parents: list[Any] = []
    async with hosted(Nested()) as host:

        @host.handle("host/deep")
        def deep(params: dict[str, int], ctx: Context) -> int:
            parents.append(ctx.remaining() < 3)
            return 0

        await host.call("tool.call", {"name": "deep", "input": {"depth": 1}}, timeout=2)

    assert parents == [True]
