"""The error hierarchy, the meanings of an error response, and the reasons for a disconnect.

Inside the program an error has a *meaning*; the number exists only on the wire and comes from a dialect's table
(`ERROR_CODES` is the table of JSON-RPC and of becket). A handler raises `RpcError` to respond with an error;
`RemoteError` reports that a call received an error response. The two are unrelated on purpose: the failure of a nested
call must never reach the first caller as if it were the handler's own response.

Messages are built from the fields; `problems` are `(pointer, message)` pairs everywhere. Errors that only a host
raises are in `host_errors`, which is imported at first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import msgspec

from becket._deprecated import keep_renamed
from becket._lazy import lazy_exports
from becket._text import escape, join_problems, quote, truncate_counted

if TYPE_CHECKING:
    from becket.host_errors import (
        BadCapabilities,
        BadFile,
        BadGrants,
        BadSchema,
        CircuitOpen,
        CommandFailed,
        ExtensionRefused,
        HandshakeFailed,
        ManifestError,
        MissingExtra,
        NotDeclared,
        NotRunning,
        PeerCrashed,
        ProviderDisabled,
        QueryTimeout,
        QuotaExceeded,
        ReservedPermission,
        RevocationNotPersistent,
        StoreError,
        StoreInUse,
        StoreUnavailable,
        StreamOverrun,
        ToolBlocked,
        ToolFailed,
        TooManyTurns,
        UnknownPermission,
        VersionMismatch,
    )

__all__ = [
    "ERROR_CODES",
    "JSON_ERRORS",
    "BadCapabilities",
    "BadFile",
    "BadFrame",
    "BadGrants",
    "BadMessage",
    "BadReply",
    "BadSchema",
    "BadValue",
    "BecketError",
    "Busy",
    "CallCancelled",
    "CallTimeout",
    "CircuitOpen",
    "CommandFailed",
    "ConnectionLost",
    "DisconnectReason",
    "ExtensionRefused",
    "FrameTooLarge",
    "HandshakeFailed",
    "InvalidParams",
    "InvalidRequest",
    "LocalProtocolError",
    "ManifestError",
    "Meaning",
    "MethodNotFound",
    "MissingExtra",
    "NotDeclared",
    "NotPermitted",
    "NotRunning",
    "NotSent",
    "NotSupported",
    "PeerCrashed",
    "PermissionDenied",
    "Problem",
    "ProtocolError",
    "ProviderDisabled",
    "QueryTimeout",
    "QuotaExceeded",
    "RemoteError",
    "RemoteProtocolError",
    "RequestCancelled",
    "ReservedPermission",
    "RevocationNotPersistent",
    "RpcError",
    "StartFailed",
    "StoreError",
    "StoreInUse",
    "StoreUnavailable",
    "StreamOverrun",
    "TooManyTurns",
    "ToolBlocked",
    "ToolFailed",
    "Unencodable",
    "UnknownPermission",
    "VersionMismatch",
]

Problem = tuple[str, str]
"""A JSON pointer and what is wrong there."""

JSON_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised when decoding untrusted bytes: invalid JSON, the wrong type, invalid UTF-8 or too deep nesting."""


class Meaning(Enum):
    """What an error response means, whatever number a dialect gives it."""

    PARSE_ERROR = "parse error"
    INVALID_REQUEST = "invalid request"
    UNKNOWN_METHOD = "unknown method"
    INVALID_PARAMS = "invalid params"
    INTERNAL = "internal error"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    BUSY = "busy"
    PERMISSION_DENIED = "permission denied"
    TOO_LARGE = "too large"
    NOT_READY = "not ready"
    QUOTA = "quota exceeded"
    DISK_FULL = "disk full"
    INCOMPATIBLE = "incompatible"
    NOT_SUPPORTED = "not supported"


# -32768..-32000 is full: LSP, MCP, vscode-jsonrpc, jrpc2 and StreamJsonRpc claim parts of it with different meanings.
# Meanings without a number in JSON-RPC and LSP use the range left to applications.
ERROR_CODES: Final[Mapping[Meaning, int]] = MappingProxyType(
    {
        Meaning.PARSE_ERROR: -32700,
        Meaning.INVALID_REQUEST: -32600,
        Meaning.UNKNOWN_METHOD: -32601,
        Meaning.INVALID_PARAMS: -32602,
        Meaning.INTERNAL: -32603,
        Meaning.CANCELLED: -32800,
        Meaning.TIMEOUT: 1001,
        Meaning.BUSY: 1002,
        Meaning.PERMISSION_DENIED: 1003,
        Meaning.TOO_LARGE: 1004,
        Meaning.NOT_READY: 1005,
        Meaning.QUOTA: 1006,
        Meaning.DISK_FULL: 1007,
        Meaning.INCOMPATIBLE: 1008,
        Meaning.NOT_SUPPORTED: 1009,
    }
)


