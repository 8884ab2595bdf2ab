"""What a type checker knows of right uses of descriptors. Checked by `make types`, never run."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, assert_type

import msgspec
from msgspec import Raw, Struct

from becket import Context, Gap, Peer, Registry
from becket.blocking import BlockingContext, BlockingPeer, BlockingStream, PendingCall
from becket.contract.config import CONFIG_CHANGED, CONFIG_GET, ConfigChanged, ConfigGet, ConfigValue
from becket.contract.handshake import SHUTDOWN
from becket.contract.memory import MEMORY_APPEND, Append, Appended
from becket.contract.providers import PROVIDER_STREAM, ProviderEvent, ProviderRequest, ProviderResult
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import CancelReason, EventReader, ResultCollector, Stream
from becket.peer.streams import CallStream
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision


class Point(Struct):
    x: int


class Point3(Point):
    z: int


class Tick(Struct):
    n: int


class Tock(Struct):
    m: int


def read_tick(raw: Raw) -> Tick:
    return msgspec.json.decode(raw, type=Tick)


def read_tock(raw: Raw) -> Tock:
    return msgspec.json.decode(raw, type=Tock)


class Total:
    """Gathers more kinds of events than the stream has, and returns the result type of the stream."""

    def __init__(self, params: Point) -> None:
        self.total = params.x

    def on_response(self, response: Raw, /) -> None: ...

    def on_event(self, event: Tick | Tock, /) -> bool:
        return isinstance(event, Tock)

    def result(self) -> int:
        return self.total


def stop_ticking(params: Point, reason: str) -> tuple[Method[Point, None], Point]:
    return FORGET, params


def stop_clock(params: Any, reason: CancelReason) -> tuple[Method[Any, Any], object]:
    return STOP, None


MOVE = Method("move", Point, Point3, requires="own.moves", timeout=5.0, direction="to-extension")
STOP = Method("stop", None, None)
COUNT = Method("count", None, int)
FORGET = Method("forget", Point, None)
FIND: Method[Point, Point3 | None] = Method("find", Point, Point3 | None)
ANYTHING: Method[Point, Any] = Method("anything", Point, Any)
MAYBE: Method[Point | None, int] = Method("maybe", Point | None, int)
TICK = Notification("tick", Tick)
OVER = Notification("over", None)
TICKS = Stream("ticks", Point, int, events={"tick": EventReader(read_tick, (Tick,))})
CLOCK: Stream[None, int, Tick | Tock] = Stream(
    "clock", None, int, events={"tick": EventReader(read_tick), "tock": EventReader(read_tock)}
)

GATHERED = Stream("ticks", Point, int, events={"tick": EventReader(read_tick)}, gather=Total, cancel=stop_ticking)
GATHERED_UNION: Stream[Point, int, Tick | Tock] = Stream(
    "clock",
    Point,
    int,
    events={"tick": EventReader(read_tick), "tock": EventReader(read_tock)},
    gather=Total,
    cancel=stop_clock,
)
gathering: ResultCollector[Tick, int] = Total(Point(1))

assert_type(MOVE, Method[Point, Point3])
assert_type(GATHERED, Stream[Point, int, Tick])
assert_type(STOP, Method[None, None])
assert_type(COUNT, Method[None, int])
assert_type(FORGET, Method[Point, None])
assert_type(TICK, Notification[Tick])
assert_type(OVER, Notification[None])
assert_type(TICKS, Stream[Point, int, Tick])
assert_type(MOVE.name, str)
assert_type(MOVE.requires, str | None)
assert_type(MOVE.timeout, float | None)

# It takes narrower params, and gives a wider result.
narrower: Method[Point3, Point3] = MOVE
wider: Method[Point, Point] = MOVE
as_method: Method[Point, int] = TICKS
wider_events: Stream[Point3, int, Tick | Tock] = TICKS
wider_reader: EventReader[Tick | Tock] = EventReader(read_tick)
narrower_notification: Notification[Tick] = Notification("tick", object)


async def calling(peer: Peer) -> None:
    assert_type(await peer.call(MOVE, Point(1)), Point3)
    assert_type(await peer.call(MOVE, Point3(1, 2), timeout=5), Point3)
    assert_type(await peer.call(STOP), None)
    assert_type(await peer.call(COUNT), int)
    assert_type(await peer.call(COUNT, None, timeout=None), int)
    assert_type(await peer.call(FORGET, Point(1), on={"tick": print}, on_progress=print), None)
    assert_type(await peer.call(FIND, Point(1)), Point3 | None)
    assert_type(await peer.call(ANYTHING, Point(1)), Any)
    assert_type(await peer.call(MAYBE), int)
    assert_type(await peer.call(MAYBE, Point(1)), int)
    assert_type(await peer.call(TICKS, Point(1)), int)
    assert_type(await peer.call(MEMORY_APPEND, Append("notes", "milk")), Appended)
    assert_type(await peer.call(CONFIG_GET, ConfigGet("colour")), ConfigValue)
    assert_type(await peer.call(SHUTDOWN), Any)
    found: Point | None = await peer.call(FIND, Point(1))
    assert found is None or found.x


async def streaming(peer: Peer, request: ProviderRequest) -> None:
    run = peer.stream(TICKS, Point(1), timeout=5, idle_timeout=None)
    assert_type(run, CallStream[Tick, int])
    async with run:
        async for event in run:
            assert_type(event, Tick | Gap)
        assert_type(await run.result(), int)
    assert_type(peer.stream(CLOCK), CallStream[Tick | Tock, int])
    assert_type(peer.stream(GATHERED, Point(1)), CallStream[Tick, int])
    assert_type(await peer.stream(GATHERED_UNION, Point(1)).result(), int)
    assert_type(peer.stream(PROVIDER_STREAM, request), CallStream[ProviderEvent, ProviderResult])
    assert_type(peer.stream("ticks", {"x": 1}, events={"tick": Tick}), CallStream[Any, Any])


async def notifying(peer: Peer) -> None:
    assert_type(await peer.notify(TICK, Tick(1)), None)
    assert_type(await peer.notify(OVER), None)
    assert_type(peer.notify_nowait(TICK, Tick(1)), None)
    assert_type(peer.notify_nowait(OVER), None)
    await peer.notify(CONFIG_CHANGED, ConfigChanged("colour", "red", 5))


async def serving(peer: Peer, methods: Registry) -> None:
    for register in (peer, methods):

        @register.handle(MOVE)
        async def move(params: Point, ctx: Context) -> Point3:
            await ctx.progress(1)
            assert_type(ctx.respond(Point3(params.x, 0)), None)
            return Point3(params.x, 0)

        @register.handle(MOVE, thread=True)
        def move_plainly(params: Point) -> Point3:
            return Point3(params.x, 0)

        @register.handle(MOVE)
        def move_nowhere() -> Point3:
            return Point3(0, 0)

        @register.handle(STOP)
        def stop() -> None: ...

        @register.handle(COUNT)
        async def count(params: None) -> int:
            return 1

        @register.handle(TICKS)
        async def ticks(params: Point, ctx: Context) -> int:
            return params.x

        @register.handle(ANYTHING)
        def anything(params: Point) -> list[int]:
            return [params.x]

        @register.on(TICK)
        def tick(params: Tick) -> None: ...

        @register.on(TICK)
        async def tick_later(params: Tick, ctx: Context) -> None: ...

        @register.on(OVER)
        def over() -> None: ...

        assert_type(move_plainly(Point(1)), Point3)
        assert_type(move_nowhere(), Point3)
        assert_type(tick(Tick(1)), None)
        later: Callable[[Point, Context], Coroutine[Any, Any, Point3]] = move
        del later


def blocking(peer: BlockingPeer, ctx: BlockingContext) -> None:
    assert_type(peer.call(MOVE, Point(1)), Point3)
    assert_type(peer.call(COUNT, timeout=5), int)
    assert_type(peer.call("echo"), Any)
    assert_type(peer.call("point", returns=Point), Point)
    assert_type(peer.call("points", returns=list[Point]), list[Point])
    number: int | None = peer.call("perhaps", returns=int | None)
    assert number is None or number > 0
    assert_type(peer.begin(MOVE, Point(1)), PendingCall[Point3])
    assert_type(peer.begin(COUNT, timeout=5).result(), int)
    assert_type(peer.begin("point", returns=Point).result(), Point)
    assert_type(peer.begin("echo").result(), Any)
    assert_type(peer.stream(TICKS, Point(1)), BlockingStream[Tick, int])
    assert_type(peer.stream(GATHERED, Point(1)).result(), int)
    with peer.stream(CLOCK) as run:
        assert_type(iter(run), Iterator[Tick | Tock | Gap])
        assert_type(run.result(), int)
    assert_type(peer.notify(TICK, Tick(1)), None)
    assert_type(peer.notify(OVER), None)
    assert_type(ctx.call(MOVE, Point(1)), Point3)
    assert_type(ctx.call(COUNT), int)
    assert_type(ctx.call("echo", returns=Point), Point)
    assert_type(ctx.notify(TICK, Tick(1)), None)
    assert_type(ctx.respond(), None)

    @peer.handle(MOVE)
    def move(params: Point, ctx: BlockingContext) -> Point3:
        return Point3(params.x, 0)

    @peer.handle("echo")
    def echo(params: Point) -> Point:
        return params

    @peer.on(TICK)
    def tick(params: Tick) -> None: ...

    assert_type(echo(Point(1)), Point)


def deciding(gate: Gate) -> None:
    assert_type(gate.decide("move", MOVE.requires, [gate]), Decision)
    assert_type(gate.decide("move", None).allowed, bool | None)
    assert_type(Grants.of(["memory.read"], deny=()), Grants)
    gate.subscribe(print)()
    Gate("notes", Grants(), audit=print, policy=lambda decision: decision.own_authority)
