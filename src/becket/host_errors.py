"""Errors that only a host raises; loaded lazily through `becket.errors`.

Import them from `becket.errors`. They are in a module of their own so that extensions start faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from becket._text import escape, join_problems
from becket.errors import BecketError, ConnectionLost, DisconnectReason, Meaning, RemoteError, RpcError

if TYPE_CHECKING:
    from becket.errors import Problem

__all__ = [
    "BadCapabilities",
    "BadFile",
    "BadGrants",
    "BadSchema",
    "CircuitOpen",
    "CommandFailed",
    "ExtensionRefused",
    "HandshakeFailed",
    "ManifestError",
    "MissingExtra",
    "NotDeclared",
    "NotRunning",
    "PeerCrashed",
    "ProviderDisabled",
    "QueryTimeout",
    "QuotaExceeded",
    "ReservedPermission",
    "RevocationNotPersistent",
    "StoreError",
    "StoreInUse",
    "StoreUnavailable",
    "StreamOverrun",
    "TooManyTurns",
    "ToolBlocked",
    "ToolFailed",
    "UnknownPermission",
    "VersionMismatch",
]


# -- files and schemas


class BadSchema(BecketError):
    """A JSON Schema is invalid or not safe to apply. Lists all problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"bad schema: {join_problems(self.problems)}")


class BadFile(BecketError):
    """A file or folder cannot be used. Lists all problems, each with its JSON pointer."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(f"{path}: {join_problems(self.problems)}")


class ManifestError(BadFile):
    """A manifest cannot be used, and therefore its extension. Lists all problems, each with its JSON pointer."""


PACKAGES = {"google": "protobuf", "yaml": "PyYAML"}  # on the package index, where the name is not that of the module


class MissingExtra(BecketError, ImportError):
    """An optional dependency is not installed. `extra` is the extra of becket that installs it."""

    def __init__(self, module: str, extra: str) -> None:
        self.module = module
        self.extra = extra
        super().__init__(f"`{PACKAGES.get(module, module)}` is not installed: pip install 'becket[{extra}]'")


class RevocationNotPersistent(BadFile):
    """Permissions were revoked, but the grants file could not be written.

    They are revoked in the running host, which keeps trying to write the file."""

    def __init__(self, id: str, permissions: Sequence[str], path: str, problems: Sequence[Problem]) -> None:
        super().__init__(path, problems)
        self.id = id
        self.permissions = tuple(permissions)

    def __str__(self) -> str:
        names = ", ".join(self.permissions)
        return f"{self.id}: {names}: revoked in this host, revocation not persistent: {super().__str__()}"


# -- processes and their links


class PeerCrashed(ConnectionLost):
    """The process at the other end has exited; carries its exit status and the tail of its stderr."""

    def __init__(
        self, *, exit_code: int | None, signal: str | None = None, stderr_tail: str = "", detail: str = ""
    ) -> None:
        self.exit_code = exit_code
        self.signal = signal
        self.stderr_tail = stderr_tail
        how = f"killed by {signal}" if signal else f"exit code {exit_code}"
        last_line = stderr_tail.strip().rsplit("\n", 1)[-1]
        parts = [how, detail, f"last line of stderr: {last_line}" if last_line else ""]
        super().__init__(DisconnectReason.PROCESS_EXIT, ", ".join(part for part in parts if part))


class StreamOverrun(BecketError):
    """The events of a call arrived faster than they were consumed. The stream has ended, the connection stays open."""

    def __init__(self, method: str, limit: int) -> None:
        self.method = method
        self.limit = limit
        super().__init__(f"{method}: its events were not consumed in time, the limit is {limit}")


# -- extensions


class ExtensionRefused(BecketError):
    """The host does not start this extension. `because` says why, `hint` what to do; `code` is a `ProblemCode`."""

    def __init__(self, id: str, because: str, hint: str = "", code: str = "refused") -> None:
        self.id = id
        self.because = because
        self.hint = hint
        self.code = code
        super().__init__(f"{id}: refused: {because} ({hint})" if hint else f"{id}: refused: {because}")


class HandshakeFailed(BecketError):
    """The handshake with an extension failed, and its process was terminated."""

    def __init__(self, extension: str, because: str) -> None:
        self.extension = extension
        self.because = because
        super().__init__(f"{extension}: handshake failed: {because}")


class VersionMismatch(HandshakeFailed):
    """The extension uses a version of the contract that this host does not support."""

    def __init__(self, extension: str, because: str, *, given: int | str, supported: int | str) -> None:
        self.given = given
        self.supported = supported
        super().__init__(extension, because)


class BadCapabilities(HandshakeFailed):
    """The extension declares capabilities that violate the contract. Lists all problems, each with its JSON pointer."""

    def __init__(self, extension: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(extension, join_problems(self.problems))


class NotDeclared(BecketError, LookupError):
    """The extension declares no such tool, provider or model. Nothing was sent."""

    def __init__(self, extension: str, what: str, name: str, known: Sequence[str] = ()) -> None:
        self.extension = extension
        self.what = what
        self.name = name
        self.known = tuple(known)
        super().__init__(f"{extension} has no {what} {name!r}, it has: {', '.join(known) or 'none'}")


class NotRunning(BecketError):
    """The extension is not running, and no start is scheduled."""

    def __init__(self, id: str, state: str, hint: str = "") -> None:
        self.id = id
        self.state = str(state)
        self.hint = hint
        super().__init__(f"{id}: it is {self.state}" + (f" ({hint})" if hint else ""))


class CircuitOpen(BecketError):
    """Too many calls of this extension have failed. Nothing is sent until `until`, which is `seconds` away."""

    def __init__(self, id: str, until: float, *, seconds: float) -> None:
        self.id = id
        self.until = until
        self.seconds = seconds
        super().__init__(f"{id}: too many of its calls have failed, try again in {seconds:.3g} s")


class ToolBlocked(BecketError):
    """A hook blocked a tool call; `by` is the extension of that hook. The tool did not run."""

    def __init__(self, tool: str, reason: str, by: str | None = None) -> None:
        self.tool = tool
        self.reason = reason
        self.by = by
        super().__init__(f"{tool} was blocked by {by or 'extensions'}: {escape(reason)}")


class ToolFailed(RemoteError):
    """A tool ran and failed: its result says so, without an error code."""

    def __init__(self, tool: str, message: str, data: object = None, *, method: str = "tool.call") -> None:
        self.tool = tool
        super().__init__(method=method, code=0, message=message, data=data)

    def __str__(self) -> str:
        return f"{self.tool}: {escape(self.message)}"


class CommandFailed(BecketError):
    """The program that the host ran for a command failed: nonzero exit code, or terminated by a signal."""

    def __init__(self, command: str, *, exit_code: int | None, signal: str | None = None) -> None:
        self.command = command
        self.exit_code = exit_code
        self.signal = signal
        how = f"was terminated by {signal}" if signal else f"exited with code {exit_code}"
        super().__init__(f"{command}: its program {how}")


class ProviderDisabled(BecketError):
    """The operator does not trust this model provider, or the list of trusted providers cannot be read. Nothing was
    sent."""

    def __init__(self, provider: str, because: str) -> None:
        self.provider = provider
        self.because = because
        super().__init__(f"{provider} is disabled: {because}")


class TooManyTurns(BecketError):
    """A model kept calling tools until the limit of turns was reached."""

    def __init__(self, extension: str, limit: int) -> None:
        self.extension = extension
        self.limit = limit
        super().__init__(f"extension provider '{extension}' exceeded provider tool-use iteration limit ({limit})")


# -- permissions


class UnknownPermission(BecketError):
    """No permission has this name."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"Unknown extension permission: {permission}")


