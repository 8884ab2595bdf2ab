"""Children that start and end in great number leave nothing behind."""

from __future__ import annotations

import gc
import os
import tracemalloc
from itertools import pairwise

import anyio
import pytest
from tests.peer.children import QUICK

from becket import Peer, PeerCrashed
from becket.testing import check_leaks, check_task_leaks

pytestmark = [pytest.mark.loops, pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(240)]

CYCLES = int(os.environ.get("BECKET_CRASH_CYCLES", "50"))  # `make prove` runs thousands


async def crash_by_itself() -> None:
    async with Peer.connect_process(["true"], limits=QUICK) as peer:
        with pytest.raises(PeerCrashed) as caught:
            await peer.call("x")
    assert caught.value.exit_code == 0


async def crash_when_killed() -> None:
    async with Peer.connect_process(["cat"], limits=QUICK) as peer:
        assert peer.process is not None
        peer.process.kill()
        assert isinstance(await peer.wait_closed(), PeerCrashed)


async def close() -> None:
    async with Peer.connect_process(["cat"], limits=QUICK) as peer:
        assert not peer.is_closed


@pytest.mark.parametrize("cycle", [crash_by_itself, crash_when_killed, close])
async def test_cycles_of_start_and_end_leave_nothing_behind(cycle: object) -> None:
    assert callable(cycle)
    with check_leaks():
        async with check_task_leaks():
            for _ in range(CYCLES):
                with anyio.fail_after(60):
                    await cycle()


@pytest.mark.parametrize("cycle", [crash_by_itself, crash_when_killed])
async def test_memory_does_not_grow_with_the_number_of_crashes(cycle: object) -> None:
    assert callable(cycle)
    part = max(20, CYCLES // 4)

    async def memory_after(cycles: int) -> int:
        for _ in range(cycles):
            await cycle()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        sizes = [await memory_after(part) for _ in range(4)]  # caches fill in the first round
    finally:
        tracemalloc.stop()

    # A leak shows in every round; what a cache or a log takes shows in one.
    assert min(after - before for before, after in pairwise(sizes)) / part < 1024
