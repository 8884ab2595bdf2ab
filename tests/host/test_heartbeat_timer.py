"""The heartbeats of many extensions: each continues, whatever becomes of the others."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from tests.peer.scripted import settled

from becket import Peer
from becket.errors import ConnectionLost, NotSupported
from becket.host.heartbeat import HeartbeatDecision, HeartbeatPolicy, Liveness
from becket.host.heartbeat_timer import Heartbeats
from becket.peer.loops.async_loops import current_loop
from becket.testing import memory_pair

pytestmark = pytest.mark.loops

POLICY = HeartbeatPolicy(every=0.02, slow_after=0.02, dead_after=0.1, stalled_after=1000.0)


class Heart:
    """A peer that a test plays, and the reports of its heartbeat."""

    def __init__(self, *, responds: bool = True) -> None:
        self.last_received_at = 0.0
        self.pings = 0
        self.beats: list[HeartbeatDecision] = []
        self.pinged_twice = anyio.Event()
        self._responds = responds

    def ping_nowait(self) -> None:
        self.pings += 1
        if self._responds:
            self.last_received_at = anyio.current_time()
        if self.pings == 2:
            self.pinged_twice.set()

    async def keep(self, heartbeats: Heartbeats) -> None:
        await heartbeats.keep(cast("Any", self), POLICY, self.beats.append)


async def test_each_of_many_is_pinged_again_and_again() -> None:
    loop = await current_loop()
    hearts = [Heart() for _ in range(250)]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            heartbeats = Heartbeats(loop)
            for heart in hearts:
                tasks.start_soon(heart.keep, heartbeats)
            for heart in hearts:
                await heart.pinged_twice.wait()
            tasks.cancel_scope.cancel()
    loop.close()
    assert {beat.liveness for heart in hearts for beat in heart.beats} == {Liveness.ALIVE}


async def test_a_dead_child_ends_alone() -> None:
    loop = await current_loop()
    alive, dead = Heart(), Heart(responds=False)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            heartbeats = Heartbeats(loop)
            tasks.start_soon(alive.keep, heartbeats)
            await dead.keep(heartbeats)
            alive.pings, alive.pinged_twice = 0, anyio.Event()
            await alive.pinged_twice.wait()
            tasks.cancel_scope.cancel()
    loop.close()
    assert dead.pings == 1
    assert [beat.liveness for beat in dead.beats][-1] is Liveness.DEAD
    assert Liveness.DEAD not in {beat.liveness for beat in alive.beats}


async def test_children_added_later_are_watched_as_well() -> None:
    loop = await current_loop()
    first, second = Heart(), Heart()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            heartbeats = Heartbeats(loop)
            tasks.start_soon(first.keep, heartbeats)
            await first.pinged_twice.wait()
            tasks.start_soon(second.keep, heartbeats)
            await second.pinged_twice.wait()
            tasks.cancel_scope.cancel()
    loop.close()


async def test_the_response_to_a_ping_without_a_waiter_is_received() -> None:
    async with memory_pair(dialect="native") as (left, _):
        before = left.last_received_at
        left.ping_nowait()
        await settled()
        assert left.last_received_at > before
        assert left.in_flight == 0
        await left.aclose()
        with pytest.raises(ConnectionLost):
            left.ping_nowait()


async def test_no_ping_is_sent_without_the_feature() -> None:
    async with memory_pair() as (left, _):
        peer: Peer = left
        with pytest.raises(NotSupported):
            peer.ping_nowait()
