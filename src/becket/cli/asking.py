"""Asks the person at the terminal: one question at a time, on stderr, and waits for the answer without a thread.

A thread that waits for a line cannot be ended; here Ctrl-C and a timeout end the question at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from becket.methods.permissions import Decision
from becket.peer.admission import Ask

__all__ = ["agree", "ask_at_terminal", "can_ask"]

YES = ("y", "yes")


def can_ask() -> bool:
    """Returns whether there is somebody to ask: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agree(question: str, decision: Decision) -> bool:
    """Says yes to everything: somebody has asked for that on the command line."""
    return True


def ask_at_terminal(pausing: Callable[[], AbstractContextManager[object]] = nullcontext) -> Ask:
    """Returns what asks at this terminal. `pausing` is entered meanwhile: what draws there must not."""
    import anyio

    from becket.cli.output import say

    lock = anyio.Lock()

    async def ask(question: str, decision: Decision) -> bool:
        async with lock:
            with pausing():
                say(f"{question} [y/N]")
                await anyio.wait_readable(sys.stdin)
                line = os.read(sys.stdin.fileno(), 4096)
        return line.decode(errors="replace").strip().lower() in YES

    return ask
