"""Wrong uses, which both type checkers must see: an ignore that nothing needs is an error. Never run."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from msgspec import Struct

from becket import BatchCall, Context, Host, HostSettings, InvalidParams, Limits, Peer, Registry, RpcError
from becket.host import HostConfig


class Point(Struct):
    x: int


async def calling(peer: Peer) -> None:
    await peer.call()  # type: ignore[call-overload]
    await peer.call(5)  # type: ignore[call-overload]
    await peer.call("m", {}, 5)  # type: ignore[call-overload]
    await peer.call("m", timeout="5")  # type: ignore[call-overload]
    await peer.call("m", retries=3)  # type: ignore[call-overload]
    await peer.call("m", on=print)  # type: ignore[call-overload]
    (await peer.call("m", returns=int)).upper()  # type: ignore[attr-defined]
    (await peer.call("m", returns=Point)).y  # type: ignore[attr-defined]  # noqa: B018
    point: Point = peer.call("m", returns=Point)  # type: ignore[assignment]
    text: str = await peer.call("m", returns=Point)  # type: ignore[assignment]
    del point, text


async def notifying(peer: Peer) -> None:
    await peer.notify(5)  # type: ignore[call-overload]
    await peer.notify("m", timeout=5)  # type: ignore[call-overload]
    await peer.notify_nowait("m")  # type: ignore[misc]
    await peer.batch(["m"])  # type: ignore[list-item]
    await peer.batch([BatchCall(5)])  # type: ignore[arg-type]


async def serving(peer: Peer, ctx: Context) -> None:
    peer.handle()  # type: ignore[call-overload]
    peer.handle(5)  # type: ignore[call-overload]
    peer.handle("m")(5)  # type: ignore[type-var]
    peer.handle("m", True)  # type: ignore[call-overload]

    @peer.handle("move")
    def move(params: Point) -> Point:
        return params

    move("text")  # type: ignore[arg-type]
    ctx.progress()  # type: ignore[call-arg, unused-coroutine]
    ctx.deadline = 5.0  # type: ignore[misc]
    peer.is_closed = True  # type: ignore[misc]


async def connecting() -> None:
    Peer.connect_process(["a"], env={"A": 1})  # type: ignore[dict-item]
    Peer.connect_process(["a"], dialect=5)  # type: ignore[arg-type]
    Peer.connect_process(["a"], limits={"frame": 5})  # type: ignore[arg-type]
    Peer.connect_tcp("localhost", "80")  # type: ignore[arg-type]
    peer: Peer = Peer.connect_process(["a"])  # type: ignore[assignment]
    del peer


def hosting(config: HostConfig) -> None:
    Host(["extensions"], grnts={"notes": ["memory.read"]})  # type: ignore[call-arg]
    Host(["extensions"], watch="always")  # type: ignore[arg-type]
    HostSettings.from_config(config, wach="report")  # type: ignore[call-arg]
    HostSettings.from_config(config, audit_bytes="5")  # type: ignore[arg-type]


def failing() -> None:
    RpcError("busy")  # type: ignore[arg-type]
    InvalidParams("it is missing")  # type: ignore[arg-type]
    InvalidParams([("/a",)])  # type: ignore[list-item]


def choosing(methods: Registry, limits: Limits) -> None:
    Limits(5)  # type: ignore[call-arg]
    Limits(frames=5)  # type: ignore[call-arg]
    limits.frame = 5  # type: ignore[misc]
    limits.but(frame="5")  # type: ignore[arg-type]
    methods.remove(5)  # type: ignore[arg-type]
