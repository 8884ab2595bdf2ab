"""Encodes and decodes cigen messages, which are identified by their order alone.

The codec counts, and so knows of every frame what it is. It finds out by the first frame on which side it stands: who
sends one asks from then on, who gets one answers. Errors have no form of their own: they travel as a result with one
diagnostic of level ERROR, and one in the first exchange as an empty PluginInfo, which every core refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """A request and its answer."""

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
    """Returns which exchange of a conversation this one is, from 0 on."""
    return HELLO_EXCHANGE if number == 0 else EXCHANGE_CYCLE[(number - 1) % len(EXCHANGE_CYCLE)]


class CigenCodec:
    """One side of one conversation."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._sent_requests = 0  # requests of ours
        self._pending_id = NULL_ID  # the id of the one that is not answered
        self._received_requests = 0  # requests of theirs
        self._is_response_due = False  # the last of them is not answered

    # -- in

    def decode_frames(self, frames: Iterator[Frame | SkippedFrame], inbox: MessageReceiver) -> bool:
        """Puts what the frames bring into `inbox`. There is one at a time, so none is ever left."""
        for frame in frames:
            inbox.on_message(frame if isinstance(frame, SkippedFrame) else self.decode(frame))
        return True

    def decode(self, frame: Frame) -> Request | Success | Invalid:
        """Returns the message in the next frame. What cannot be understood leaves no way to understand the rest."""
        try:
            return self._decode_response(bytes(frame)) if self._sent_requests else self._decode_request(bytes(frame))
        except BadMessage as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, str(error))

    def _decode_response(self, frame: bytes) -> Success:
        exchange = get_exchange(self._sent_requests - 1)
        if self._pending_id == NULL_ID:
            raise BadMessage(f"a message after the {proto_name(exchange.response_type)}, and nothing was asked")
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

    def encode_value(self, value: object) -> bytes:
        return encode_json(value)

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        exchange = get_exchange(self._sent_requests)
        self._check_order(method, exchange)
        body = get_codec(exchange.request_type).encode(params or b"{}")
        if len(body) > self._limits.frame:  # before it counts as asked
            raise LocalProtocolError(f"frame too large: {len(body)} bytes, the limit is {self._limits.frame}")
        self._sent_requests += 1
        self._pending_id = id
        return body

    def _check_order(self, method: str, exchange: Exchange) -> None:
        if self._received_requests:
            raise NotSupported(f"`{method}`", "a plugin of cigen answers its core, and asks it nothing")
        if method not in (HELLO.name, PLAN.name, GENERATE.name):
            raise NotSupported(
                f"`{method}`", "a plugin of cigen is asked to `plan` and to `generate`, and nothing else"
            )
        if self._pending_id != NULL_ID:
            before = get_exchange(self._sent_requests - 1).name
            raise LocalProtocolError(f"`{method}` must wait: `{before}` is not answered yet, and cigen has no ids")
        if method != exchange.name:
            order = f"cigen tells messages by their order alone, and `{exchange.name}` is next"
            raise LocalProtocolError(f"`{method}` cannot be asked now: {order}")

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
        told = CigenDiagnostic(
            Level.ERROR, DIAGNOSTIC_CODES.get(code, str(code)), f"{exchange.name} failed", message, hint
        )
        answer: Any = {"diagnostics": [told]}
        return get_codec(exchange.response_type).encode(encode_json(answer))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        raise NotSupported("a batch", "cigen has one message in each frame")
