"""Protocols that a connection needs: codec, message and event receivers.

Types only: imported for type checking alone, at no cost at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from msgspec import Raw

from becket.framing.framing import Frame, SkippedFrame
from becket.jsonrpc.call_protocols import FutureLike
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.messages import Failure, NotificationMessage, SingleMessage

__all__ = ["BatchReceiver", "Codec", "DirectHandler", "DirectRoute", "DirectRoutes", "EventReceiver", "MessageReceiver"]

DirectHandler: TypeAlias = Callable[[bytes], bool]
"""Receives the params of an event; returns False, without an effect, for bytes that are not one JSON value of its
type."""

DirectRoute: TypeAlias = tuple[bytes, int, bytes, int, DirectHandler]
"""The beginning of a frame, and its size; the beginning of its params, and where in the frame they go on; the
handler."""


# -- for messages


class Codec(Protocol):
    """Frame to message and back, for one protocol."""

    def decode_frames(
        self, frames: Iterator[Frame | SkippedFrame] | list[Frame | SkippedFrame], inbox: MessageReceiver
    ) -> bool:
        """Delivers the messages of these frames to `inbox`, in order: those of a list all at once; those of an
        iterator until the turn is over, and returns False if some are left then.

        It may settle calls and deliver notifications to their subscriber directly, as `JsonCodec` does, or pass every
        message to `inbox.on_message`. A receiver of a message may continue with the same iterator."""
        ...

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes: ...

    def encode_notification(self, method: str, params: bytes | None) -> bytes: ...

    def encode_success(self, id: bytes, result: bytes) -> bytes: ...

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes: ...

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes: ...


class DirectRoutes(Protocol):
    """The routes of events by the beginning of their frame."""

    last: DirectRoute | None
    """That of the last event, tried first; None if there are no handlers."""

    def find(self, frame: bytes, /) -> DirectRoute | None: ...


class MessageReceiver(Protocol):
    """The destination of decoded messages, with what a codec's fast path needs of a connection."""

    calls: dict[Any, Any]
    """Pending calls by number: removed, given their `result`, and settled."""
    wake: Callable[[FutureLike], object] | None
    """Called with the future of a call whose response has arrived; None calls `on_response` instead."""
    should_yield: Callable[[], bool]
    """Called every few frames: sends the responses so far. If it returns True the turn is over, and the remaining
    frames are deferred."""
    clock: Callable[[], float]
    began: float
    until: float
    """Begin and end of the turn, checked after each message for which a function was called. `should_yield` may move
    the end, if the thread had no core meanwhile."""

    @property
    def direct_handlers(self) -> DirectRoutes:
        """The events that are delivered directly."""
        ...

    def on_request(self, id: bytes, method: str, params: Raw | None) -> None: ...

    def on_notification(self, method: str, params: Raw | None) -> None: ...

    def on_response(self, call: Any, /) -> object: ...

    def on_message(self, message: SingleMessage | SkippedFrame) -> None: ...

    def begin_batch(self) -> BatchReceiver:
        """Returns the receiver for the members of a batch."""
        ...


class BatchReceiver(MessageReceiver, Protocol):
    """Receives the members of one batch."""

    def end_batch(self) -> None:
        """All members were received."""
        ...


# -- for events


class EventReceiver(Protocol):
    """Receives the events of the other peer, one at a time and in order."""

    def on_request(self, request: InboundRequest) -> None: ...

    def on_notification(self, notification: NotificationMessage) -> None: ...

    def on_response(self, call: OutboundCall, /) -> None: ...

    def on_cancel(self, request: InboundRequest) -> None: ...

    def on_anomaly(self, oddity: Failure | SkippedFrame) -> None: ...

    def send(self, frame: bytes) -> None:
        """Sends the connection's own messages: error responses and responses to pings."""
        ...
