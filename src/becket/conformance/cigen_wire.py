"""The wire codec of cigen: scripts in JSON, frames in protobuf, whose types follow from their positions."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from becket.adapters.cigen.codec import get_exchange
from becket.adapters.cigen.messages import CigenMessage
from becket.adapters.cigen.protobuf import get_codec
from becket.conformance.wire_codec import LIMITS, Received
from becket.errors import BadMessage
from becket.framing import LengthPrefixed, SkippedFrame

__all__ = ["CigenWire"]

NAMES: Final = {exchange.name: exchange for exchange in (get_exchange(number) for number in range(3))}


class CigenWire:
    """Length-prefixed protobuf of one connection.

    A request of a script names its message in `method`; the response to it gets the request's id. A frame that arrives
    without a request of the suite is the next request of a core, with its position as id."""

    def __init__(self) -> None:
        self._framing = LengthPrefixed(LIMITS)
        self._has_failed = False
        self._sent: deque[tuple[Any, type[CigenMessage]]] = deque()  # requests of the suite without a response
        self._received = 0  # requests of the program
        self._framed = 0  # frames of the suite; if it is the plugin, each is the next response

    def encode(self, message: Any) -> bytes:
        """Returns the frame of a request by its method, or of the response to the last request."""
        if "method" in message:
            exchange = NAMES[message["method"]]
            self._sent.append((message.get("id"), exchange.response_type))
            return self._encode(exchange.request_type, message.get("params"))
        return self._encode(get_exchange(self._framed).response_type, message.get("result"))

    def _encode(self, kind: type[CigenMessage], value: Any) -> bytes:
        return self.frame(get_codec(kind).encode(json.dumps(value or {}).encode()))

    def write(self, message: Any) -> str:
        """Returns a message as the JSON that stands for it in a conversation."""
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"))

    def frame(self, body: bytes) -> bytes:
        """Returns a frame with this body."""
        self._framed += 1
        return self._framing.encode(body)

    def feed(self, data: bytes) -> Iterator[Received]:
        """Yields the messages that these bytes complete, and the violations in them."""
        for frame in self._framing.feed(data):
            yield (
                Received("", problem=str(frame.error))
                if isinstance(frame, SkippedFrame)
                else self._decode(bytes(frame))
            )
        if self._framing.error is not None and not self._has_failed:
            self._has_failed = True
            yield Received("", problem=f"stdout is not framed: {self._framing.error}")

    def _decode(self, frame: bytes) -> Received:
        try:
            if self._sent:
                id, kind = self._sent.popleft()
                message: dict[str, Any] = {"id": id, "result": self._read(kind, frame)}
            else:
                exchange = get_exchange(self._received)
                self._received += 1
                message = {
                    "id": self._received,
                    "method": exchange.name,
                    "params": self._read(exchange.request_type, frame),
                }
        except BadMessage as error:
            return Received(frame.hex(" "), problem=str(error))
        return Received(self.write(message), message)

    def _read(self, kind: type[CigenMessage], frame: bytes) -> Any:
        return json.loads(bytes(get_codec(kind).decode(frame, LIMITS)))

    def end(self) -> str:
        """Returns what is wrong if the output ends here."""
        error = None if self._has_failed else self._framing.end()
        return f"the output ends inside a frame: {error}" if error else ""
