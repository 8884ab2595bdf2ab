"""`AuditedGate`: a permission gate that records every decision and grant change.

Events go to a callable, as they happen; it must write them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Set as AbstractSet

from becket._loggers import host_logger
from becket.contract.audit import AuditEvent, CallDecided, GrantChanged
from becket.errors import (
    BadReply,
    BecketError,
    CallTimeout,
    ConnectionLost,
    PermissionDenied,
    RemoteError,
    StreamOverrun,
)
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS
from becket.permissions.policies import Decision, Policy

__all__ = ["AuditSink", "AuditedGate", "classify_error", "record_event"]

AuditSink = Callable[[AuditEvent], object]
"""Takes an event to be recorded. Any thread may call it."""


class AuditedGate(Gate):
    """A gate that records its decisions, and who changed its grants. `calls` is how often its extension called."""

    __slots__ = ("_record", "calls")

    def __init__(
        self,
        extension: str,
        grants: Grants,
        audit: AuditSink,
        *,
        policy: Policy | None = None,
        asks: bool = False,
        known: AbstractSet[str] = PERMISSIONS,
        require_parent: bool = False,
    ) -> None:
        self._record = audit
        self.calls = 0
        super().__init__(
            extension,
            grants,
            audit=self._record_decision,
            policy=policy,
            asks=asks,
            known=known,
            require_parent=require_parent,
        )

    def _record_decision(self, decision: Decision) -> None:
        self.calls += 1
        if decision.allowed is not None:  # else the user is prompted first, and the response is recorded
            self._record(build_call_record(decision, allowed=decision.allowed))

    def enforce(self, decision: Decision) -> None:
        self.calls -= 1  # the host's own: it checks before it calls the extension
        if decision.allowed is None:  # there is no prompt here, so it is denied
            record_event(self._record, build_call_record(decision, allowed=False))
        super().enforce(decision)

    def grant(self, permission: str, *, by: str = "host") -> None:
        had = self.allows(permission)
        super().grant(permission)
        if not had:
            self._record_change(permission, by=by)

    def revoke(self, permission: str, *, by: str = "host") -> None:
        had = self.allows(permission)
        super().revoke(permission)
        if had:
            self._record_change(permission, by=by)

    def resolve_prompt(self, permission: str, allowed: bool) -> None:
        super().resolve_prompt(permission, allowed)
        self._record_change(permission, by="answer")

    def _record_change(self, permission: str, *, by: str) -> None:
        record_event(self._record, GrantChanged(self.extension, permission, self.allows(permission), by))


def build_call_record(decision: Decision, *, allowed: bool) -> CallDecided:
    return CallDecided(
        decision.extension,
        decision.method,
        decision.permission,
        allowed,
        decision.because,
        decision.on_behalf_of,
        decision.handling,
    )


def record_event(audit: AuditSink | None, event: AuditEvent) -> None:
    """Passes an event to the audit; an error is logged, and the event stands."""
    if audit is None:
        return
    try:
        audit(event)
    except Exception as error:
        host_logger().error("the audit failed to record %r", event, exc_info=error)


ERROR_CLASSES: dict[type[BecketError], str] = {
    CallTimeout: "timeout",
    ConnectionLost: "lost",
    PermissionDenied: "denied",
    RemoteError: "refused",
    BadReply: "undecodable",
    StreamOverrun: "overrun",
}


def classify_error(error: BaseException) -> str:
    """Returns one word for how a call has failed."""
    found = (word for kind, word in ERROR_CLASSES.items() if isinstance(error, kind))
    return next(found, "failed")
