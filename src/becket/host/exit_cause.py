"""Why a process of an extension has ended, or is to end, and the event and the text about it."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from becket.errors import BecketError, ConnectionLost, DisconnectReason, PeerCrashed
from becket.host.diagnostics import without_id
from becket.host.events import ExtensionExited

__all__ = ["ExitCause", "Intent", "build_exit_event", "text_of"]


class Intent(Enum):
    """What the owner task does next, besides watching."""

    NONE = "go on"
    STOP = "end it"
    RELOAD = "start another process, and then end it"
    REPLACE = "end it, and then start another process"


class ExitCause(Struct, frozen=True):
    """Why a process has ended, or must end."""

    reason: str
    lost: ConnectionLost | None = None
    intent: Intent = Intent.NONE
    is_hung: bool = False


def text_of(id: str, error: BecketError) -> str:
    """Returns why a process has ended, without its id; if the host itself has ended it, the reason alone."""
    if isinstance(error, ConnectionLost) and error.reason is DisconnectReason.LOCAL_CLOSE and error.detail:
        return error.detail
    return without_id(id, str(error))


def build_exit_event(id: str, lost: ConnectionLost | None, *, expected: bool) -> ExtensionExited:
    """Returns the event for the end of a process."""
    if isinstance(lost, PeerCrashed):
        return ExtensionExited(id, lost.exit_code, lost.signal, lost.stderr_tail, expected)
    return ExtensionExited(id, None, expected=expected)
