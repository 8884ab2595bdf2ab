"""Describes long-running operations, which are acknowledged at once and end with an event.

The request, its acknowledgement and all its events have the same id, which the host chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.adapters.roder.rust_debug import format_text
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import identity
from becket.errors import JSON_ERRORS, Meaning, RpcError
from becket.methods.descriptors import Notification

__all__ = ["MAX_IDLE", "OPERATION_FAILED_CODE", "OperationKind"]

OPERATION_FAILED_CODE: Final = -32000  # for failures by an event, which have no code
MAX_IDLE: Final = 1800.0  # seconds without an event; Roder waits forever, but at most this long for an agent


class OperationKind(Struct, frozen=True, eq=False, kw_only=True):
    """One kind of operation.

    `ack_type` is the class of its acknowledgement; `get_id` returns the id of an acknowledgement, a request or an
    event. `event` is the notification of its events, each wrapped by `wrap`. The last event is either of the class
    `completed`, which `complete` builds from the result and `get_result` converts back, or of the class `failed`, built
    from a message; `explain` returns the message of a failed call."""

    name: str
    ack_type: type[Struct]
    get_id: Callable[[Any], str]
    event: Notification[Any]
    completed: type[Struct]
    failed: type[Struct]
    explain: Callable[[Any, Any], str]
    complete: Callable[[Any], Any] = identity
    get_result: Callable[[Any], Any] = identity
    wrap: Callable[[Any], Any] = identity

    def collect(self, call: Any) -> OperationCollector:
        """Returns a collector for one operation."""
        return OperationCollector(self, call)

    def build_notification(self, event: Any, request: WireRequest) -> WireNotification:
        """Returns the notification of an event of an operation."""
        return WireNotification(self.event.name, self.event.params(self.get_id(request.params), self.wrap(event)))

    def encode_end(
        self, result: Any, error: RpcError | None, request: WireRequest, _: LinkState
    ) -> list[WireNotification]:
        """Returns the last event of an operation."""
        last = self.complete(result) if error is None else self.failed(error.message)
        return [self.build_notification(last, request)]

    def is_event_of(self, raw: Raw, call: object) -> bool:
        """Returns whether an event belongs to this operation."""
        try:
            return self._decode_id(raw) == self.get_id(call)
        except JSON_ERRORS:
            return False

    def check_ack(self, response: Raw, call: object) -> None:
        """Raises `ValueError` for an acknowledgement of another operation."""
        id, expected = self._decode_id(response), self.get_id(call)
        if id != expected:
            raise ValueError(f"acknowledged {self.name} {format_text(id)} but {format_text(expected)} was requested")

    def encode_ack(self, wire_request: WireRequest, state: LinkState) -> Struct:
        """Returns the acknowledgement of a request.

        Raises:
            RpcError: NOT_READY, before the handshake."""
        if state.extra is None:
            raise RpcError(Meaning.NOT_READY, f"not ready: `{wire_request.method.name}` was sent before the handshake")
        return self.ack_type(self.get_id(wire_request.params))

    def _decode_id(self, raw: Raw) -> str:
        return self.get_id(msgspec.json.decode(raw, type=self.ack_type))


class OperationCollector:
    """Waits for the end of one operation: its result, or why it failed."""

    __slots__ = ("_call", "_kind", "_last")

    def __init__(self, kind: OperationKind, call: Any) -> None:
        self._kind = kind
        self._call = call
        self._last: Any = None

    def on_response(self, response: Raw, /) -> None:
        """Checks the acknowledgement."""
        self._kind.check_ack(response, self._call)

    def on_event(self, event: Any, /) -> bool:
        """Handles an event; returns whether it is the last one."""
        self._last = event
        return isinstance(event, (self._kind.completed, self._kind.failed))

    def result(self) -> Any:
        """Returns the result."""
        if isinstance(self._last, self._kind.failed):
            raise RpcError(OPERATION_FAILED_CODE, self._kind.explain(self._call, self._last))
        return self._kind.get_result(self._last)
