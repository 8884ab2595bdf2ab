"""The entry point of the program `becket`: what has to happen before the command line is loaded.

Ctrl-C while modules are imported ends the program without a traceback. Standard streams that are closed become the null
device: their numbers would go to the next files that are opened, and children would get those as their own.
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
    is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # `nohup` and shells may ignore it
    if is_interruptible:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))  # nothing is open yet
    open_standard_streams()
    from becket.cli.main import main as run

    if is_interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def open_standard_streams() -> None:
    """Opens the null device for each of stdin, stdout and stderr that was closed when this program began.

    `sys.__stdout__` and the like stay None: a program that needs a pipe there can tell that it has none."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)  # gets the lowest number: this one, unless a file was opened under it
        os.set_inheritable(null, null == fd)
        setattr(sys, name, os.fdopen(null, "w" if fd else "r", encoding="utf-8", closefd=False))
