"""Entry point of the program `becket`: prepares signals and standard streams before the command line is loaded.

Ctrl-C during imports ends the program without a traceback. Closed standard streams become the null device; otherwise
the next opened files would get their numbers, and children would inherit these files as standard streams.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

__all__ = ["main", "open_standard_streams"]

INTERRUPTED = 130  # `Exit.INTERRUPTED`, which is not loaded yet


def main() -> NoReturn:
    """Runs the command line of this process."""
    is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # `nohup` and shells can ignore it
    if is_interruptible:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))  # nothing is open yet
    open_standard_streams()
    from becket.cli.main import main as run

    if is_interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def open_standard_streams() -> None:
    """Opens the null device for each of stdin, stdout and stderr that was closed when this program started.

    `sys.__stdin__`, `sys.__stdout__` and `sys.__stderr__` stay None, so that callers can detect a missing stream."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: `fd`, unless a file already has it
        os.set_inheritable(null, null == fd)
        setattr(sys, name, os.fdopen(null, "w" if fd else "r", encoding="utf-8", closefd=False))