class ReservedPermission(BecketError):
    """The name is reserved for a future permission, which cannot be granted yet."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"Reserved extension permission is not implemented yet: {permission}")


class BadGrants(BecketError):
    """Written grants cannot be parsed. Lists all problems, each with its JSON pointer."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"bad grants: {join_problems(self.problems)}")


# -- stores


class QuotaExceeded(RpcError):
    """The storage quota of one extension is used up. Nothing was stored; other extensions are not affected."""

    def __init__(self, extension: str, what: str, *, used: int, limit: int) -> None:
        self.extension = extension
        self.what = what
        self.used = used
        self.limit = limit
        text = f"{extension}: quota of {what} exceeded: {used} used, the limit is {limit}"
        super().__init__(Meaning.QUOTA, text, {"what": what, "used": used, "limit": limit})


class QueryTimeout(RpcError):
    """A query exceeded its time limit and was stopped. A narrower query may succeed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            Meaning.TIMEOUT, f"the query took longer than {seconds:g} s: narrow the query", {"seconds": seconds}
        )


class StoreError(RpcError):
    """The store failed; nothing was changed. The log has details under the same incident id.

    `because` is also sent on the wire. `path` and `hint`, which name the store and what to do, are not."""

    def __init__(self, meaning: Meaning, incident: str, because: str = "", *, path: str = "", hint: str = "") -> None:
        self.incident = incident
        self.because = because
        self.path = path
        self.hint = hint
        text = f"storage failure, incident {incident}"
        if because:
            text = f"{text}: {because}"
        super().__init__(meaning, text, {"incident": incident})

    def __str__(self) -> str:
        return f"{self.path}: {self.message}; {self.hint}" if self.path else self.message


class StoreUnavailable(BecketError):
    """A store cannot be opened; nothing in it was changed. `because` says why, `hint` what to do."""

    def __init__(self, path: str, because: str, hint: str = "") -> None:
        self.path = path
        self.because = because
        self.hint = hint
        super().__init__(f"{path}: {because}; {hint}" if hint else f"{path}: {because}")


class StoreInUse(StoreUnavailable):
    """Another process has the store open. `pid` is None where it cannot be determined."""

    def __init__(self, path: str, pid: int | None) -> None:
        self.pid = pid
        owner = "another program" if pid is None else f"the process {pid}"
        super().__init__(path, f"{owner} has this store open", "end it first, or open the store for reading only")
