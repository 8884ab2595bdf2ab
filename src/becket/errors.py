"""The error hierarchy, the meanings of an error response, and the reasons for a disconnect.

Inside the program an error has a *meaning*; a number exists only at the wire and comes from a dialect's table
(`ERROR_CODES` is the one of JSON-RPC and of becket itself). `RpcError` is raised by a handler to answer with it;
`RemoteError` says that a call of ours was answered with an error. The two are unrelated on purpose: a nested
failure must never leak to the first caller as if it were the handler's own answer.

Fields come first, the text is built from them; `problems` are `(pointer, message)` pairs everywhere. What only a host
can meet is in `host_errors`, and loaded when it is first named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import msgspec

from becket._deprecated import keep_renamed
from becket._lazy import lazy_exports
from becket._text import escape, join_problems, quote

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
"""What decoding bytes from outside raises: they are no JSON, not of the type, no UTF-8 or too deep."""


class Meaning(Enum):
    """What an error answer means, whatever number a dialect gives it."""

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


# -32768..-32000 is full: LSP, MCP, vscode-jsonrpc, jrpc2 and StreamJsonRpc claim parts of it with different
# meanings. What JSON-RPC and LSP do not number stands outside, in the range left to applications.
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

    LOCAL_CLOSE = "closed by this side"
    REMOTE_CLOSE = "closed by the other side"
    STREAM_ERROR = "reading or writing failed"
    LOCAL_VIOLATION = "this side broke the protocol"
    REMOTE_VIOLATION = "the other side broke the protocol"
    PROCESS_EXIT = "the process ended"


class BecketError(Exception):
    """Everything that becket raises on purpose. It can be copied and pickled, whatever its constructor takes."""

    def __reduce__(self) -> tuple[object, ...]:
        return rebuild_error, (type(self), self.args, self.__dict__)

    def copy(self) -> Self:
        """Returns the same error to be raised a second time: with its cause, and a traceback of its own."""
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
    """This platform, loop or dialect cannot do what was asked; nothing was sent or started."""

    def __init__(self, what: str, because: str) -> None:
        self.what = what
        self.because = because
        super().__init__(f"{what} is not supported: {because}")


class StartFailed(BecketError):
    """A process could not be started, or ended before it was ready. `because` says which and what to do."""

    def __init__(self, id: str, because: str, *, exit_code: int | None = None, stderr_tail: str = "") -> None:
        self.id = id
        self.because = because
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        super().__init__(f"{id}: {because}")


class BadValue(BecketError):
    """A JSON value does not fit the class that it should become. All problems, each with its JSON pointer."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"not a valid {what}: {join_problems(self.problems)}")


# -- the protocol was broken


class ProtocolError(BecketError):
    """One side broke the rules of the wire."""

    def __init__(self, message: str) -> None:
        if type(self) is ProtocolError:
            raise TypeError("ProtocolError is abstract: raise LocalProtocolError or RemoteProtocolError")
        super().__init__(message)


class LocalProtocolError(ProtocolError):
    """You asked for something that this state, or the wire, forbids."""


class Unencodable(LocalProtocolError):
    """A value has no JSON: an unknown type, NaN or an infinity, a lone surrogate, a circle."""


class RemoteProtocolError(ProtocolError):
    """They broke the rules; the connection is finished."""


class BadFrame(RemoteProtocolError):
    """Bytes that are no frame. `found` quotes the offence, cut short and made harmless."""

    def __init__(self, problem: str, *, found: bytes | bytearray = b"", hint: str = "") -> None:
        self.problem = problem
        self.found = quote(found)
        self.hint = hint
        text = f"{problem}: {self.found}" if found else problem
        super().__init__(f"{text} ({hint})" if hint else text)


class FrameTooLarge(BadFrame):
    """A frame, line or header beyond its limit, which was not held in memory."""

    def __init__(self, *, size: int | None, limit: int, what: str = "frame") -> None:
        self.size = size
        self.limit = limit
        self.what = what
        announced = "endless" if size is None else "2**64 bytes or more" if size >= 2**64 else f"{size} bytes"
        super().__init__(f"{what} too large: {announced}, the limit is {limit}")


class BadMessage(RemoteProtocolError):
    """A frame that is no message of this protocol."""

    def __init__(self, problem: str, *, pointer: str = "") -> None:
        self.problem = problem
        self.pointer = pointer
        super().__init__(f"{problem} at {pointer}" if pointer else problem)


# -- raised in a handler to answer with it


