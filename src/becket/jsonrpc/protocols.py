"""Protocols that a connection needs: codec, message and event receivers, futures.

Protocols and nothing else, imported for their types alone: no program pays for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Raw

from becket.framing.framing import Frame, SkippedFrame
from becket.jsonrpc.connection import InboundRequest, OutboundCall
from becket.jsonrpc.messages import Failure, Message, NotificationMessage

__all__ = ["Codec", "EventReceiver", "FutureLike", "MessageReceiver", "StreamControl"]


# -- for messages


class Codec(Protocol):
    """Frame to message and back, for one protocol."""

    def decode_frames(self, frames: Iterator[Frame | SkippedFrame], inbox: MessageReceiver) -> bool:
        """Puts what the frames of a chunk bring into `inbox`, in order; False means that it is late and some are left.

        It may settle calls and hand over claimed notifications by itself, as `JsonCodec` does, or give every message
        to `inbox.take`. Whatever takes a message may go on with the same iterator."""
        ...

    def encode_value(self, value: object) -> bytes: ...

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes: ...

    def encode_notification(self, method: str, params: bytes | None) -> bytes: ...

    def encode_success(self, id: bytes, result: bytes) -> bytes: ...

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes: ...

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes: ...


class MessageReceiver(Protocol):
    """Where messages go. What a codec needs of a connection for its fast path."""

    calls: dict[int, Any]
    """Calls that wait for their answer, by number: taken out, given their `reply`, and settled."""
    direct_handlers: Mapping[str, Callable[[Raw | None], None]]
    """Who takes which notification at once."""
    on_response: Callable[[Any], object] | None
    """Who is told that the reply of a call is there; where there is nobody, its waiter is."""
    should_yield: Callable[[], bool]
    """Called every few frames: what they were answered with can leave. Where it returns True others wait for their
    turn, and the rest of the frames is put off."""
    clock: Callable[[], float]
    began: float
    until: float
    """When the turn has begun and when it is over: looked at after each message that a function was called for.
    `should_yield` may move the end, if the thread had no core meanwhile."""

    def on_request(self, id: bytes, method: str, params: Raw | None) -> None: ...

    def on_notification(self, method: str, params: Raw | None) -> None: ...

    def on_message(self, message: Message | SkippedFrame) -> None: ...


# -- for events


class EventReceiver(Protocol):
    """Who takes what the other side sends, one event at a time and in order."""

    def on_request(self, request: InboundRequest) -> None: ...

    def on_notification(self, notification: NotificationMessage) -> None: ...

    def on_response(self, call: OutboundCall, /) -> None: ...

    def on_cancel(self, request: InboundRequest) -> None: ...

    def on_anomaly(self, oddity: Failure | SkippedFrame) -> None: ...

    def send(self, frame: bytes) -> None:
        """Takes what the link itself has to say about what it received: refusals and pings."""
        ...


class StreamControl(Protocol):
    """Who takes the events of a call."""

    def renew_deadline(self) -> float:
        """Returns the call's deadline as it is after the last event."""
        ...

    def return_credit(self) -> None:
        """One event that has used up credit is out of the way."""
        ...


class FutureLike(Protocol):
    """Who waits for a call: told when its answer is there or will never come. To be told again means nothing."""

    def set_result(self, result: None, /) -> None: ...
