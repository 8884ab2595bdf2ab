"""How the extensions of a host do, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from becket.host.diagnostics import Diagnostic, without_id
from becket.host.host import ExtensionStatus
from becket.host.lifecycle import State

__all__ = ["COLOURS", "HEADERS", "is_up", "problem_objects", "status_objects", "status_rows"]

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
    "asked",
    "asked/s",
    "restarts",
    "note",
)
COLOURS: Final = {
    State.READY: "green",
    State.DEGRADED: "yellow",
    State.SPAWNING: "cyan",
    State.RESTARTING: "yellow",
    State.FAILED: "red",
}


def is_up(status: ExtensionStatus) -> bool:
    """Returns whether an extension runs."""
    return status.state in (State.READY, State.DEGRADED)


def status_rows(statuses: Iterable[ExtensionStatus]) -> list[Sequence[str]]:
    """Returns one row for each extension, as `HEADERS` says."""
    return [
        (
            status.id,
            status.version or "",
            status.dialect,
            str(status.state),
            "" if status.pid is None else str(status.pid),
            str(status.tools),
            str(status.figures.calls),
            f"{status.figures.per_second:.1f}",
            show_seconds(status.figures.latency),
            show_seconds(status.figures.latency_95),
            str(status.figures.asked),
            f"{status.figures.asked_per_second:.1f}",
            str(status.restarts),
            note_of(status),
        )
        for status in statuses
    ]


def note_of(status: ExtensionStatus) -> str:
    because = without_id(status.id, status.because.partition("\n")[0])
    lost = f"revocation not persistent: {', '.join(status.not_persistent)}" if status.not_persistent else ""
    return "; ".join(part for part in (lost, because) if part)


def show_seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def status_objects(statuses: Iterable[ExtensionStatus]) -> Any:
    """Returns the same as JSON."""
    return [status.to_dict() for status in statuses]


def problem_objects(problems: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Returns what is wrong as JSON, each with all of its members."""
    return [problem.to_dict() for problem in problems]
