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
    """Returns what to tell of an event: of whom, what, and why. None for those that another event tells better."""
    match event:
        case ProblemFound(diagnostic):
            return f"{diagnostic.severity}: {diagnostic}"
        case HostStalled(seconds):
            return f"this host was too busy to listen for {seconds:.1f} s"
        case ExtensionEvent():
            said = format_extension_event(event)
            return None if said is None else f"{event.extension}: {said}"
        case _:
            return None


def format_extension_event(event: ExtensionEvent) -> str | None:
    match event:
        case ExtensionDiscovered(_, path, version, dialect):
            other = "" if dialect == "native" else f", which speaks {dialect}"
            return f"found {version or 'without a version'} in {path}{other}"
        case ExtensionStartRefused(_, because, hint):
            return f"refused: {because}" + (f" ({hint})" if hint else "")
        case ExtensionStarted(_, pid, seconds):
            return f"started in {seconds:.2f} s" + (f", process {pid}" if pid is not None else "")
        case ExtensionFailed(_, because, hint):
            return f"failed: {without_id(event.extension, because)}" + (f" ({hint})" if hint else "")
        case ExtensionExited(expected=False):
            how = f"killed by {event.signal}" if event.signal else f"ended with exit code {event.exit_code}"
            said = event.stderr_tail.strip().rsplit("\n", 1)[-1]
            return how + (f", its last words: {said}" if said else "")
        case ExtensionRestarting(_, attempt, delay, because):
            return f"starting again in {delay:.2f} s, attempt {attempt}: {because}"
        case ExtensionRestarted(_, pid, restarts, seconds):
            return f"runs again after {seconds:.2f} s, process {pid}, restarts: {restarts}"
        case ExtensionDegraded(_, because):
            return f"degraded: {because}"
        case ExtensionRecovered():
            return "well again"
        case ExtensionStopped(_, abandoned):
            return "stopped" + (", and the system does not let go of its process" if abandoned else "")
        case ExtensionDisabled(_, because):
            return "disabled" + (f": {because}" if because else "")
        case ExtensionEnabled():
            return "enabled"
        case ExtensionToolsChanged(_, tools):
            return f"offers other tools now: {tools}"
        case ExtensionChanged(_, paths):
            return f"changed on disk: {', '.join(paths)}"
        case ExtensionReloaded(_, seconds, cut_off):
            return f"reloaded in {seconds:.2f} s" + (f", calls that were not answered: {cut_off}" if cut_off else "")
        case ExtensionLogged(_, level, message):
            return f"{level}: {message}"
        case PermissionGranted(_, permission, by):
            return f"given {permission} by {by}"
        case PermissionRevoked(_, permission, by):
            return f"{permission} taken away by {by}"
        case _:  # a move, a start that begins, an end that was asked for: the event that follows tells it
            return None


def build_event_object(event: HostEvent, time_ms: int) -> dict[str, Any]:
    """Returns an event as a JSON object: its time, its class as a name such as `extension_started`, and its members."""
    return {"time_ms": time_ms, **event.to_dict()}