class RpcError(BecketError):
    """Raised in a handler, it becomes the answer. Give a `Meaning`, or a number of your own."""

    def __init__(self, meaning: Meaning | int, message: str = "", data: object = None) -> None:
        self.meaning = meaning if isinstance(meaning, Meaning) else None
        self.code = meaning if isinstance(meaning, int) else None
        self.message = message or (meaning.value if isinstance(meaning, Meaning) else "application error")
        self.data = data
        super().__init__(self.message)


class MethodNotFound(RpcError):
    """No handler has this name."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(Meaning.UNKNOWN_METHOD, f"unknown method: {method}")


class InvalidRequest(RpcError):
    """The message is JSON but no request."""

    def __init__(self, message: str) -> None:
        super().__init__(Meaning.INVALID_REQUEST, message)


class InvalidParams(RpcError):
    """The params do not fit the method. All problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        text = join_problems(self.problems)
        data = {"problems": [{"pointer": pointer, "message": message} for pointer, message in self.problems]}
        super().__init__(Meaning.INVALID_PARAMS, f"invalid params: {text}", data)


class PermissionDenied(RpcError):
    """The caller does not hold the permission that the method requires. Which of them it was, where that is known."""

    def __init__(self, permission: str, *, method: str = "", extension: str = "") -> None:
        self.permission = permission
        self.method = method
        self.extension = extension
        super().__init__(Meaning.PERMISSION_DENIED, f"permission denied: {permission} required")


class NotPermitted(PermissionDenied):
    """An extension was not called, or given up, since it does not hold the permission that the call runs on.

    No answer, although it is a `PermissionDenied`: a handler whose own call ends so has failed, and is answered as any
    failure."""


class Busy(RpcError):
    """A limit is reached; the same call may succeed later. Nothing was done."""

    def __init__(self, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        super().__init__(Meaning.BUSY, f"busy: {what}, the limit is {limit}")


class NotSent(Busy):
    """A call of ours never left: too many were open, or the other side does not read.

    No answer, although it is a `Busy`: a handler whose own call fails so has failed, and is answered as any failure."""


class RequestCancelled(RpcError):
    """The request was cancelled by whoever sent it."""

    def __init__(self) -> None:
        super().__init__(Meaning.CANCELLED, "cancelled")


# -- how a call of ours can end


REMOTE_MESSAGE = 64 * 1024  # characters of an error's message that are kept: a frame may hold millions
MAX_INCIDENT_LENGTH = 32  # characters of an id that is shown; a longer one is something else


class RemoteError(BecketError):
    """Our call was answered with an error. `code` is the number as it came, `meaning` None if the dialect has none.

    A message of more than 65,536 characters is truncated."""

    def __init__(
        self, *, method: str, code: int, message: str, data: object = None, meaning: Meaning | None = None
    ) -> None:
        if len(message) > REMOTE_MESSAGE:
            message = f"{message[:REMOTE_MESSAGE]}... (truncated: {len(message)} characters)"
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        self.meaning = meaning
        # What their log says about it bears this id, if they are made as we are.
        incident = cast("dict[str, object]", data).get("incident") if isinstance(data, dict) else None
        is_told = isinstance(incident, str) and len(incident) <= MAX_INCIDENT_LENGTH
        shown = f"{code}, incident {escape(cast('str', incident))}" if is_told else code
        super().__init__(f"{method}: {escape(message)} ({shown})")


class BadReply(BecketError):
    """One response could not be understood or is above the frame limit: that call fails, the link goes on."""

    def __init__(self, *, method: str, problem: str) -> None:
        self.method = method
        self.problem = problem
        super().__init__(f"{method}: undecodable reply: {problem}")


class CallTimeout(BecketError, TimeoutError):
    """No answer came in time. The other side was told to stop where its dialect has a word for it."""

    def __init__(self, method: str, seconds: float) -> None:
        self.method = method
        self.seconds = seconds
        super().__init__(f"{method}: no answer within {seconds:g} s")


class CallCancelled(BecketError):
    """This program gave the call up. The other side was told to stop where its dialect has a word for it."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(f"{method}: cancelled by this side")


class ConnectionLost(BecketError, ConnectionError):
    """The link has ended, and with it every call that was waiting."""

    def __init__(self, reason: DisconnectReason, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        if reason is DisconnectReason.LOCAL_CLOSE and detail:  # which says why this side has closed it
            super().__init__(detail)
        else:
            super().__init__(f"{reason.value}: {detail}" if detail else reason.value)


HOST_ERRORS = " ".join(name for name in __all__ if name not in globals())

__getattr__, __dir__ = lazy_exports(globals(), {"becket.host_errors": HOST_ERRORS})
__getattr__ = keep_renamed(__name__, {"NUMBERS": "ERROR_CODES"}, __getattr__)
