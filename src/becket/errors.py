"""The whole hierarchy of errors, what an error can mean, and why a link can end.

Inside the program an error has a *meaning*; a number exists only at the wire and comes from a dialect's table
(`NUMBERS` is the one of JSON-RPC and of becket itself). `RpcError` is raised by a handler to answer with it;
`RemoteError` says that a call of ours was answered with an error. The two are unrelated on purpose: a nested
failure must never leak to the first caller as if it were the handler's own answer.

Fields come first, the text is built from them; `problems` are `(pointer, message)` pairs everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, Self, TypeVar, cast

__all__ = [
    "NUMBERS",
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
    "RpcError",
    "StartFailed",
    "StoreError",
    "StoreInUse",
    "StoreUnavailable",
    "StreamOverrun",
    "TooManyTurns",
    "ToolFailed",
    "Unencodable",
    "UnknownPermission",
    "VersionMismatch",
]

Problem = tuple[str, str]
"""A JSON pointer and what is wrong there."""


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
NUMBERS: Final[Mapping[Meaning, int]] = MappingProxyType(
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
        return rebuild, (type(self), self.args, self.__dict__)

    def again(self) -> Self:
        """Returns the same error to be raised a second time: with its cause, and a traceback of its own."""
        error = rebuild(type(self), self.args, self.__dict__)
        if hasattr(self, "__notes__"):
            error.__notes__ = [*self.__notes__]
        error.__cause__ = self.__cause__
        return error

    __copy__ = again


E = TypeVar("E", bound=BecketError)


def rebuild(kind: type[E], args: tuple[object, ...], fields: dict[str, object]) -> E:
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


class BadValue(BecketError):
    """A JSON value does not fit the class that it should become. All problems, each with its JSON pointer."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"not a valid {what}: {list_problems(self.problems)}")


class BadSchema(BecketError):
    """A JSON Schema is none, or one that is not safe to apply. All problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"bad schema: {list_problems(self.problems)}")


class BadFile(BecketError):
    """A file or a folder that somebody wrote cannot be used. All problems, each with its JSON pointer."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(f"{path}: {list_problems(self.problems)}")


class ManifestError(BadFile):
    """A manifest cannot be used, and its extension with it. All problems, each with its JSON pointer."""


def list_problems(problems: Sequence[Problem]) -> str:
    shown = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems[:MOST_SHOWN])
    return shown if len(problems) <= MOST_SHOWN else f"{shown}; and {len(problems) - MOST_SHOWN} more"


MOST_SHOWN = 20  # problems in a text; all of them are in the field


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
    """A frame, line or header beyond its limit; refused before memory was taken for it."""

    def __init__(self, *, size: int | None, limit: int, what: str = "frame") -> None:
        self.size = size
        self.limit = limit
        self.what = what
        announced = "endless" if size is None else f"{size} bytes"
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
        text = list_problems(self.problems)
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


class QuotaExceeded(RpcError):
    """What may be stored for one extension is used up. Nothing was stored; what others store is not touched."""

    def __init__(self, extension: str, what: str, *, used: int, limit: int) -> None:
        self.extension = extension
        self.what = what
        self.used = used
        self.limit = limit
        text = f"{extension}: quota of {what} exceeded: {used} used, the limit is {limit}"
        super().__init__(Meaning.QUOTA, text, {"what": what, "used": used, "limit": limit})


class StoreError(RpcError):
    """The store could not do what it was asked; nothing was kept. The log says more under the same incident."""

    def __init__(self, meaning: Meaning, incident: str) -> None:
        self.incident = incident
        super().__init__(meaning, f"storage failure, incident {incident}", {"incident": incident})


