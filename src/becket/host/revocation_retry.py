"""Revocations that could not be written to the grants file: tried again, and a problem of the host until they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio

from becket.errors import RevocationNotPersistent
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.events import EventBus, ProblemFound

__all__ = ["UnwrittenRevocations"]

RETRY_EVERY: Final = 10.0  # seconds between two attempts to write a revocation


class UnwrittenRevocations:
    """Keeps a problem in `problems` for as long as a revocation is not written; `report` adds one."""

    def __init__(self, problems: list[Diagnostic], events: EventBus, report: Callable[[Diagnostic], None]) -> None:
        self._problems = problems
        self._events = events
        self._report = report
        self._unwritten: dict[str, Diagnostic] = {}  # by extension

    async def keep_writing(self, retry: Callable[[], Awaitable[Mapping[str, RevocationNotPersistent | None]]]) -> None:
        """Writes revocations that could not be written when they were made, until it is cancelled."""
        while True:
            await anyio.sleep(RETRY_EVERY)
            outcomes = await retry()
            for id in {*self._unwritten, *outcomes}:
                self.note(id, outcomes.get(id))

    def note(self, id: str, error: RevocationNotPersistent | None) -> None:
        """Records why the revocations of an extension are not written; None if they are."""
        before = self._unwritten.pop(id, None)
        if before is not None and before in self._problems:
            self._problems.remove(before)
        if error is None:
            if before is not None:
                solved = Diagnostic(
                    code=ProblemCode.REVOCATION_PERSISTENT,
                    extension=id,
                    problem="revocation is persistent now",
                    hint="nothing is left to do",
                    severity=Severity.NOTE,
                )
                self._events.publish(ProblemFound(solved))
            return
        names, reasons = ", ".join(error.permissions), "; ".join(message for _, message in error.problems)
        diagnostic = self._unwritten[id] = Diagnostic(
            code=ProblemCode.REVOCATION_NOT_PERSISTENT,
            extension=id,
            path=error.path,
            problem=f"revocation not persistent: {names}: {reasons}",
            hint=f"fix this; it is tried again every {RETRY_EVERY:g} s and at the end",
        )
        if diagnostic == before:
            self._problems.append(diagnostic)  # it was reported when it was new
        else:
            self._report(diagnostic)