class DisconnectReason(Enum):
    """Why a link ended."""

    LOCAL_CLOSE = "closed by this peer"
    REMOTE_CLOSE = "closed by the other peer"
    STREAM_ERROR = "reading or writing failed"
    LOCAL_VIOLATION = "this peer broke the protocol"
    REMOTE_VIOLATION = "the other peer broke the protocol"
    PROCESS_EXIT = "the process ended"


class BecketError(Exception):
    """Base class of all errors that becket raises on purpose. Can be copied and pickled, whatever its constructor
    takes."""

    def __reduce__(self) -> tuple[object, ...]:
        return rebuild_error, (type(self), self.args, self.__dict__)

    def copy(self) -> Self:
        """Returns a copy to be raised again: with the same cause, and a traceback of its own."""
        error = rebuild_error(type(self), self.args, self.__dict__)
        if hasattr(self, "__notes__"):
            error.__notes__ = [*self.__notes__]
        error.__cause__ = self.__cause__
        return error

    __copy__ = copy


E = TypeVar("E", bound=BecketError)


def rebuild_error(kind: type[E], args: tuple[object, ...], fields: dict[str, object]) -> E:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class NotSupported(BecketError):
    """This platform, event loop or dialect does not support the operation; nothing was sent or started."""

    def __init__(self, what: str, because: str) -> None:
        self.what = what
        self.because = because
        super().__init__(f"{what} is not supported: {because}")


class StartFailed(BecketError):
    """A process could not be started, or exited before it was ready. `because` says which and what to do."""

    def __init__(self, id: str, because: str, *, exit_code: int | None = None, stderr_tail: str = "") -> None:
        self.id = id
        self.because = because
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        super().__init__(f"{id}: {because}")


class BadValue(BecketError):
    """A JSON value does not fit the expected class. Lists all problems, each with its JSON pointer."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"not a valid {what}: {join_problems(self.problems)}")


# -- protocol violations


class ProtocolError(BecketError):
    """A peer violated the protocol. Abstract."""

    def __init__(self, message: str) -> None:
        if type(self) is ProtocolError:
            raise TypeError("ProtocolError is abstract: raise LocalProtocolError or RemoteProtocolError")
        super().__init__(message)


class LocalProtocolError(ProtocolError):
    """The operation is not allowed in this state, or cannot be expressed on the wire."""


class Unencodable(LocalProtocolError):
    """A value cannot be encoded as JSON: unknown type, NaN or infinity, lone surrogate, circular reference."""


class RemoteProtocolError(ProtocolError):
    """The other peer violated the protocol; the connection is closed."""


class BadFrame(RemoteProtocolError):
    """Bytes that are not a valid frame. `found` quotes them, truncated and escaped."""

    def __init__(self, problem: str, *, found: bytes | bytearray = b"", hint: str = "") -> None:
        self.problem = problem
        self.found = quote(found)
        self.hint = hint
        text = f"{problem}: {self.found}" if found else problem
        super().__init__(f"{text} ({hint})" if hint else text)


class FrameTooLarge(BadFrame):
    """A frame, line or header exceeds its limit. It was not held in memory."""

    def __init__(self, *, size: int | None, limit: int, what: str = "frame") -> None:
        self.size = size
        self.limit = limit
        self.what = what
        announced = "endless" if size is None else "2**64 bytes or more" if size >= 2**64 else f"{size} bytes"
        super().__init__(f"{what} too large: {announced}, the limit is {limit}")


class BadMessage(RemoteProtocolError):
    """A frame that is not a message of this protocol."""

    def __init__(self, problem: str, *, pointer: str = "") -> None:
        self.problem = problem
        self.pointer = pointer
        super().__init__(f"{problem} at {pointer}" if pointer else problem)


# -- raised in a handler to respond with an error


class RpcError(BecketError):
    """Raised in a handler to respond with this error. Takes a `Meaning`, or an application's own number."""

    def __init__(self, meaning: Meaning | int, message: str = "", data: object = None) -> None:
        self.meaning = meaning if isinstance(meaning, Meaning) else None
        self.code = meaning if isinstance(meaning, int) else None
        self.message = message or (meaning.value if isinstance(meaning, Meaning) else "application error")
        self.data = data
        super().__init__(self.message)


