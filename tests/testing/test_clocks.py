"""Virtual time moves only when it is advanced, and a loop that jumps preserves the order of timers."""

from __future__ import annotations

import asyncio

import pytest

from becket import CallTimeout
from becket.testing import VirtualClock, memory_pair, run_in_virtual_time

DAY = 24 * 3600.0


def test_a_virtual_clock_does_not_move_until_it_is_advanced() -> None:
    clock = VirtualClock(100.0)

    assert (clock(), clock.advance(0.5), clock(), clock.advance_to(200.0), clock()) == (
        100.0,
        100.5,
        100.5,
        200.0,
        200.0,
    )


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_virtual_clock_never_goes_backwards(seconds: float) -> None:
    with pytest.raises(ValueError):
        VirtualClock().advance(seconds)


def test_a_day_passes_at_once_and_in_order_on_a_loop_with_virtual_time() -> None:
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(asyncio.get_running_loop().time())

    async def main() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (DAY, 1.0, 0.0, 3600.0, 0.1)))

    run_in_virtual_time(main, VirtualClock(0.0))

    assert woken == pytest.approx([0.0, 0.1, 1.0, 3600.0, DAY])


def test_ready_tasks_run_before_the_next_timer_on_a_loop_with_virtual_time() -> None:
    async def main() -> str:
        return await asyncio.wait_for(asyncio.to_thread(lambda: "from a thread"), timeout=3600)

    clock = VirtualClock()

    assert run_in_virtual_time(main, clock) == "from a thread"
    assert clock() == 0.0  # it stood still while the thread ran


def test_a_call_times_out_in_virtual_time() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with memory_pair() as (left, right):

            @right.handle("sleep")
            async def sleep() -> None:
                await asyncio.sleep(DAY)

            await left.call("sleep", timeout=3600)

    with pytest.raises(CallTimeout):
        run_in_virtual_time(main, clock)

    assert 3600 <= clock() < DAY
