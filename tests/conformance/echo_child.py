"""The program under test: a becket peer on its own stdin and stdout. `echo_child.py FACE FRAMING [RULE]`"""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from msgspec import Struct

from becket import Registry
from becket.dialects import Dialect, ProgressFormat
from becket.framing import ContentLength, FramingFactory, JsonLines
from becket.jsonrpc.calls import CancellationFormat, CancelResponse

FRAMINGS: dict[str, FramingFactory] = {"content-length": ContentLength, "json-lines": JsonLines}


class Point(Struct):
    x: int
    y: int = 0


class Turn(Struct, forbid_unknown_fields=True):
    degrees: int


class CallBack(Struct):
    method: str
    params: Any = None


def methods() -> Registry:
    registry = Registry()
    received: list[Any] = []

    @registry.handle("initialize")
    def initialize(params: Any) -> Any:
        return {"capabilities": {}}

    @registry.handle("echo")
    def echo(params: Any) -> Any:
        return params

    @registry.handle("move")
    def move(params: Point) -> Point:
        return Point(params.x + 1, params.y + 1)

    @registry.handle("turn")
    def turn(params: Turn) -> int:
        return params.degrees

    @registry.handle("fail")
    def fail(params: Any) -> None:
        raise ValueError("the canary")

    @registry.handle("print")
    def stray(params: Any) -> None:
        print("stray")
        os.write(1, b"stray\n")
        os.system("echo stray")

    @registry.on("tell")
    def on_notification(params: Any) -> None:
        received.append(params)

    @registry.handle("told")
    def give_told() -> Any:
        return received

    return registry


def run_blocking(framing: FramingFactory) -> None:
    from becket.blocking import BlockingContext, connect_stdio

    registry = methods()

    @registry.handle("ask", thread=True)
    def ask(params: CallBack, ctx: BlockingContext) -> Any:
        return ctx.call(params.method, params.params)

    @registry.handle("talk", thread=True)
    def talk(params: Any, ctx: BlockingContext) -> Any:
        ctx.notify("said")
        ctx.notify("said", {"a": "\u2028é"})
        return [ctx.call("asked"), ctx.call("asked", [1]), ctx.call("asked", {})]

    with connect_stdio(framing=framing, methods=registry) as peer:
        peer.serve()


async def run_async(framing: FramingFactory, rule: CancelResponse) -> None:
    import anyio

    from becket import Context, Peer

    cancelling = CancellationFormat("$/cancelRequest", response=rule)
    dialect = Dialect(name="child", cancellation=cancelling, progress=ProgressFormat("$/progress"))
    async with Peer.connect_stdio(dialect=dialect, framing=framing, methods=methods()) as peer:

        @peer.handle("ask")
        async def ask(params: CallBack, ctx: Context) -> Any:
            return await ctx.call(params.method, params.params)

        @peer.handle("talk")
        async def talk(params: Any, ctx: Context) -> Any:
            await ctx.notify("said")
            await ctx.notify("said", {"a": "\u2028é"})
            return [await ctx.call("asked"), await ctx.call("asked", [1]), await ctx.call("asked", {})]

        @peer.handle("wait")
        async def wait(params: Any, ctx: Context) -> str:
            await ctx.progress("waiting")
            while not ctx.is_cancelled:  # noqa: ASYNC110  (under the other two rules it is interrupted here)
                await anyio.sleep(0.001)
            return "stopped"

        @peer.handle("give up")
        async def give_up(params: Any, ctx: Context) -> str:
            with anyio.move_on_after(0):
                await ctx.call("never answered")
            return "given up"

        await peer.wait_closed()


if __name__ == "__main__":
    runtime, framing, *rest = sys.argv[1:]
    if runtime == "blocking":
        run_blocking(FRAMINGS[framing])
    else:
        import asyncio

        asyncio.run(run_async(FRAMINGS[framing], cast("CancelResponse", rest[0]) if rest else "sent"))