class MethodNotFound(RpcError):
    """No handler is registered for this method."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(Meaning.UNKNOWN_METHOD, f"unknown method: {method}")


class InvalidRequest(RpcError):
    """The message is JSON but not a request."""

    def __init__(self, message: str) -> None:
        super().__init__(Meaning.INVALID_REQUEST, message)


class InvalidParams(RpcError):
    """The params do not fit the method. Lists all problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        text = join_problems(self.problems)
        data = {"problems": [{"pointer": pointer, "message": message} for pointer, message in self.problems]}
        super().__init__(Meaning.INVALID_PARAMS, f"invalid params: {text}", data)


class PermissionDenied(RpcError):
    """The caller lacks the permission that the method requires. `method` and `extension` are empty where unknown."""

    def __init__(self, permission: str, *, method: str = "", extension: str = "") -> None:
        self.permission = permission
        self.method = method
        self.extension = extension
        super().__init__(Meaning.PERMISSION_DENIED, f"permission denied: {permission} required")


class NotPermitted(PermissionDenied):
    """An extension was not called, or its call was cancelled, because it lacks the permission that the call needs.

    Not sent as a response, although it is a `PermissionDenied`: a handler whose own call fails with it responds with
    an internal error."""


class Busy(RpcError):
    """A limit is reached and nothing was done; the same call may succeed later."""

    def __init__(self, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        super().__init__(Meaning.BUSY, f"busy: {what}, the limit is {limit}")


class NotSent(Busy):
    """A call was not sent: too many calls are pending, or the other peer does not read.

    Not sent as a response, although it is a `Busy`: a handler whose own call fails with it responds with an internal
    error."""


class RequestCancelled(RpcError):
    """The request was cancelled by the peer that sent it."""

    def __init__(self) -> None:
        super().__init__(Meaning.CANCELLED, "cancelled")


# -- outcomes of our own calls


REMOTE_MESSAGE = 64 * 1024  # characters kept of an error's message; a frame may hold millions
MAX_INCIDENT_LENGTH = 32  # characters; a longer value is not an incident id


class RemoteError(BecketError):
    """A call received an error response. `code` is the number on the wire; `meaning` is None if the dialect has none.

    A message of more than 65,536 characters is truncated."""

    def __init__(
        self, *, method: str, code: int, message: str, data: object = None, meaning: Meaning | None = None
    ) -> None:
        message = truncate_counted(message, REMOTE_MESSAGE)
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        self.meaning = meaning
        # A peer built with becket logs the error under this id.
        incident = cast("dict[str, object]", data).get("incident") if isinstance(data, dict) else None
        is_incident = isinstance(incident, str) and len(incident) <= MAX_INCIDENT_LENGTH
        shown = f"{code}, incident {escape(cast('str', incident))}" if is_incident else code
        super().__init__(f"{method}: {escape(message)} ({shown})")


class BadReply(BecketError):
    """A response could not be decoded or exceeds the frame limit. The call fails, the connection stays open."""

    def __init__(self, *, method: str, problem: str) -> None:
        self.method = method
        self.problem = problem
        super().__init__(f"{method}: undecodable reply: {problem}")


class CallTimeout(BecketError, TimeoutError):
    """No response arrived in time. The other peer was sent a cancellation if the dialect has one."""

    def __init__(self, method: str, seconds: float) -> None:
        self.method = method
        self.seconds = seconds
        super().__init__(f"{method}: no response within {seconds:g} s")


class CallCancelled(BecketError):
    """This program cancelled the call. The other peer was sent a cancellation if the dialect has one."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(f"{method}: cancelled by this peer")


class ConnectionLost(BecketError, ConnectionError):
    """The connection has ended, and every pending call with it."""

    def __init__(self, reason: DisconnectReason, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        if reason is DisconnectReason.LOCAL_CLOSE and detail:
            super().__init__(detail)
        else:
            super().__init__(f"{reason.value}: {detail}" if detail else reason.value)


HOST_ERRORS = " ".join(name for name in __all__ if name not in globals())

__getattr__, __dir__ = lazy_exports(globals(), {"becket.host_errors": HOST_ERRORS})
__getattr__ = keep_renamed(__name__, {"NUMBERS": "ERROR_CODES"}, __getattr__)
