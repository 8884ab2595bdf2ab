"""Describes long-running operations, which are acknowledged at once and end with an event.

The request, its acknowledgement and each of its events bear one id, which the host has chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.adapters.roder.rust_debug import format_text
from becket.dialects.mapping import LinkState, WireRequest
from becket.errors import JSON_ERRORS, Meaning, RpcError

__all__ = ["MAX_IDLE", "OPERATION_FAILED_CODE", "OperationKind"]

OPERATION_FAILED_CODE: Final = -32000  # the number of what failed by an event, which has none
MAX_IDLE: Final = 1800.0  # seconds without an event; Roder itself waits for ever, and for no agent longer than this


class OperationKind(Struct, frozen=True, eq=False):
    """The id of one kind of work: what it is called, the class of its acknowledgement, and where the id stands in that
    and in the params of the request."""

    name: str
    ack_type: type[Struct]
    get_id: Callable[[Any], str]

    def is_event_of(self, raw: Raw, call: object) -> bool:
        """Returns whether an event is of this work."""
        try:
            return self._decode_id(raw) == self.get_id(call)
        except JSON_ERRORS:
            return False

    def check_ack(self, answer: Raw, call: object) -> None:
        """Raises ValueError for an acknowledgement of something else."""
        given, wanted = self._decode_id(answer), self.get_id(call)
        if given != wanted:
            raise ValueError(f"acknowledged {self.name} {format_text(given)} but {format_text(wanted)} was requested")

    def encode_ack(self, wire_request: WireRequest, state: LinkState) -> Struct:
        """Returns the acknowledgement of a request.

        Raises:
            RpcError: NOT_READY, before the handshake."""
        if state.extra is None:
            raise RpcError(Meaning.NOT_READY, f"not ready: `{wire_request.method.name}` was sent before the handshake")
        return self.ack_type(self.get_id(wire_request.params))

    def _decode_id(self, raw: Raw) -> str:
        return self.get_id(msgspec.json.decode(raw, type=self.ack_type))
