"""What a type checker knows of right uses. Checked by `make types`, never run."""

from collections.abc import Callable
from typing import Any, Literal, assert_type

import anyio
from msgspec import Struct

from becket import (
    DIALECTS,
    BatchCall,
    BatchNotify,
    CallTimeout,
    ConnectionLost,
    Context,
    DisconnectReason,
    Host,
    HostSettings,
    InvalidParams,
    Limits,
    Meaning,
    Peer,
    PeerCrashed,
    Registry,
    RemoteError,
    RpcError,
)
from becket.blocking import BlockingContext
from becket.dialects import Dialect
from becket.host import HostConfig


class Point(Struct):
    x: int
    y: int = 0


async def calling(peer: Peer) -> None:
    assert_type(await peer.call("echo"), Any)
    assert_type(await peer.call("echo", {"a": 1}, timeout=5), Any)
    assert_type(await peer.call("echo", [1, "two"], timeout=None), Any)
    assert_type(await peer.call("point", returns=Point), Point)
    assert_type(await peer.call("count", Point(1), returns=int, timeout=2.5), int)
    assert_type(await peer.call("points", returns=list[Point]), list[Point])
    assert_type(await peer.call("by name", returns=dict[str, Point]), dict[str, Point])
    number: int | None = await peer.call("perhaps", returns=int | None)  # a union is no class: the result is Any
    assert number is None or number > 0
    assert_type(await peer.call("ticks", returns=Point, on={"tick": print}, on_progress=print), Point)


async def notifying(peer: Peer) -> None:
    assert_type(await peer.notify("tick"), None)
    assert_type(await peer.notify("tick", {"n": 1}), None)
    assert_type(peer.notify_nowait("tick", Point(1)), None)
    outcomes = await peer.batch([BatchCall("a", {"x": 1}, returns=int), BatchNotify("b")], timeout=5)
    assert_type(outcomes, list[Any])


async def connecting() -> None:
    async with Peer.connect_process(["notes", "--quiet"], dialect="native", env={"LANG": "C"}) as peer:
        assert_type(peer, Peer)
        assert_type(peer.is_closed, bool)
        assert_type(peer.close_reason, ConnectionLost | None)
        assert_type(await peer.wait_closed(), ConnectionLost)
    assert_type(await Peer.connect_tcp("127.0.0.1", 80, dialect=DIALECTS["plain"]), Peer)
    assert_type(await Peer.connect_stdio(limits=Limits().but(frame=1_000)), Peer)


async def serving(peer: Peer, ctx: Context) -> None:
    @peer.handle("nothing")
    def nothing() -> int:
        return 1

    @peer.handle("move", thread=True)
    def move(params: Point) -> Point:
        return Point(params.x + 1)

    @peer.handle("slow")
    async def slow(params: list[int], ctx: Context) -> int:
        await ctx.progress({"done": 1})
        return len(params)

    @peer.on("tick")
    def tick(params: Point) -> None: ...

    # A decorated function is what it was.
    assert_type(nothing(), int)
    assert_type(move(Point(1)), Point)
    assert_type(await slow([1], ctx), int)
    assert_type(tick(Point(1)), None)


async def knowing(ctx: Context) -> None:
    assert_type(ctx.peer, Peer)
    assert_type(ctx.method, str)
    assert_type(ctx.id, int | float | str | None)
    assert_type(ctx.deadline, float)
    assert_type(ctx.remaining(), float)
    assert_type(ctx.is_cancelled, bool)
    assert_type(await ctx.progress(5), None)
    assert_type(await ctx.notify("tick", {}), None)
    assert_type(await ctx.call("echo"), Any)
    assert_type(await ctx.call("count", returns=int, timeout=2.5), int)
    assert_type(await ctx.call("points", returns=list[Point]), list[Point])


def knowing_without_a_loop(ctx: BlockingContext) -> None:
    assert_type(ctx.call("echo"), Any)
    assert_type(ctx.call("count", returns=int, timeout=2.5), int)


async def starting_in_a_task_group(peer: Peer, ctx: Context) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.notify, "tick", {"n": 1})
        tasks.start_soon(ctx.notify, "tick")


def registering(methods: Registry) -> None:
    @methods.handle("add")
    def add(params: Point) -> int:
        return params.x + params.y

    async def later(params: Point) -> int:
        return params.x

    function: Callable[[Point], int] = add
    assert_type(function(Point(1)), int)
    methods.handle("later")(later)
    assert_type(methods.including(Registry()), Registry)
    assert_type("add" in methods, bool)
    assert_type(list(methods), list[str])


def hosting(config: HostConfig) -> None:
    assert_type(HostSettings.from_config(config, watch="report", config={"notes": {"size": 5}}), HostSettings)
    Host(config, settings=HostSettings.from_config(config))
    Host(["extensions"], watch="report", mcp=None)  # keywords of 0.1


def failing(error: RemoteError, crash: PeerCrashed, late: CallTimeout, meaning: Literal[Meaning.BUSY]) -> None:
    assert_type(error.code, int)
    assert_type(error.meaning, Meaning | None)
    assert_type(crash.exit_code, int | None)
    assert_type(crash.reason, DisconnectReason)
    assert_type(late.seconds, float)
    assert_type(RpcError(meaning, "later", {"after": 5}).meaning, Meaning | None)
    assert_type(RpcError(-1).code, int | None)
    assert_type(InvalidParams([("/a", "is missing")]).problems, tuple[tuple[str, str], ...])
    kinds: list[type[OSError]] = [CallTimeout, PeerCrashed]
    assert kinds


def choosing() -> None:
    assert_type(Limits(frame=5).but(depth=3), Limits)
    assert_type(DIALECTS["plain"], Dialect)
