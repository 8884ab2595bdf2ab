"""Prompts the user at the terminal, with a timeout and without a thread.

A thread that waits for a line cannot be ended; here Ctrl-C and a timeout end the question at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable

from becket.host.starting.consent_request import ConsentRequest

__all__ = ["approve_all", "build_terminal_prompt", "discard_typed", "is_interactive", "read_answer"]

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def is_interactive() -> bool:
    """Returns whether there is somebody to ask: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def approve_all(question: str, request: ConsentRequest) -> bool:
    """Says yes to everything: somebody has asked for that on the command line."""
    return True


def build_terminal_prompt(
    patience: float, read: Callable[[str], Awaitable[str | None]] | None = None
) -> Callable[[str, ConsentRequest], Awaitable[bool | None]]:
    """Returns what asks at this terminal. None is no answer: for `patience` seconds, or something else than yes or no,
    such as an empty line. A refusal is kept, and should be one.

    `read` asks a question and returns the line that was typed, where another program part draws on the terminal."""
    import anyio

    from becket.cli.support.output import print_message

    lock = anyio.Lock()

    async def prompt(question: str, request: ConsentRequest) -> bool | None:
        async with lock:
            with anyio.move_on_after(patience):
                line = await (read or read_answer)(question)
                return ANSWERS.get((line or "").lower())
        print_message("no answer: no")
        return None

    return prompt


def discard_typed() -> None:
    """Discards keys that were typed before a question is shown: they are no answer to it."""
    import termios

    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_answer(question: str) -> str | None:
    """Writes a question to stderr and returns the line that was typed; None at the end of the input."""
    import anyio

    from becket.cli.support.output import print_message

    discard_typed()
    print_message(f"{question} [y/N]")
    await anyio.wait_readable(sys.stdin)
    data = os.read(sys.stdin.fileno(), 4096)
    return data.decode(errors="replace").strip() if data else None
