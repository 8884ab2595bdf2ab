"""Observes the frames of a running link: wraps its framing and transport only while it is observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from becket.framing.framing import SkippedFrame

if TYPE_CHECKING:
    from becket.framing.framing import Frame, Framing
    from becket.peer.link import Link
    from becket.peer.protocols import Transport

__all__ = ["Observer", "tap"]

Observer = Callable[[bool, bytes], object]
"""Called with whether the frame is inbound, and its body. It runs within the link's turn and must not raise."""


def tap(link: Link, observe: Observer) -> Callable[[], None]:
    """Observes a link from now on, including a partly received frame; returns a function that stops it."""
    connection: Any = link.connection
    observed = connection.framing
    if not isinstance(observed, ObservedFraming):
        observed = connection.framing = ObservedFraming(connection.framing)
        written: Any = ObservedTransport(link.transport, link, observed.observers)
        link.transport = written
    observers = observed.observers
    observers.append(observe)

    def end() -> None:
        if observe in observers:
            observers.remove(observe)
            if not observers:
                connection.framing = observed.framing
                link.transport = getattr(link.transport, "transport", link.transport)

    return end


class ObservedFraming:
    """The framing of a link, with observers of inbound frames."""

    def __init__(self, framing: Framing) -> None:
        self.framing: Any = framing
        self.observers: list[Observer] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.framing, name)

    def feed(self, data: bytes) -> list[Frame | SkippedFrame]:
        """Returns the frames that this chunk completes."""
        frames: list[Frame | SkippedFrame] = self.framing.feed(data)
        for frame in frames:
            if not isinstance(frame, SkippedFrame):
                for observe in self.observers:
                    observe(True, bytes(frame))
        return frames


class ObservedTransport:
    """The transport of a link, with observers of outbound frames: whole ones, often several at once."""

    def __init__(self, transport: Transport, link: Link, observers: list[Observer]) -> None:
        self.transport: Any = transport
        self._link = link
        self._observers = observers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        """Sends frames."""
        self.transport.write(data)
        for frame in self._link.dialect.framing(self._link.limits).feed(data):
            if not isinstance(frame, SkippedFrame):
                for observe in self._observers:
                    observe(False, bytes(frame))
