"""Messages by their place: Hello, then PlanRequest and GenerateRequest in turn, each answered before the next is sent.

The codec counts, and so knows of every frame what it is. It finds out by the first frame on which side it stands: who
sends one asks from then on, who gets one answers. Errors have no form of their own: they travel as a result with one
diagnostic of level ERROR, and one in the first exchange as an empty PluginInfo, which every core refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from becket.contract.shapes import is_object
from becket.dialects.cigen.messages import (
    Diagnostic,
    GenerateRequest,
    GenerateResult,
    Hello,
    Level,
    Message,
    PlanRequest,
    PlanResult,
    PluginInfo,
)
from becket.dialects.cigen.protobuf import form_of
from becket.dialects.cigen.words import GENERATE, HELLO, PLAN
from becket.errors import NUMBERS, BadMessage, LocalProtocolError, Meaning, NotSupported
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.json_values import encode_json
from becket.rpc.messages import NULL_ID, Invalid, Request, Success
from becket.wire.framing import Frame, Skipped

if TYPE_CHECKING:
    from becket.rpc.roles import Inbox

__all__ = ["CigenCodec", "exchange_at"]


class Exchange(Struct, frozen=True):
    """A request and its answer."""

    name: str
    asked: type[Message]
    answered: type[Message]


OPENING = Exchange(HELLO.name, Hello, PluginInfo)
TURNS = (Exchange(PLAN.name, PlanRequest, PlanResult), Exchange(GENERATE.name, GenerateRequest, GenerateResult))
CODES = {number: meaning.name for meaning, number in NUMBERS.items()}


def exchange_at(number: int) -> Exchange:
    """Returns which exchange of a conversation this one is, from 0 on."""
    return OPENING if number == 0 else TURNS[(number - 1) % len(TURNS)]


class CigenCodec:
    """One side of one conversation."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._asked = 0  # requests of ours
        self._waiting = NULL_ID  # the id of the one that is not answered
        self._heard = 0  # requests of theirs
        self._is_open = False  # the last of them is not answered

    # -- in

    def read(self, frames: Iterator[Frame | Skipped], inbox: Inbox) -> bool:
        """Puts what the frames bring into `inbox`. There is one at a time, so none is ever left."""
        for frame in frames:
            inbox.take(frame if isinstance(frame, Skipped) else self.decode(frame))
        return True

    def decode(self, frame: Frame) -> Request | Success | Invalid:
        """Returns the message in the next frame. What cannot be understood leaves no way to understand the rest."""
        try:
            return self._take_answer(bytes(frame)) if self._asked else self._take_request(bytes(frame))
        except BadMessage as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, str(error))

    def _take_answer(self, frame: bytes) -> Success:
        exchange = exchange_at(self._asked - 1)
        if self._waiting == NULL_ID:
            raise BadMessage(f"a message after the {exchange.answered.__name__}, and nothing was asked")
        id, self._waiting = self._waiting, NULL_ID
        return Success(id, form_of(exchange.answered).decode(frame, self._limits))

    def _take_request(self, frame: bytes) -> Request:
        exchange = exchange_at(self._heard)
        if self._is_open:
            before = exchange_at(self._heard - 1)
            raise BadMessage(f"a message before the {before.answered.__name__}: there is one request at a time")
        params = form_of(exchange.asked).decode(frame, self._limits)
        self._heard += 1
        self._is_open = True
        return Request(b"%d" % self._heard, exchange.name, params)

    # -- out

    def encode_value(self, value: object) -> bytes:
        return encode_json(value)

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        exchange = exchange_at(self._asked)
        self._check_turn(method, exchange)
        body = form_of(exchange.asked).encode(params or b"{}")
        if len(body) > self._limits.frame:  # before it counts as asked
            raise LocalProtocolError(f"frame too large: {len(body)} bytes, the limit is {self._limits.frame}")
        self._asked += 1
        self._waiting = id
        return body

    def _check_turn(self, method: str, exchange: Exchange) -> None:
        if self._heard:
            raise NotSupported(f"`{method}`", "a plugin of cigen answers its core, and asks it nothing")
        if method not in (HELLO.name, PLAN.name, GENERATE.name):
            raise NotSupported(
                f"`{method}`", "a plugin of cigen is asked to `plan` and to `generate`, and nothing else"
            )
        if self._waiting != NULL_ID:
            before = exchange_at(self._asked - 1).name
            raise LocalProtocolError(f"`{method}` must wait: `{before}` is not answered yet, and cigen has no ids")
        if method != exchange.name:
            order = f"cigen tells messages by their order alone, and `{exchange.name}` is next"
            raise LocalProtocolError(f"`{method}` cannot be asked now: {order}")

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        raise NotSupported(f"`{method}`", "cigen has no notifications")

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        body = form_of(exchange_at(self._heard - 1).answered).encode(result)
        self._is_open = False
        return body

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        self._is_open = False
        exchange = exchange_at(self._heard - 1)
        if exchange is OPENING:
            return b""
        hint = f"incident {data['incident']}" if is_object(data) and "incident" in data else ""
        told = Diagnostic(Level.ERROR, CODES.get(code, str(code)), f"{exchange.name} failed", message, hint)
        answer: Any = {"diagnostics": [told]}
        return form_of(exchange.answered).encode(encode_json(answer))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        raise NotSupported("a batch", "cigen has one message in each frame")
