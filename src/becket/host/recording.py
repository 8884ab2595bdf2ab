"""What is recorded about one extension: every decision, every answer to a question, every change of its grants.

Events go to a callable, as they happen. Writing them down, one line after the other, is whoever gave it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

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
from becket.methods.permissions import PERMISSIONS, Decision, Gate, Grants
from becket.methods.policies import Policy

__all__ = ["Audit", "RecordingGate", "error_class", "record"]

Audit = Callable[[AuditEvent], object]
"""Takes what is to be recorded. Any thread may call it."""


class RecordingGate(Gate):
    """A gate that records what it decides, and who changed what it holds. `calls` is how often its extension called."""

    __slots__ = ("_record", "calls")

    def __init__(
        self,
        extension: str,
        grants: Grants,
        audit: Audit,
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
        if decision.allowed is not None:  # else somebody is asked first, and the answer is recorded
            self._record(call_decided(decision, allowed=decision.allowed))

    def enforce(self, decision: Decision) -> None:
        self.calls -= 1  # the host's own: it asks before it calls the extension
        if decision.allowed is None:  # nobody is asked here, so it is a no
            record(self._record, call_decided(decision, allowed=False))
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

    def settle(self, permission: str, allowed: bool) -> None:
        super().settle(permission, allowed)
        self._record_change(permission, by="answer")

    def _record_change(self, permission: str, *, by: str) -> None:
        record(self._record, GrantChanged(self.extension, permission, self.allows(permission), by))


def call_decided(decision: Decision, *, allowed: bool) -> CallDecided:
    return CallDecided(
        decision.extension,
        decision.method,
        decision.permission,
        allowed,
        decision.because,
        decision.on_behalf_of,
        decision.handling,
    )


def record(audit: Audit | None, event: AuditEvent) -> None:
    """Hands an event to the audit; where that fails, it is logged, and what has happened stands."""
    if audit is None:
        return
    try:
        audit(event)
    except Exception as error:
        import logging

        logging.getLogger("becket.host").error("the audit failed to take %r", event, exc_info=error)


ERROR_CLASSES: dict[type[BecketError], str] = {
    CallTimeout: "timeout",
    ConnectionLost: "lost",
    PermissionDenied: "denied",
    RemoteError: "refused",
    BadReply: "undecodable",
    StreamOverrun: "overrun",
}


def error_class(error: BaseException) -> str:
    """Returns one word for how a call has failed."""
    found = (word for kind, word in ERROR_CLASSES.items() if isinstance(error, kind))
    return next(found, "failed")
