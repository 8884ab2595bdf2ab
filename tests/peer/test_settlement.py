"""Whatever happens to a link, each call settles exactly once and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, example, given, settings, strategies as st
from msgspec import Struct

from becket import (
    BatchCall,
    Busy,
    CallTimeout,
    ConnectionLost,
    Context,
    Limits,
    Meaning,
    Peer,
    RemoteError,
    RpcError,
)
from becket.testing import (
    CutReads,
    CutWrites,
    DelayReads,
    Fault,
    SplitReads,
    TornWrites,
    memory_pair,
    run_in_virtual_time,
)

LIMITS = Limits(outbound_calls=3, inbound_requests=5)
SECONDS = st.sampled_from([0.0, 0.5, 2.0, 30.0])
ENDS = st.sampled_from([0, 1])
METHODS = ["echo", "wait", "fail", "nest", "swallow", "stream", "events", "batch"]


class Call(Struct, frozen=True):
    """Starts a call."""

    side: int
    method: str
    timeout: float | None


class Cancel(Struct, frozen=True):
    """Leaves the scope of one of the calls so far."""

    which: int


class Close(Struct, frozen=True):
    side: int


class Turns(Struct, frozen=True):
    """Lets the loop run for a while."""

    count: int


class Sleep(Struct, frozen=True):
    seconds: float


class Release(Struct, frozen=True):
    """Lets waiting handlers continue."""


STEPS = st.one_of(
    st.builds(Call, ENDS, st.sampled_from(METHODS), st.one_of(st.none(), SECONDS)),
    st.builds(Call, ENDS, st.sampled_from(METHODS), st.one_of(st.none(), SECONDS)),
    st.builds(Cancel, st.integers(0, 9)),
    st.builds(Turns, st.integers(0, 8)),
    st.builds(Sleep, SECONDS),
    st.just(Release()),
)
HARMLESS = st.one_of(
    st.none(),
    st.builds(lambda every: lambda end: SplitReads(end, every=every), st.integers(1, 60)),
    st.builds(lambda turns: lambda end: DelayReads(end, turns=turns), st.integers(1, 5)),
    st.builds(lambda size: lambda end: TornWrites(end, size=size), st.integers(5, 60)),
)
CUTS = st.one_of(
    HARMLESS,
    st.builds(lambda cut: lambda end: CutReads(end, cut_after=cut), st.integers(0, 1500)),
    st.builds(lambda cut: lambda end: CutWrites(end, cut_after=cut), st.integers(0, 1500)),
)


class Record:
    """One call and its outcome."""

    def __init__(self, number: int, ask: Call) -> None:
        self.number = number
        self.ask = ask
        self.scope = anyio.CancelScope()
        self.outcomes: list[object] = []

    async def run(self, peer: Peer) -> None:
        with self.scope:
            try:
                self.outcomes.append(await self._call(peer))
            except (RemoteError, CallTimeout, ConnectionLost, Busy) as error:
                self.outcomes.append(error)
        if self.scope.cancelled_caught:
            self.outcomes.append("cancelled")

    async def _call(self, peer: Peer) -> object:
        method, timeout, params = self.ask.method, self.ask.timeout, {"n": self.number}
        match method:
            case "stream":
                async with peer.stream("count", params, timeout=timeout) as run:
                    events = [event async for event in run]
                    assert events == list(range(self.number))
                    return await run.result()
            case "events":
                seen: list[int] = []
                result = await peer.call("count", params, timeout=timeout, on_progress=seen.append)
                assert seen == list(range(self.number))
                return result
            case "batch":
                [one, other] = await peer.batch([BatchCall("echo", params), BatchCall("nest", params)], timeout=timeout)
                for outcome in (one, other):
                    if isinstance(outcome, Exception):
                        raise outcome
                assert (one, other) == (params, {"n": self.number + 1})
                return one
            case _:
                return await peer.call(method, params, timeout=timeout)

    def check(self) -> None:
        """Raises unless it has settled once, with an allowed outcome."""
        [outcome] = self.outcomes
        match outcome:
            case RemoteError(meaning=meaning):
                expected = {Meaning.BUSY, Meaning.TIMEOUT, Meaning.INTERNAL, Meaning.CANCELLED, Meaning.NOT_READY}
                assert meaning in (expected | {Meaning.QUOTA} if self.ask.method == "fail" else expected)
            case CallTimeout() | Busy():
                # A stream has an idle timeout, which also bounds how long it waits for a slot.
                assert self.ask.timeout is not None or self.ask.method in ("nest", "stream")
            case ConnectionLost():
                pass
            case "cancelled":
                assert self.scope.cancel_called
            case _:
                added = 1 if self.ask.method == "nest" else 0
                assert outcome == {"n": self.number + added}
                assert self.ask.method != "fail"


def serve(peer: Peer, released: Callable[[], anyio.Event]) -> None:
    peer.handle("echo")(lambda params: params)

    @peer.handle("wait")
    async def wait(params: dict[str, int]) -> dict[str, int]:
        await released().wait()
        return params

    @peer.handle("fail")
    async def fail(params: dict[str, int]) -> None:
        if params["n"] % 2:
            await anyio.lowlevel.checkpoint()
        raise RpcError(Meaning.QUOTA)

    @peer.handle("nest")
    async def nest(params: dict[str, int], ctx: Context) -> dict[str, int]:
        echoed = await ctx.call("echo", params)
        return {"n": echoed["n"] + 1}

    @peer.handle("swallow")
    async def swallow(params: dict[str, int]) -> dict[str, int]:
        try:
            await released().wait()
        except anyio.get_cancelled_exc_class():
            pass
        return params

    @peer.handle("count")
    async def count(params: dict[str, int], ctx: Context) -> dict[str, int]:
        for number in range(params["n"]):
            await ctx.progress(number)
        return params


async def play(
    steps: list[Any], left: Fault | None, right: Fault | None, dialect: str, *, may_end: bool
) -> list[Record]:
    """Runs the steps, and returns the calls that were made when all of them have settled."""
    records: list[Record] = []
    event = anyio.Event()

    def released() -> anyio.Event:
        return event

    async with memory_pair(left=left, right=right, dialect=dialect, limits=LIMITS) as peers:
        for peer in peers:
            serve(peer, released)
        with anyio.fail_after(10_000):
            async with anyio.create_task_group() as tasks:
                for step in steps:
                    match step:
                        case Call(side=side):
                            records.append(Record(len(records), step))
                            tasks.start_soon(records[-1].run, peers[side])
                        case Cancel(which=which):
                            if which < len(records):
                                records[which].scope.cancel()
                        case Turns(count=count):
                            for _ in range(count):
                                await anyio.lowlevel.checkpoint()
                        case Sleep(seconds=seconds):
                            await anyio.sleep(seconds)
                        case Release():
                            event.set()
                            event = anyio.Event()
                        case Close(side=side):
                            tasks.start_soon(peers[side].aclose)
                if may_end:
                    await anyio.sleep(100)
                    for peer in peers:
                        tasks.start_soon(peer.aclose)
                else:
                    # Time and the handlers' end settle what can settle by itself; the rest is left by its caller.
                    while any(not record.outcomes for record in records):
                        event.set()
                        event = anyio.Event()
                        await anyio.sleep(1)
            if not may_end:
                await check_that_nothing_is_left(peers)
    return records


async def check_that_nothing_is_left(peers: tuple[Peer, Peer]) -> None:
    """Uses all slots for calls in both directions: a leftover in a table would take a slot."""
    await anyio.sleep(100)  # handlers of abandoned calls end

    async def call(peer: Peer, number: int) -> None:
        assert await peer.call("echo", {"n": number}, timeout=50) == {"n": number}

    async with anyio.create_task_group() as tasks:
        for peer in peers:
            assert not peer.is_closed
            for number in range(LIMITS.outbound_calls):
                tasks.start_soon(call, peer, number)


def run_on_asyncio(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return run_in_virtual_time(main)


def run_on_trio(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


RUNNERS = pytest.mark.parametrize("run", [run_on_asyncio, run_on_trio], ids=["asyncio", "trio"])
MODEST = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@RUNNERS
@MODEST
@example([*[Call(0, "wait", None)] * 3, Call(0, "stream", None)], None, None, "plain")
@given(
    st.lists(st.one_of(STEPS, STEPS, STEPS, st.builds(Close, ENDS)), max_size=25),
    CUTS,
    CUTS,
    st.sampled_from(["plain", "native"]),
)
def test_each_call_settles_exactly_once_whatever_happens_to_the_link(
    run: Callable[..., Any], steps: list[Any], left: Fault | None, right: Fault | None, dialect: str
) -> None:
    records: list[Record] = run(lambda: play(steps, left, right, dialect, may_end=True))
    for record in records:
        record.check()


@RUNNERS
@MODEST
@given(st.lists(STEPS, max_size=25), HARMLESS, HARMLESS, st.sampled_from(["plain", "native"]))
def test_a_link_that_lives_has_nothing_left_of_calls_that_have_settled(
    run: Callable[..., Any], steps: list[Any], left: Fault | None, right: Fault | None, dialect: str
) -> None:
    records: list[Record] = run(lambda: play(steps, left, right, dialect, may_end=False))
    for record in records:
        record.check()
