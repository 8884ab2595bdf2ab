"""A host and an `ExtensionServer` communicate over synaps; their users see no difference."""

from __future__ import annotations

import anyio
import pytest

from becket.adapters.synaps.manifest import Plugin, PluginExtension
from becket.contract.commands import CommandDone, ErrorText, Table, Text
from becket.contract.config import ConfigChanged
from becket.contract.hooks import Block, Continue, HookEvent, HookResult
from becket.contract.info import SidecarArgs
from becket.contract.memory import MEMORY_APPEND, MEMORY_QUERY, Append, Query
from becket.contract.providers import Model, ProviderDone, ProviderRequest, ProviderResult, TextDelta, Usage, user
from becket.contract.tasks import TaskEnded, TaskKind, TaskStarted, TaskUpdated
from becket.contract.widgets import WIDGET_UPSERT, WidgetUpsert
from becket.errors import Meaning, NotSupported, RemoteError, RpcError
from becket.extension import CommandOutput, ExtensionServer, ProviderStream, command, hook, provider, tool
from becket.stores.in_memory import InMemoryStore
from becket.testing import connected

pytestmark = pytest.mark.loops

GRANTS = [
    "config.subscribe",
    "config.write",
    "memory.read",
    "memory.write",
    "providers.register",
    "tools.intercept",
    "tools.register",
]


class Demo(ExtensionServer):
    id, version = "demo", "1.0.0"

    def __init__(self) -> None:
        self.changes: list[ConfigChanged] = []
        self.found_at_start: int | None = None

    async def on_start(self) -> None:
        if "memory.read" in self.config.get("grants", ()):
            await self.host.memory.append("at start")
            self.found_at_start = len(await self.host.memory.query("start"))

    @tool("Keeps a text and tells what is known of it.")
    async def keep(self, text: str) -> dict[str, object]:
        kept = await self.host.memory.append(text, tags=["a"], idem="once")
        (record,) = await self.host.memory.query(text)
        return {"ok": kept.ok, "has_id": kept.id is not None, "tags": record.tags, "meta": record.meta}

    @tool("Keeps something under a name, and tells under which names it is found.")
    async def remember(self, namespace: str) -> list[str]:
        try:
            await self.host.call(MEMORY_APPEND, Append(namespace, "x"))
        except RemoteError as error:
            raise RpcError(1, error.message) from error
        return [record.namespace for record in (await self.host.call(MEMORY_QUERY, Query(namespace))).records]

    @tool("Changes a value.")
    async def change(self, value: str) -> list[object]:
        self.host.config.on_change(self.changes.append)
        subscribed = await self.host.config.subscribe(["mode"])
        saved = await self.host.config.set("mode", value)
        read = await self.host.config.read("mode")
        return [subscribed.ok, subscribed.snapshot, saved.ok, saved.revision, read.value, read.revision]

    @tool("Changes a value only if nobody else has.")
    async def change_carefully(self) -> str:
        try:
            await self.host.config.set("mode", "x", if_revision=0)
        except NotSupported as error:
            return str(error)
        return "sent"

    @tool("Asks for what it may not.")
    async def trespass(self) -> str:
        try:
            await self.host.memory.append("x")
        except RemoteError as error:
            return f"{error.meaning}: {error.message}"
        return "kept"

    @tool("Fails.")
    async def fail(self) -> None:
        raise RuntimeError("a secret")

    @provider("local", models=[Model("small", streaming=True)])
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("hel")
        await out.usage({"tokens": 1})
        return ProviderResult.of_text("hello")

    @command("tidy")
    async def tidy(self, args: list[str], out: CommandOutput) -> int:
        async with out.task("Tidying", kind="rebuild", total=1) as task:
            await task.advance()
        await out.text("t")
        await out.error("e")
        await out.table(["h"], [["c"]])
        await self.host.notify(WIDGET_UPSERT, WidgetUpsert("w", ("line",)))
        return len(args)

    @hook("before_tool_call")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if event.tool_name == "bash" else Continue()

    async def sidecar_args(self) -> SidecarArgs:
        return SidecarArgs(("--fast",), "en")


async def test_memory_and_configuration_have_only_the_members_of_synaps() -> None:
    async with connected(Demo(), grants=GRANTS, dialect="synaps") as (host, demo):
        assert await host.call_tool_json("keep", {"text": "milk"}) == {
            "ok": True,
            "has_id": False,
            "tags": ["a"],
            "meta": None,
        }
        assert await host.call_tool_json("change", {"value": "dark"}) == [True, None, True, None, "dark", None]
        await anyio.wait_all_tasks_blocked()
        assert demo.changes == []


