"""Starts threads that the end of the program does not wait for.

`_thread` instead of `threading`, which waits until a thread runs: on a busy machine that delays the start of a program.
"""

from __future__ import annotations

import atexit
from _thread import allocate_lock, start_new_thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["start_daemon_thread"]

MAX_START: Final = 5.0  # seconds; in a copy made by `fork` the thread never begins


def start_daemon_thread(function: Callable[[], object]) -> None:
    """Runs a function in a thread that ends with the program.

    The end of the program waits until the thread has begun: CPython 3.11 crashes if a thread begins after the
    interpreter has ended."""
    beginning = allocate_lock()
    beginning.acquire()

    def run() -> None:
        beginning.release()
        function()

    atexit.register(beginning.acquire, True, MAX_START)
    start_new_thread(run, ())
