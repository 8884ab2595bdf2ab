"""Wrong uses of descriptors, which both type checkers must see: an ignore that nothing needs is an error. Never run."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

import msgspec
from msgspec import Raw, Struct

from becket import Context, Peer, Registry
from becket.blocking import BlockingPeer
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision


class Point(Struct):
    x: int


class Point3(Point):
    z: int


class Tick(Struct):
    n: int


def read_tick(raw: Raw) -> Tick:
    return msgspec.json.decode(raw, type=Tick)


class Total:
    def __init__(self, params: Point) -> None: ...

    def on_response(self, response: Raw, /) -> None: ...

    def on_event(self, event: Tick, /) -> bool:
        return True

    def result(self) -> str:
        return ""


def stop(params: Tick, reason: str) -> tuple[Method[Point, Point3], Point]:
    return MOVE, Point(1)


MOVE = Method("move", Point, Point3)
COUNT = Method("count", None, int)
TICK = Notification("tick", Tick)
OVER = Notification("over", None)
TICKS = Stream("ticks", Point, int, events={"tick": EventReader(read_tick)})


def describing() -> None:
    wider_params: Method[object, Point3] = MOVE  # type: ignore[assignment]
    narrower_result: Method[Point, int] = MOVE  # type: ignore[assignment]
    wider_notification: Notification[object] = TICK  # type: ignore[assignment]
    other_events: Stream[Point, int, Point] = TICKS  # type: ignore[assignment]
    del wider_params, narrower_result, wider_notification, other_events
    Method(5, Point, Point)  # type: ignore[call-overload]
    Method("move", Point)  # type: ignore[call-overload]
    Method("move", Point, Point, "memory.read")  # type: ignore[call-overload]
    Stream("ticks", Point, int)  # type: ignore[call-overload]
    EventReader(5)  # type: ignore[arg-type]
    tick = {"tick": EventReader(read_tick)}
    other_result: Stream[Point, int, Tick] = Stream("t", Point, int, events=tick, gather=Total)  # type: ignore[arg-type]
    other_params: Stream[Tick, str, Tick] = Stream("t", Tick, str, events=tick, gather=Total)  # type: ignore[arg-type]
    no_cancel: Stream[Point, int, Tick] = Stream("t", Point, int, events=tick, cancel=stop)  # type: ignore[arg-type]
    Stream("t", Point, str, events=tick, gather=Point)  # type: ignore[arg-type]
    Stream("t", Point, str, events=tick, cancel=read_tick)  # type: ignore[arg-type]
    del other_result, other_params, no_cancel


async def calling(peer: Peer) -> None:
    await peer.call(MOVE)  # type: ignore[arg-type]
    await peer.call(MOVE, {"x": 1})  # type: ignore[misc]
    await peer.call(MOVE, Tick(1))  # type: ignore[misc]
    await peer.call(COUNT, Point(1))  # type: ignore[misc]
    await peer.call(MOVE, Point(1), returns=Point)  # type: ignore[call-overload]
    await peer.call(MOVE, Point(1), timeout="5")  # type: ignore[call-overload]
    await peer.call(TICK, Tick(1))  # type: ignore[call-overload]
    (await peer.call(MOVE, Point(1))).y  # type: ignore[attr-defined]  # noqa: B018
    text: str = await peer.call(MOVE, Point(1))  # type: ignore[arg-type]
    number: str = await peer.call(COUNT)  # type: ignore[arg-type]
    del text, number


async def streaming(peer: Peer) -> None:
    peer.stream(TICKS)  # type: ignore[arg-type]
    peer.stream(TICKS, Tick(1))  # type: ignore[misc]
    peer.stream(MOVE, Point(1))  # type: ignore[call-overload]
    peer.stream(TICKS, Point(1), events={"tick": Tick})  # type: ignore[call-overload]
    async with peer.stream(TICKS, Point(1)) as run:
        async for event in run:
            event.x  # type: ignore[union-attr]  # noqa: B018
        (await run.result()).upper()  # type: ignore[attr-defined]


async def notifying(peer: Peer) -> None:
    await peer.notify(TICK)  # type: ignore[arg-type]
    await peer.notify(TICK, Point(1))  # type: ignore[misc]
    await peer.notify(OVER, Tick(1))  # type: ignore[misc]
    await peer.notify(MOVE, Point(1))  # type: ignore[call-overload]
    peer.notify_nowait(TICK, {"n": 1})  # type: ignore[misc]


def serving(peer: Peer, methods: Registry) -> None:
    peer.handle(TICK)  # type: ignore[call-overload]
    peer.on(MOVE)  # type: ignore[call-overload]
    methods.handle(TICK)  # type: ignore[call-overload]
    methods.on(MOVE)  # type: ignore[call-overload]

    @peer.handle(MOVE)  # type: ignore[arg-type]
    def other_params(params: Tick) -> Point3:
        return Point3(params.n, 0)

    @methods.handle(MOVE)  # type: ignore[arg-type]
    def other_result(params: Point) -> Point:
        return params

    @peer.handle(MOVE)  # type: ignore[arg-type]
    async def other_result_later(params: Point, ctx: Context) -> Point:
        return params

    @peer.handle(MOVE)  # type: ignore[arg-type]
    def too_many(params: Point, ctx: Context, more: int) -> Point3:
        return Point3(params.x, more)

    @peer.handle(COUNT)  # type: ignore[arg-type]
    def params_of_none(params: Point) -> int:
        return params.x

    @methods.on(TICK)  # type: ignore[arg-type]
    def other_event(params: Point) -> None: ...


def blocking(peer: BlockingPeer) -> None:
    peer.call(MOVE, Tick(1))  # type: ignore[misc]
    peer.call(MOVE, Point(1)).y  # type: ignore[attr-defined]  # noqa: B018
    peer.call("m", returns=int).upper()  # type: ignore[attr-defined]
    text: str = peer.call("m", returns=Point)  # type: ignore[assignment]
    peer.begin(MOVE)  # type: ignore[arg-type]
    peer.begin(MOVE, Point(1)).result().y  # type: ignore[attr-defined]  # noqa: B018
    peer.begin("m", returns=int).result().upper()  # type: ignore[attr-defined]
    peer.stream(TICKS, Point(1)).result().upper()  # type: ignore[attr-defined]
    peer.notify(TICK, Point(1))  # type: ignore[misc]
    del text

    @peer.handle(MOVE)  # type: ignore[arg-type]
    async def later(params: Point) -> Point3:
        return Point3(params.x, 0)


def deciding(gate: Gate, decision: Decision, grants: Grants) -> None:
    gate.decide(MOVE, None)  # type: ignore[arg-type]
    gate.resolve_prompt("memory.read")  # type: ignore[call-arg]
    Gate("notes", ["memory.read"])  # type: ignore[arg-type]
    Gate("notes", grants, policy=lambda: True)  # type: ignore[arg-type, misc]
    decision.allowed = True  # type: ignore[misc]
    grants.allow = frozenset()  # type: ignore[misc]
