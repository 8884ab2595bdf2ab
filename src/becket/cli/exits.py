"""What the exit codes of `becket` mean, and which of them an error is. One table, for the page about them too."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from becket.errors import (
    BadCapabilities,
    BadFile,
    BadGrants,
    BadValue,
    BecketError,
    CallTimeout,
    CircuitOpen,
    ConnectionLost,
    ExtensionRefused,
    HandshakeFailed,
    Meaning,
    NotDeclared,
    NotRunning,
    ProviderDisabled,
    RemoteError,
    ReservedPermission,
    RpcError,
    StartFailed,
    StoreError,
    StoreUnavailable,
    ToolBlocked,
    UnknownPermission,
)

__all__ = ["MEANINGS", "Exit", "exit_of"]


class Exit(IntEnum):
    """How a command has ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    NOT_RUNNING = 5
    FILES = 6
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 and SIGINT, as a shell counts
    READER_GONE = 141  # 128 and SIGPIPE
    TERMINATED = 143  # 128 and SIGTERM


MEANINGS: Final = {
    Exit.DONE: "All is well.",
    Exit.FAILED: "It was tried and has failed: a call was answered with an error, or what was looked at is not right.",
    Exit.USAGE: "The command line, or a value in it, cannot be used. Nothing was done.",
    Exit.NOT_FOUND: "There is no such extension, tool, command, model, schema or record.",
    Exit.DENIED: "Somebody has to agree first: a permission, an extension or a provider is not granted or trusted.",
    Exit.NOT_RUNNING: "An extension could not be started, has died, or did not answer in time.",
    Exit.FILES: "A file cannot be read or written, or another program has it.",
    Exit.BUG: "A mistake in becket itself; `becket --debug` shows where.",
    Exit.INTERRUPTED: "Ctrl-C.",
    Exit.READER_GONE: "The program that reads the output has ended, as in `becket list | head -1`.",
    Exit.TERMINATED: "SIGTERM or SIGHUP.",
}

DEAD: Final = (BadCapabilities, CallTimeout, CircuitOpen, ConnectionLost, HandshakeFailed, NotRunning, StartFailed)
FILES: Final = (BadFile, BadGrants, StoreError, StoreUnavailable, OSError)
WRONG_VALUES: Final = (BadValue, ReservedPermission, UnknownPermission)


def exit_of(error: BaseException) -> Exit:
    """Returns the code for what a command has failed with."""
    match error:
        case BaseExceptionGroup():
            return exit_of(error.exceptions[0])
        case NotDeclared():
            return Exit.NOT_FOUND
        case RemoteError(meaning=Meaning.PERMISSION_DENIED) | RpcError(meaning=Meaning.PERMISSION_DENIED):
            return Exit.DENIED
        case ExtensionRefused() | ProviderDisabled() | ToolBlocked():
            return Exit.DENIED
        case _ if isinstance(error, DEAD):
            return Exit.NOT_RUNNING
        case _ if isinstance(error, FILES):
            return Exit.FILES
        case _ if isinstance(error, WRONG_VALUES):
            return Exit.USAGE
        case BecketError():
            return Exit.FAILED
        case _:
            return Exit.BUG
