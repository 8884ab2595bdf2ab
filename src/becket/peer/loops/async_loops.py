"""Selects the loop of the running program: asyncio or trio.

Everything above is written once, with callbacks for bytes and timers and a future for each call. Loops contain no
protocol rules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from becket.errors import StartFailed

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = ["current_loop", "loop_for_start", "loop_time"]


async def current_loop() -> Loop:
    """Returns the running event loop, ready for one link."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            from becket.peer.loops.trio_loop import TrioLoop

            return await TrioLoop().start()
    from becket.peer.loops.asyncio_loop import AsyncioLoop

    return AsyncioLoop()


async def loop_for_start(program: str) -> Loop:
    """Returns the running event loop for the link to a program that is to be started.

    Raises:
        StartFailed: there is no descriptor left to import it, or to use it.
    """
    try:
        return await current_loop()
    except OSError as error:
        raise StartFailed(program, f"the event loop cannot be used: {error}") from error


def loop_time() -> float:
    """Returns the time of the running event loop. Also in a callback, where anyio cannot detect the loop."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return trio.current_time()
    import asyncio

    return asyncio.get_running_loop().time()
