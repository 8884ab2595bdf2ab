"""Exit codes of `becket`, their meanings, and the code for each error."""

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

__all__ = ["MEANINGS", "ExitCode", "exit_code_for"]


class ExitCode(IntEnum):
    """Exit code of a command."""

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
    ExitCode.DONE: "Success.",
    ExitCode.FAILED: "Failure: a call returned an error, or a check found one.",
    ExitCode.USAGE: "The command line, or a value in it, is invalid. Nothing was done.",
    ExitCode.NOT_FOUND: "There is no such extension, tool, command, model, schema or record.",
    ExitCode.DENIED: "Consent is missing: a permission is not granted, or an extension or provider is not approved.",
    ExitCode.NOT_RUNNING: "An extension could not be started, has exited, or did not respond in time.",
    ExitCode.FILES: "A file cannot be read or written, or is in use by another program.",
    ExitCode.BUG: "A bug in becket; `becket --debug` shows the traceback.",
    ExitCode.INTERRUPTED: "Ctrl-C.",
    ExitCode.READER_GONE: "The program that reads the output, such as `head`, has ended.",
    ExitCode.TERMINATED: "SIGTERM or SIGHUP.",
}

NOT_RUNNING_ERRORS: Final = (
    BadCapabilities,
    CallTimeout,
    CircuitOpen,
    ConnectionLost,
    HandshakeFailed,
    NotRunning,
    StartFailed,
)
FILE_ERRORS: Final = (BadFile, BadGrants, StoreError, StoreUnavailable, OSError)
USAGE_ERRORS: Final = (BadValue, ReservedPermission, UnknownPermission)


def exit_code_for(error: BaseException) -> ExitCode:
    """Returns the exit code for an error."""
    match error:
        case BaseExceptionGroup():
            return exit_code_for(error.exceptions[0])
        case NotDeclared():
            return ExitCode.NOT_FOUND
        case RemoteError(meaning=Meaning.PERMISSION_DENIED) | RpcError(meaning=Meaning.PERMISSION_DENIED):
            return ExitCode.DENIED
        case ExtensionRefused() | ProviderDisabled() | ToolBlocked():
            return ExitCode.DENIED
        case _ if isinstance(error, NOT_RUNNING_ERRORS):
            return ExitCode.NOT_RUNNING
        case _ if isinstance(error, FILE_ERRORS):
            return ExitCode.FILES
        case _ if isinstance(error, USAGE_ERRORS):
            return ExitCode.USAGE
        case BecketError():
            return ExitCode.FAILED
        case _:
            return ExitCode.BUG
