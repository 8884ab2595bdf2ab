"""Roder event notifications in both directions, and a buffer for extension events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from becket.methods.descriptors import Notification

__all__ = [
    "EVENTS_HANDLE",
    "EXTENSION_EVENT",
    "FORWARD_TIMEOUT",
    "MAX_BUFFERED_EVENTS",
    "EventEnvelope",
    "EventSource",
    "EventsHandleParams",
    "ExtensionEventBuffer",
    "RoderExtensionEvent",
]

FORWARD_TIMEOUT: Final = 2.0  # seconds per event and extension
MAX_BUFFERED_EVENTS: Final = 256


class EventSource(StrEnum):
    """Known sources of events in a host."""

    RUNTIME = "Runtime"
    CORE = "Core"
    PROVIDER = "Provider"
    TOOL = "Tool"
    APP_SERVER = "AppServer"
    TUI = "Tui"
    EXTENSION = "Extension"
    SYSTEM = "System"


class EventEnvelope(Struct, frozen=True, kw_only=True):
    """An event of the host. `kind` is a dotted name; `event` has one member, named after its class.

    `timestamp` is an RFC 3339 time; `source` is one of `EventSource`, or another one of a newer host."""

    event_id: str
    seq: Annotated[int, Meta(ge=0)]
    timestamp: str
    source: str
    kind: str
    thread_id: str | None = None
    turn_id: str | None = None
    event: Any


class EventsHandleParams(Struct, frozen=True):
    """Params of an event notification."""

    envelope: EventEnvelope


class RoderExtensionEvent(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of an extension, of its own format and without secrets."""

    extension_id: str
    event_kind: str
    schema_version: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    payload: Any


class ExtensionEventBuffer:
    """Bounded buffer of extension events; keeps the oldest ones until they are taken.

    `registry.on(EXTENSION_EVENT)(buffer.add)`, with the `Registry` that the extension is connected with."""

    def __init__(self, most: int = MAX_BUFFERED_EVENTS) -> None:
        self.dropped = 0
        self._most = most
        self._events: list[RoderExtensionEvent] = []

    def add(self, event: RoderExtensionEvent) -> None:
        """Stores an event, or counts it as dropped if the buffer is full."""
        if len(self._events) < self._most:
            self._events.append(event)
        else:
            self.dropped += 1

    def drain(self) -> list[RoderExtensionEvent]:
        """Returns and removes all stored events."""
        events, self._events = self._events, []
        return events


EVENTS_HANDLE: Final = Notification(
    "events/handle",
    EventsHandleParams,
    direction="to-extension",
    summary="Sends an extension an event that passes its filter.",
)
EXTENSION_EVENT: Final = Notification(
    "extension/event", RoderExtensionEvent, direction="to-host", summary="Sends the host an event of the extension."
)
