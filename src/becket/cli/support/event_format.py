"""Formats host events as text lines and as JSON objects. Pure."""

from __future__ import annotations

from typing import Any

from becket.host.diagnostics import without_id
from becket.host.events import (
    ExtensionChanged,
    ExtensionDegraded,
    ExtensionDisabled,
    ExtensionDiscovered,
    ExtensionEnabled,
    ExtensionEvent,
    ExtensionExited,
    ExtensionFailed,
    ExtensionLogged,
    ExtensionRecovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStartRefused,
    ExtensionStopped,
    ExtensionToolsChanged,
    HostEvent,
    HostStalled,
    PermissionGranted,
    PermissionRevoked,
    ProblemFound,
)

__all__ = ["build_event_object", "format_event"]


def format_event(event: HostEvent) -> str | None:
    """Returns the line for an event, or None for an event that a later one makes redundant."""
    match event:
        case ProblemFound(diagnostic):
            return f"{diagnostic.severity}: {diagnostic}"
        case HostStalled(seconds):
            return f"the host's event loop was blocked for {seconds:.1f} s"
        case ExtensionEvent():
            text = format_extension_event(event)
            return None if text is None else f"{event.extension}: {text}"
        case _:
            return None


def format_extension_event(event: ExtensionEvent) -> str | None:
    match event:
        case ExtensionDiscovered(_, path, version, dialect):
            other = "" if dialect == "native" else f", dialect {dialect}"
            return f"found {version or 'without a version'} in {path}{other}"
        case ExtensionStartRefused(_, because, hint):
            return f"refused: {because}" + (f" ({hint})" if hint else "")
        case ExtensionStarted(_, pid, seconds):
            return f"started in {seconds:.2f} s" + (f", process {pid}" if pid is not None else "")
        case ExtensionFailed(_, because, hint):
            return f"failed: {without_id(event.extension, because)}" + (f" ({hint})" if hint else "")
        case ExtensionExited(expected=False):
            how = f"killed by {event.signal}" if event.signal else f"exited with code {event.exit_code}"
            line = event.stderr_tail.strip().rsplit("\n", 1)[-1]
            return how + (f", last line of stderr: {line}" if line else "")
        case ExtensionRestarting(_, attempt, delay, because):
            return f"restarting in {delay:.2f} s, attempt {attempt}: {because}"
        case ExtensionRestarted(_, pid, restarts, seconds):
            return f"restarted after {seconds:.2f} s, process {pid}, restarts: {restarts}"
        case ExtensionDegraded(_, because):
            return f"degraded: {because}"
        case ExtensionRecovered():
            return "recovered"
        case ExtensionStopped(_, abandoned):
            return "stopped" + (", but its process cannot be killed" if abandoned else "")
        case ExtensionDisabled(_, because):
            return "disabled" + (f": {because}" if because else "")
        case ExtensionEnabled():
            return "enabled"
        case ExtensionToolsChanged(_, tools):
            return f"tools changed, number of tools: {tools}"
        case ExtensionChanged(_, paths):
            return f"changed on disk: {', '.join(paths)}"
        case ExtensionReloaded(_, seconds, cut_off):
            return f"reloaded in {seconds:.2f} s" + (f", interrupted calls: {cut_off}" if cut_off else "")
        case ExtensionLogged(_, level, message):
            return f"{level}: {message}"
        case PermissionGranted(_, permission, by):
            return f"{permission} granted by {by}"
        case PermissionRevoked(_, permission, by):
            return f"{permission} revoked by {by}"
        case _:  # state changes, beginning starts, expected exits: the next event reports the outcome
            return None


def build_event_object(event: HostEvent, time_ms: int) -> dict[str, Any]:
    """Returns an event as a JSON object: time, name such as `extension_started`, and members."""
    return {"time_ms": time_ms, **event.to_dict()}
