"""Rows and JSON objects for the status of extensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from becket.host.diagnostics import Diagnostic, without_id
from becket.host.host import ExtensionStatus
from becket.host.lifecycle import RUNNING_STATES, ExtensionState

__all__ = ["COLOURS", "HEADERS", "build_problem_objects", "build_status_objects", "build_status_rows", "is_up"]

HEADERS: Final = (
    "extension",
    "version",
    "dialect",
    "state",
    "pid",
    "tools",
    "calls",
    "calls/s",
    "latency",
    "95 %",
    "inbound",
    "inbound/s",
    "restarts",
    "note",
)
COLOURS: Final = {
    ExtensionState.READY: "green",
    ExtensionState.DEGRADED: "yellow",
    ExtensionState.SPAWNING: "cyan",
    ExtensionState.RESTARTING: "yellow",
    ExtensionState.FAILED: "red",
}


def is_up(status: ExtensionStatus) -> bool:
    """Returns whether an extension runs."""
    return status.state in RUNNING_STATES


def build_status_rows(statuses: Iterable[ExtensionStatus]) -> list[Sequence[str]]:
    """Returns one row for each extension, with the columns of `HEADERS`."""
    return [
        (
            status.id,
            status.version or "",
            status.dialect,
            str(status.state),
            "" if status.pid is None else str(status.pid),
            str(status.tools),
            str(status.metrics.calls),
            f"{status.metrics.per_second:.1f}",
            format_seconds(status.metrics.latency_p50),
            format_seconds(status.metrics.latency_p95),
            str(status.metrics.inbound_calls),
            f"{status.metrics.inbound_per_second:.1f}",
            str(status.restarts),
            note_of(status),
        )
        for status in statuses
    ]


def note_of(status: ExtensionStatus) -> str:
    because = without_id(status.id, status.because.partition("\n")[0])
    lost = f"revocation not persistent: {', '.join(status.not_persistent)}" if status.not_persistent else ""
    return "; ".join(part for part in (lost, because) if part)


def format_seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def build_status_objects(statuses: Iterable[ExtensionStatus]) -> Any:
    """Returns one JSON object for each extension."""
    return [status.to_dict() for status in statuses]


def build_problem_objects(problems: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Returns one JSON object for each problem."""
    return [problem.to_dict() for problem in problems]
