"""Encodes and decodes cigen messages, which are identified by their order alone.

The codec counts frames to know the type of each. The first frame determines its role: the peer that sends it makes all
requests, the other responds. There are no error responses: an error is sent as a result with one diagnostic of level
ERROR, and during the handshake as an empty PluginInfo, which every core rejects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from becket.adapters.cigen.messages import (
    CigenDiagnostic,
    CigenHello,
    CigenMessage,
    GenerateRequest,
    GenerateResult,
    Level,
    PlanRequest,
    PlanResult,
    PluginInfo,
    proto_name,
)
from becket.adapters.cigen.methods import GENERATE, HELLO, PLAN
from becket.adapters.cigen.protobuf import get_codec
from becket.contract.json_narrowing import is_object
from becket.errors import ERROR_CODES, BadMessage, LocalProtocolError, Meaning, NotSupported
from becket.framing.framing import Frame, SkippedFrame
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import NULL_ID, Invalid, Request, Success
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.jsonrpc.protocols import MessageReceiver

__all__ = ["CigenCodec", "get_exchange"]


class Exchange(Struct, frozen=True):
    """Types of a request and its response."""

    name: str
    request_type: type[CigenMessage]
    response_type: type[CigenMessage]


HELLO_EXCHANGE = Exchange(HELLO.name, CigenHello, PluginInfo)
EXCHANGE_CYCLE = (
    Exchange(PLAN.name, PlanRequest, PlanResult),
    Exchange(GENERATE.name, GenerateRequest, GenerateResult),
)
DIAGNOSTIC_CODES = {number: meaning.name for meaning, number in ERROR_CODES.items()}


def get_exchange(number: int) -> Exchange:
    """Returns the exchange with this number, counted from 0."""
    return HELLO_EXCHANGE if number == 0 else EXCHANGE_CYCLE[(number - 1) % len(EXCHANGE_CYCLE)]


class CigenCodec:
    """Codec of one peer of one connection."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._sent_requests = 0
        self._pending_id = NULL_ID  # id of the sent request without a response
        self._received_requests = 0
        self._is_response_due = False  # the last received request has no response yet

    # -- in

    def decode_frames(self, frames: Iterable[Frame | SkippedFrame], inbox: MessageReceiver) -> bool:
        """Passes all messages to `inbox`. There is one request at a time, so nothing is left over."""
        for frame in frames:
            inbox.on_message(frame if isinstance(frame, SkippedFrame) else self.decode(frame))
        return True

    def decode(self, frame: Frame) -> Request | Success | Invalid:
        """Returns the message in the next frame. After an invalid one the following frames cannot be decoded."""
        try:
            return self._decode_response(bytes(frame)) if self._sent_requests else self._decode_request(bytes(frame))
        except BadMessage as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, str(error))

    def _decode_response(self, frame: bytes) -> Success:
        exchange = get_exchange(self._sent_requests - 1)
        if self._pending_id == NULL_ID:
            raise BadMessage(f"a message after the {proto_name(exchange.response_type)}, without a request")
        id, self._pending_id = self._pending_id, NULL_ID
        return Success(id, get_codec(exchange.response_type).decode(frame, self._limits))

    def _decode_request(self, frame: bytes) -> Request:
        exchange = get_exchange(self._received_requests)
        if self._is_response_due:
            before = get_exchange(self._received_requests - 1)
            raise BadMessage(f"a message before the {proto_name(before.response_type)}: there is one request at a time")
        params = get_codec(exchange.request_type).decode(frame, self._limits)
        self._received_requests += 1
        self._is_response_due = True
        return Request(b"%d" % self._received_requests, exchange.name, params)

    # -- out

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        exchange = get_exchange(self._sent_requests)
        self._check_order(method, exchange)
        body = get_codec(exchange.request_type).encode(params or b"{}")
        if len(body) > self._limits.frame:  # before the request is counted
            raise LocalProtocolError(f"frame too large: {len(body)} bytes, the limit is {self._limits.frame}")
        self._sent_requests += 1
        self._pending_id = id
        return body

    def _check_order(self, method: str, exchange: Exchange) -> None:
        if self._received_requests:
            raise NotSupported(f"`{method}`", "a cigen plugin cannot call its core")
        if method not in (HELLO.name, PLAN.name, GENERATE.name):
            raise NotSupported(f"`{method}`", "a cigen plugin has only the methods `plan` and `generate`")
        if self._pending_id != NULL_ID:
            before = get_exchange(self._sent_requests - 1).name
            raise LocalProtocolError(f"`{method}` must wait: `{before}` has no response yet, and cigen has no ids")
        if method != exchange.name:
            order = f"cigen identifies messages by their order, and `{exchange.name}` is next"
            raise LocalProtocolError(f"`{method}` cannot be called now: {order}")

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        raise NotSupported(f"`{method}`", "cigen has no notifications")

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        body = get_codec(get_exchange(self._received_requests - 1).response_type).encode(result)
        self._is_response_due = False
        return body

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        self._is_response_due = False
        exchange = get_exchange(self._received_requests - 1)
        if exchange is HELLO_EXCHANGE:
            return b""
        hint = f"incident {data['incident']}" if is_object(data) and "incident" in data else ""
        diagnostic = CigenDiagnostic(
            Level.ERROR, DIAGNOSTIC_CODES.get(code, str(code)), f"{exchange.name} failed", message, hint
        )
        result: Any = {"diagnostics": [diagnostic]}
        return get_codec(exchange.response_type).encode(encode_json(result))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        raise NotSupported("a batch", "cigen has one message in each frame")
