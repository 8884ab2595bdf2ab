"""The hand-written floor, without its I/O: frames, envelopes, dispatch.

As fast as pure Python with msgspec gets, and nothing else: no cancellation, no timeouts, no limits, no order
between handlers, no error mapping. A failure ends the process. Imports no event loop, so that the blocking floor
starts as fast as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import msgspec

__all__ = ["CHUNK", "Call", "Count", "Echo", "Endpoint", "Settles", "Tick", "Usage"]

CHUNK = 64 * 1024  # one read or one joined write: what a pipe holds; larger reads cost more than they bring
HEADERS = 4_096  # distinct headers remembered


class Echo(msgspec.Struct, gc=False):
    text: str


class Tick(msgspec.Struct, gc=False):
    seq: int
    text: str


class Count(msgspec.Struct, gc=False):
    """Requests so many events or calls with that text; the response is the same."""

    count: int
    text: str


class Usage(msgspec.Struct, gc=False):
    pid: int
    cpu: float


class Envelope(msgspec.Struct, gc=False):
    """Any incoming message. Params and result stay bytes until the type of their method is known."""

    method: str | None = None
    id: int | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw | None = None


class Call(msgspec.Struct, gc=False):
    id: int
    method: str
    params: Any
    jsonrpc: str = "2.0"


class Notification(msgspec.Struct, gc=False):
    method: str
    params: Any
    jsonrpc: str = "2.0"


class Reply(msgspec.Struct, gc=False):
    id: int
    result: Any
    jsonrpc: str = "2.0"


class Settles(Protocol):
    """What waits for a reply: an asyncio Future, or the like of another loop."""

    def set_result(self, result: Any, /) -> None: ...


encode = msgspec.json.Encoder().encode
decode_envelope = msgspec.json.Decoder(Envelope).decode

Decode = Callable[[Any], Any]
Handler = Callable[[Any], Any]
Starter = Callable[[int, Coroutine[Any, Any, Any]], None]


class Endpoint:
    """Takes chunks through `receive`, hands joined frames to `write`, which the driver supplies."""

    def __init__(self) -> None:
        self.handlers: dict[str, tuple[Decode, Handler, bool]] = {}
        self.decoders: dict[type, Decode] = {}
        self.pending: dict[int, tuple[Settles, Decode]] = {}
        self.last_id = 0
        self.headers: dict[bytes, int] = {}
        self.header_size = 0
        self.parts: list[bytes] = []  # of a message that is not complete
        self.missing = 0  # bytes until it is; 1 while its header is not
        self.queue: list[bytes] = []
        self.queued = 0
        self.is_reading = False  # replies of one chunk leave together
        self.has_written = False  # in this turn of the loop: the first message leaves at once, the others together

    # -- what a driver supplies

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def start(self, call_id: int, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Runs an asynchronous handler and replies with what it returns."""
        raise NotImplementedError

    def flush_soon(self) -> None:
        """Has `flush` called at the end of this turn of the loop."""
        raise NotImplementedError

    # -- what a program uses

    def handle(self, method: str, params: Any, handler: Handler, *, is_async: bool = False) -> None:
        self.handlers[method] = (self.decoder_of(params), handler, is_async)

    def request(self, method: str, params: Any, returns: type, waiter: Settles) -> None:
        self.last_id = call_id = self.last_id + 1
        self.pending[call_id] = (waiter, self.decoders.get(returns) or self.decoder_of(returns))
        self.send(encode(Call(call_id, method, params)))

    def notify(self, method: str, params: Any) -> None:
        self.send(encode(Notification(method, params)))

    def reply(self, call_id: int, result: Any) -> None:
        self.send(encode(Reply(call_id, result)))

    # -- bytes out

    def send(self, body: bytes) -> None:
        frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        if self.is_reading or self.has_written:
            queue = self.queue
            if not queue and not self.is_reading:
                self.flush_soon()
            queue.append(frame)
            self.queued += len(frame)
            if self.queued >= CHUNK:
                self.write(b"".join(queue))
                queue.clear()
                self.queued = 0
        else:
            self.has_written = True
            self.write(frame)

    def flush(self) -> None:
        self.has_written = False
        if queue := self.queue:
            self.write(queue[0] if len(queue) == 1 else b"".join(queue))
            queue.clear()
            self.queued = 0

    # -- bytes in

    def receive(self, data: bytes) -> None:
        if self.missing:
            self.parts.append(data)
            self.missing -= len(data)
            if self.missing > 0:
                return
            data = b"".join(self.parts)
            self.parts.clear()
            self.missing = 0

        self.is_reading = True
        self.has_written = False
        headers = self.headers
        pos, size = 0, len(data)
        while pos < size:
            # The whole header is the key: a hit is byte for byte a header that was parsed before.
            start = pos + self.header_size
            length = headers.get(data[pos:start])
            if length is None:
                end = data.find(b"\r\n\r\n", pos)
                if end < 0:
                    self.missing = 1
                    break
                start = end + 4
                self.header_size = start - pos
                length = self.length_of(data[pos:start])
            stop = start + length
            if stop > size:
                self.missing = stop - size
                break
            message = decode_envelope(data[start:stop])
            pos = stop

            method = message.method
            if method is None:
                if message.id is None or message.error is not None:
                    raise RuntimeError("the other peer responded with an error")
                waiter, decode = self.pending.pop(message.id)
                waiter.set_result(decode(message.result))
            else:
                decode, handler, is_async = self.handlers[method]
                response = handler(decode(message.params))
                call_id = message.id
                if call_id is None:
                    continue
                if is_async:
                    self.start(call_id, response)
                else:
                    self.send(encode(Reply(call_id, response)))
        if pos < size:
            self.parts.append(data[pos:] if pos else data)
        self.is_reading = False
        if self.queue:
            self.flush()

    def length_of(self, header: bytes) -> int:
        length = self.headers.get(header)
        if length is None:
            if len(self.headers) >= HEADERS:
                self.headers.clear()
            name, _, value = header.partition(b":")
            if name != b"Content-Length":
                raise RuntimeError(f"not a header of ours: {header!r}")
            length = self.headers[header] = int(value)
        return length

    def decoder_of(self, type_: Any) -> Decode:
        decode = self.decoders[type_] = msgspec.json.Decoder(type_).decode
        return decode
