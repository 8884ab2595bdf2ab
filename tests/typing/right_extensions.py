"""Right uses of the kit for extensions, which both type checkers must accept. Never run."""

from collections.abc import Awaitable
from typing import assert_type

from msgspec import Struct

from becket import Context, ExtensionServer
from becket.blocking import BlockingContext
from becket.contract.config import ConfigChanged, ConfigSaved
from becket.contract.handshake import DeclaredCapability
from becket.contract.hooks import Block, Continue, HookEvent, HookKind, HookResult
from becket.contract.info import ExtensionInfo, SidecarArgs
from becket.contract.log import LogLevel
from becket.contract.memory import Appended, Record
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.contract.settings import EditorOpen
from becket.contract.widgets import WIDGET_UPSERT, WidgetUpsert
from becket.extension import (
    BlockingCommandOutput,
    BlockingHostClient,
    BlockingProviderStream,
    CommandOutput,
    HostClient,
    ProviderStream,
    command,
    handles,
    hook,
    provider,
    tool,
)
from becket.methods.descriptors import Method, Notification
from becket.testing import connected


class Point(Struct):
    x: int


class Stats(Struct):
    notes: int


STATS: Method[Point, Stats] = Method("notes/stats", Point, Stats)
NEWS: Notification[Point] = Notification("notes/news", Point)


class Coroutines(ExtensionServer):
    id, version = "notes", "1.2.0"
    capabilities = (DeclaredCapability("ocr", "Tess"),)

    async def on_start(self) -> None:
        assert_type(self.host, HostClient)
        assert_type(await self.host.memory.append("milk", tags=["a"]), Appended)
        assert_type(await self.host.memory.query(content_contains="milk", limit=3), tuple[Record, ...])
        assert_type(await self.host.config.get("colour"), str | None)
        assert_type(await self.host.config.set("colour", "red", if_revision=1), ConfigSaved)
        assert_type(await self.host.call(STATS, Point(1)), Stats)
        assert_type(await self.host.call("host/add", [1], returns=int), int)
        await self.host.notify(WIDGET_UPSERT, WidgetUpsert("w", ()))
        self.host.log("hello", level="warning", logger="notes.part")
        self.host.log("hello", level=LogLevel.DEBUG)
        self.host.config.on_change(self.changed)

    async def changed(self, change: ConfigChanged) -> None: ...

    async def info(self) -> ExtensionInfo:
        return ExtensionInfo()

    @tool("Counts.")
    async def count(self, text: str, limit: int = 10) -> int:
        return len(await self.host.memory.query(content_contains=text, limit=limit))

    @tool
    async def described(self, ctx: Context) -> None:
        """Says it here."""
        await ctx.progress(1)

    @command("reindex")
    async def reindex(self, args: list[str], out: CommandOutput) -> dict[str, int]:
        async with out.task("Indexing", kind="rebuild", total=3) as task:
            await task.advance()
        await out.table(["a"], [["b"]])
        return {}

    @command("args")
    async def args(self, args: list[str]) -> None: ...

    @command("none")
    async def none(self) -> None: ...

    @provider("local", models=[Model("small", context_window=4096, streaming=True)])
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("hel")
        return ProviderResult.of_text("hello")

    @provider("whole", models=(Model("small"),))
    async def whole(self, request: ProviderRequest) -> ProviderResult:
        return ProviderResult.of_text("hello")

    @hook("before_tool_call", tool="bash")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if event.tool_input else Continue()

    @hook(HookKind.ON_SESSION_END)
    async def bye(self, event: HookEvent) -> None: ...

    @handles("notes/raw")
    async def raw(self, params: Point, ctx: Context) -> Stats:
        return Stats(params.x)

    @handles(STATS)
    async def stats(self, params: Point, ctx: Context) -> Stats:
        return Stats(params.x)

    @handles(NEWS)
    async def news(self, params: Point) -> None: ...

    async def calls_its_own(self) -> None:
        assert_type(await self.count("milk"), int)
        assert_type(await self.stats(Point(1), undefined()), Stats)


class Plain(ExtensionServer):
    id = "plain"

    def on_start(self) -> None:
        host = self.host.blocking
        assert_type(host, BlockingHostClient)
        assert_type(host.memory.append("milk", tags=["a"]), Appended)
        assert_type(host.memory.query(content_contains="milk", limit=3), tuple[Record, ...])
        assert_type(host.config.get("colour"), str | None)
        assert_type(host.config.set("colour", "red"), ConfigSaved)
        assert_type(host.call(STATS, Point(1)), Stats)
        assert_type(host.call("host/add", [1], returns=int), int)
        host.notify(WIDGET_UPSERT, WidgetUpsert("w", ()))
        host.log("hello")

    def sidecar_args(self) -> SidecarArgs:
        return SidecarArgs()

    def on_editor_open(self, opened: EditorOpen) -> object:
        return opened.field

    @tool("Counts.", inline=True, name="count-them")
    def count(self, text: str) -> int:
        return len(text)

    @command("reindex")
    def reindex(self, args: list[str], out: BlockingCommandOutput) -> None:
        with out.task("Indexing", kind="rebuild", total=3) as task:
            task.advance()
        out.table(["a"], [["b"]])

    @provider("local", models=[Model("small")])
    def answer(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        out.text("hel")
        return ProviderResult.of_text("hello")

    @hook("before_tool_call", inline=True)
    def guard(self, event: HookEvent) -> HookResult | None:
        return Block("no") if event.tool_input else None

    @handles(STATS)
    def stats(self, params: Point, ctx: BlockingContext) -> Stats:
        return Stats(params.x)


def undefined() -> Context:
    raise NotImplementedError


def started_either_way(extension: ExtensionServer) -> Awaitable[None] | None:
    return extension.on_start()


async def in_memory() -> None:
    async with connected(Plain(), grants=["tools.register"]) as (_, plain):
        assert_type(plain, Plain)
