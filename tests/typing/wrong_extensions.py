"""Wrong uses of the kit for extensions, which both type checkers must see. Never run."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from msgspec import Struct

from becket import ExtensionServer
from becket.contract.hooks import Block, HookEvent
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import (
    BlockingProviderStream,
    CommandOutput,
    ProviderStream,
    command,
    handles,
    hook,
    provider,
    tool,
)
from becket.methods.descriptors import Method, Notification


class Point(Struct):
    x: int


class Stats(Struct):
    notes: int


STATS: Method[Point, Stats] = Method("notes/stats", Point, Stats)
NEWS: Notification[Point] = Notification("notes/news", Point)
SMALL = Model("small")


class Wrong(ExtensionServer):
    id = 5  # type: ignore[assignment]

    def forgets(self) -> int:
        return len(self.host.memory.query())  # type: ignore[arg-type]

    def waits_for_nothing(self) -> str | None:
        return self.host.config.get("colour")  # type: ignore[return-value]

    async def awaits_a_value(self) -> None:
        await self.host.blocking.memory.query()  # type: ignore[misc]

    async def loud(self) -> None:
        self.host.log("hello", level="loud")  # type: ignore[arg-type]
        await self.host.call(STATS, "text")  # type: ignore[misc]
        await self.host.memory.query(5)  # type: ignore[arg-type]

    async def on_start(self) -> int:  # type: ignore[override]
        return 5

    @tool(5)  # type: ignore[call-overload, untyped-decorator]
    def nameless(self) -> None: ...

    @tool("Counts.", inline="yes")  # type: ignore[call-overload, untyped-decorator]
    def count(self) -> None: ...

    @command("plain")  # type: ignore[arg-type]
    def plain(self, args: str) -> None: ...

    @command("much")  # type: ignore[arg-type]
    async def much(self, args: list[str], out: CommandOutput, more: int) -> None: ...

    @provider("local", models=SMALL)  # type: ignore[arg-type]
    async def one(self, request: ProviderRequest) -> ProviderResult:
        return ProviderResult.of_text("")

    @provider("local", models=[SMALL])  # type: ignore[arg-type]
    async def no_result(self, request: ProviderRequest, out: ProviderStream) -> None: ...

    @provider("local", models=[SMALL])  # type: ignore[arg-type]
    def awaited(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        return ProviderResult.of_text("")

    @provider("local", models=[SMALL])  # type: ignore[arg-type]
    async def plain_stream(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        return ProviderResult.of_text("")

    @hook("on_full_moon")  # type: ignore[arg-type]
    def moon(self, event: HookEvent) -> None: ...

    @hook("before_message")  # type: ignore[arg-type]
    def text(self, event: HookEvent) -> str:
        return ""

    @hook("before_message")  # type: ignore[arg-type]
    def eventless(self) -> Block:
        return Block("")

    @handles(STATS)  # type: ignore[arg-type]
    async def other_params(self, params: Stats) -> Stats:
        return params

    @handles(STATS)  # type: ignore[arg-type]
    def other_result(self, params: Point) -> Point:
        return params

    @handles(NEWS)  # type: ignore[arg-type]
    def other_news(self, params: Stats) -> None: ...
