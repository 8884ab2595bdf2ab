"""Prompts the user at the terminal, with a timeout and without a thread.

A thread that blocks on a line cannot be interrupted; here Ctrl-C and the timeout end the prompt at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable

from becket.host.starting.consent_request import ConsentRequest

__all__ = ["approve_all", "build_terminal_prompt", "discard_typed", "is_interactive", "read_answer"]

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def is_interactive() -> bool:
    """Returns whether stdin and stderr are a terminal, so that the user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def approve_all(question: str, request: ConsentRequest) -> bool:
    """Consents to everything, for `--yes`."""
    return True


def build_terminal_prompt(
    timeout: float, read: Callable[[str], Awaitable[str | None]] | None = None
) -> Callable[[str, ConsentRequest], Awaitable[bool | None]]:
    """Returns a function that prompts for consent at this terminal.

    It returns None after `timeout` seconds, and for an answer other than yes or no, such as an empty line: a refusal is
    stored, so it must be explicit. `read` replaces `read_answer` in a command that draws on the terminal."""
    import anyio

    from becket.cli.support.output import print_message

    lock = anyio.Lock()

    async def prompt(question: str, request: ConsentRequest) -> bool | None:
        async with lock:
            with anyio.move_on_after(timeout):
                line = await (read or read_answer)(question)
                return ANSWERS.get((line or "").lower())
        print_message("no decision in time: refused")
        return None

    return prompt


def discard_typed() -> None:
    """Discards keys that were typed before a prompt is shown: they are no decision."""
    import termios

    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_answer(question: str) -> str | None:
    """Writes a question to stderr and returns the typed line, or None at the end of input."""
    import anyio

    from becket.cli.support.output import print_message

    discard_typed()
    print_message(f"{question} [y/N]")
    await anyio.wait_readable(sys.stdin)
    data = os.read(sys.stdin.fileno(), 4096)
    return data.decode(errors="replace").strip() if data else None