async def test_the_memory_of_an_extension_is_stored_under_the_name_of_its_folder() -> None:
    plugin = Plugin(id="Demo", extension=PluginExtension(runtime="process", command="python3"))
    store = InMemoryStore()
    async with connected(Demo(), grants=GRANTS, dialect="synaps", extra=plugin, store=store) as (host, _):
        assert await host.call_tool_json("remember", {"namespace": "Demo"}) == ["Demo"]
        with pytest.raises(RemoteError, match="namespace must equal extension id 'Demo'"):
            await host.call_tool_json("remember", {"namespace": "demo"})
        assert [record.namespace for record in store.query(Query("demo"))] == ["demo"]


async def test_an_extension_may_call_the_host_while_it_starts() -> None:
    async with connected(Demo(), grants=GRANTS, config={"grants": GRANTS}, dialect="synaps") as (_, demo):
        assert demo.found_at_start == 1


async def test_calls_that_synaps_lacks_are_not_sent() -> None:
    async with connected(Demo(), grants=GRANTS, dialect="synaps") as (host, _):
        assert "synaps" in await host.call_tool("change_carefully")


async def test_a_denial_is_distinguished_from_other_bad_params() -> None:
    async with connected(Demo(), grants=["tools.register", "providers.register"], dialect="synaps") as (host, _):
        denied = f"{Meaning.PERMISSION_DENIED}: permission denied: memory.write required"
        assert await host.call_tool("trespass") == denied


async def test_an_internal_error_is_not_sent() -> None:
    async with connected(Demo(), grants=GRANTS, dialect="synaps") as (host, _):
        with pytest.raises(RemoteError) as failed:
            await host.call_tool("fail")
        assert failed.value.code == -32000
        assert "secret" not in str(failed.value)


async def test_responses_commands_and_hooks_work_as_in_other_dialects() -> None:
    shown: list[WidgetUpsert] = []
    async with connected(Demo(), grants=GRANTS, dialect="synaps") as (host, _):
        host.on(WidgetUpsert)(shown.append)
        async with host.stream("local", "small", messages=[user("hi")]) as answer:
            assert [event async for event in answer] == [TextDelta("hel"), Usage({"tokens": 1}), ProviderDone()]
            assert (await answer.result()).text == "hello"
        async with host.invoke_command("tidy", ["a", "b"]) as run:
            assert [event async for event in run] == [
                TaskStarted("run-1/1", "Tidying", TaskKind.REBUILD),
                TaskUpdated("run-1/1", 0, 1),
                TaskUpdated("run-1/1", 1, 1),
                TaskEnded("run-1/1"),
                Text("t"),
                ErrorText("e"),
                Table(("h",), (("c",),)),
                CommandDone(),
            ]
            assert await run.result() == 2
        assert await host.handle_hook(HookEvent.before_tool_call("bash", {})) == Block("no")
        assert await host.handle_hook(HookEvent.before_tool_call("ls", {})) == Continue()
        assert await host.sidecar_args() == SidecarArgs(("--fast",), "en")
    assert shown == [WidgetUpsert("w", ("line",))]


async def test_calls_wait_for_each_other() -> None:
    class Slow(ExtensionServer):
        id, version = "slow", "1.0.0"
        most = running = 0

        @tool("Takes its time.")
        async def work(self) -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            await self.host.config.get("mode")
            self.running -= 1

    async with connected(Slow(), grants=["tools.register"], dialect="synaps") as (host, slow):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(host.call_tool, "work")
        assert slow.most == 1


async def test_a_store_that_fails_is_reported_with_its_number() -> None:
    class Broken(InMemoryStore):
        def append(self, *arguments: object) -> object:  # type: ignore[override]
            raise OSError("disk on fire")

    class Keeper(ExtensionServer):
        id, version = "keeper", "1.0.0"

        @tool("Keeps.")
        async def keep(self) -> list[object]:
            try:
                await self.host.memory.append("x")
            except RemoteError as error:
                return [error.code, error.message.startswith("storage failure"), error.data]
            return []

    options = {"grants": ["tools.register", "memory.write"], "dialect": "synaps"}
    async with connected(Keeper(), store=Broken(), **options) as (host, _):  # type: ignore[arg-type]
        assert await host.call_tool_json("keep") == [-32000, True, None]