class QueryTimeout(RpcError):
    """A query took longer than a query may, and was given up. A narrower one may be answered."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            Meaning.TIMEOUT, f"the query took longer than {seconds:g} s: ask for less", {"seconds": seconds}
        )


class RequestCancelled(RpcError):
    """The request was cancelled by whoever sent it."""

    def __init__(self) -> None:
        super().__init__(Meaning.CANCELLED, "cancelled")


# -- stores


class StoreUnavailable(BecketError):
    """A store cannot be opened, and nothing in it was changed. `because` says why, `hint` what to do."""

    def __init__(self, path: str, because: str, hint: str = "") -> None:
        self.path = path
        self.because = because
        self.hint = hint
        super().__init__(f"{path}: {because}; {hint}" if hint else f"{path}: {because}")


class StoreInUse(StoreUnavailable):
    """Another program has the store open. `pid` is its process, None where it could not be found out."""

    def __init__(self, path: str, pid: int | None) -> None:
        self.pid = pid
        owner = "another program" if pid is None else f"the process {pid}"
        super().__init__(path, f"{owner} has this store open", "end it first, or open the store for reading only")


# -- how a call of ours can end


INCIDENT = 32  # characters of an id that is shown; a longer one is something else


class RemoteError(BecketError):
    """Our call was answered with an error. `code` is the number as it came, `meaning` None if the dialect has none."""

    def __init__(
        self, *, method: str, code: int, message: str, data: object = None, meaning: Meaning | None = None
    ) -> None:
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        self.meaning = meaning
        # What their log says about it bears this id, if they are made as we are.
        incident = cast("dict[str, object]", data).get("incident") if isinstance(data, dict) else None
        shown = f"{code}, incident {incident}" if isinstance(incident, str) and len(incident) <= INCIDENT else code
        super().__init__(f"{method}: {harmless(message)} ({shown})")


class ToolFailed(RemoteError):
    """A tool has run and has failed: the other side answered with a result that says so, and no number stands in it."""

    def __init__(self, tool: str, message: str, data: object = None, *, method: str = "tool.call") -> None:
        self.tool = tool
        super().__init__(method=method, code=0, message=message, data=data)

    def __str__(self) -> str:
        return f"{self.tool}: {harmless(self.message)}"


class BadReply(BecketError):
    """One answer could not be understood: that call fails, the link lives."""

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
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)


class PeerCrashed(ConnectionLost):
    """The process behind the link has ended; its status and the tail of its stderr tell how."""

    def __init__(
        self, *, exit_code: int | None, signal: str | None = None, stderr_tail: str = "", detail: str = ""
    ) -> None:
        self.exit_code = exit_code
        self.signal = signal
        self.stderr_tail = stderr_tail
        how = f"killed by {signal}" if signal else f"exit code {exit_code}"
        said = stderr_tail.strip().rsplit("\n", 1)[-1]
        parts = [how, detail, f"its last words: {said}" if said else ""]
        super().__init__(DisconnectReason.PROCESS_EXIT, ", ".join(part for part in parts if part))


class StreamOverrun(BecketError):
    """The events of a call came faster than they were taken; the stream has ended, the link lives."""

    def __init__(self, method: str, limit: int) -> None:
        self.method = method
        self.limit = limit
        super().__init__(f"{method}: its events were not taken in time, the limit is {limit}")


class StartFailed(BecketError):
    """A process could not be started, or ended before it was ready. `because` says which and what to do."""

    def __init__(self, id: str, because: str, *, exit_code: int | None = None, stderr_tail: str = "") -> None:
        self.id = id
        self.because = because
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        super().__init__(f"{id}: {because}")


# -- extensions


class ExtensionRefused(BecketError):
    """The host does not start this extension. `because` says why and what to do."""

    def __init__(self, id: str, because: str) -> None:
        self.id = id
        self.because = because
        super().__init__(f"{id}: refused: {because}")


class HandshakeFailed(BecketError):
    """The first exchange with an extension has failed, and its process was ended."""

    def __init__(self, extension: str, because: str) -> None:
        self.extension = extension
        self.because = because
        super().__init__(f"{extension}: handshake failed: {because}")


class VersionMismatch(HandshakeFailed):
    """The extension speaks a version of the contract that this host does not."""

    def __init__(self, extension: str, because: str, *, given: int | str, supported: int | str) -> None:
        self.given = given
        self.supported = supported
        super().__init__(extension, because)


class BadCapabilities(HandshakeFailed):
    """What the extension declares breaks rules of the contract. All problems, each with its JSON pointer."""

    def __init__(self, extension: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(extension, list_problems(self.problems))


class NotDeclared(BecketError, LookupError):
    """The extension has declared no such tool, provider or model. Nothing was sent."""

    def __init__(self, extension: str, what: str, name: str, known: Sequence[str] = ()) -> None:
        self.extension = extension
        self.what = what
        self.name = name
        self.known = tuple(known)
        super().__init__(f"{extension} has no {what} {name!r}, it has: {', '.join(known) or 'none'}")


class NotRunning(BecketError):
    """The extension does not run, and nobody is about to start it."""

    def __init__(self, id: str, state: str, hint: str = "") -> None:
        self.id = id
        self.state = str(state)
        self.hint = hint
        super().__init__(f"{id}: it is {self.state}" + (f" ({hint})" if hint else ""))


class CircuitOpen(BecketError):
    """Too many calls of this extension have failed. Nothing was sent, and nothing is until `until`, in `seconds`."""

    def __init__(self, id: str, until: float, *, seconds: float) -> None:
        self.id = id
        self.until = until
        self.seconds = seconds
        super().__init__(f"{id}: too many of its calls have failed, try again in {seconds:.3g} s")


class ProviderDisabled(BecketError):
    """The operator does not trust this provider of models, or whom they trust cannot be read. Nothing was sent."""

    def __init__(self, provider: str, because: str) -> None:
        self.provider = provider
        self.because = because
        super().__init__(f"{provider} is disabled: {because}")


class TooManyTurns(BecketError):
    """A model went on asking for tools instead of answering."""

    def __init__(self, extension: str, limit: int) -> None:
        self.extension = extension
        self.limit = limit
        super().__init__(f"extension provider '{extension}' exceeded provider tool-use iteration limit ({limit})")


# -- permissions


class UnknownPermission(BecketError):
    """No permission has this name: it is neither granted nor asked for."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"Unknown extension permission: {permission}")


class ReservedPermission(BecketError):
    """The name is kept for a permission to come, which nobody can have yet."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"Reserved extension permission is not implemented yet: {permission}")


class BadGrants(BecketError):
    """Grants that somebody wrote down cannot be read. All problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in self.problems)
        super().__init__(f"bad grants: {text}")


QUOTED = 64  # bytes of an offence that a message shows


def quote(found: bytes | bytearray) -> str:
    """Returns the beginning of `found` as one harmless line of ASCII."""
    shown = repr(bytes(found[:QUOTED]))[1:]
    return shown if len(found) <= QUOTED else f"{shown}..."


# Letters and marks to Python, and yet nothing is seen of them: what Unicode calls default ignorable, besides the format
# characters, which Python does not take for printable.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)


def harmless(text: str | bytes) -> str:
    """Returns one line in which nothing can move a cursor, forge a line, change a direction or hide.

    Control characters, C1, bidirectional, zero-width and invisible ones, and broken UTF-8, become visible escapes."""
    if isinstance(text, bytes):
        text = text.decode(errors="backslashreplace")
    if text.isprintable() and (text.isascii() or INVISIBLE.isdisjoint(text)):
        return text
    return "".join(char if is_seen(char) or char == "\t" else escape(char) for char in text)


def is_seen(char: str) -> bool:
    return char.isprintable() and char not in INVISIBLE


def escape(char: str) -> str:
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")
