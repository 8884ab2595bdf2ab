"""Divides long work on a loop into slices of some milliseconds, so that calls and other extensions go on between them.

The starts of all extensions of a host share one `Slices`: two hundred processes are spawned, and two hundred handshakes
decoded, in as many iterations of the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread

__all__ = ["Slices"]

SLICE: Final = 0.005  # seconds of CPU: a tenth of what an iteration may take, since its last step may be a long one


class Slices:
    """Gives the loop to one task at a time for such work: `async with slices: ...`, with a `pause` now and then
    within it."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._began = 0.0
        self._preparing = anyio.Lock()
        self._prepared: set[Callable[[], object]] = set()

    async def __aenter__(self) -> Slices:
        await self._lock.acquire()
        self._began = time.thread_time()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()  # the next one goes on in the next iteration

    async def take_turn(self) -> None:
        """Waits for a slice of its own, which goes on until the next wait."""
        async with self:
            pass

    async def prepare(self, function: Callable[[], object]) -> None:
        """Runs in a worker thread, and once for all, what takes long and cannot be divided: an import, for example."""
        async with self._preparing:
            if function not in self._prepared:
                await anyio.to_thread.run_sync(function)
                self._prepared.add(function)

    async def pause(self) -> None:
        """Yields to the loop once, if this slice is used up."""
        if time.thread_time() - self._began >= SLICE:
            await anyio.lowlevel.checkpoint()
            self._began = time.thread_time()
