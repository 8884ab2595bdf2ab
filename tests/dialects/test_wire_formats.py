"""Messages in wire formats of other systems, also those that look like becket's own."""

from __future__ import annotations

import anyio
import pytest

from becket import Peer, Registry
from becket.dialects import Dialect
from becket.errors import RemoteError
from becket.framing import JsonLines
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat, accepts_no_id

pytestmark = pytest.mark.loops

DEAF = Dialect(
    name="deaf", framing=JsonLines, wire_format=WireFormat(accepts_id=accepts_no_id), responds_to_invalid=False
)
STRICT_ABOUT_ERRORS = Dialect(
    name="strict",
    framing=JsonLines,
    wire_format=WireFormat(error_precedence=ErrorPrecedence.ERROR_FIRST, unknown_error="it failed"),
)


class Wire:
    """The remote end of a link: sends the given messages, or responds to requests, and records them."""

    def __init__(self, response: bytes = b"") -> None:
        self.written = bytearray()
        self._answer = response
        self._waiting: list[bytes] = []
        self._more = anyio.Event()

    def feed(self, line: bytes) -> None:
        self._waiting.append(line + b"\n")
        self._more.set()

    async def receive(self) -> bytes:
        while not self._waiting:
            self._more = anyio.Event()
            await self._more.wait()
        return self._waiting.pop(0)

    async def send(self, item: bytes, /) -> None:
        self.written += item
        if self._answer:
            self.feed(self._answer)

    async def aclose(self) -> None:
        pass


async def test_a_request_that_the_wire_format_rejects_reaches_no_handler() -> None:
    methods = Registry()
    served: list[object] = []
    received = anyio.Event()

    @methods.handle("m")
    def serve(params: dict[str, int]) -> None:
        served.append(params)

    @methods.on("n")
    def take(params: dict[str, int]) -> None:
        received.set()

    wire = Wire()
    async with Peer.over(wire, dialect=DEAF, methods=methods):
        for id in (b"1", b'"1"', b"2"):
            wire.feed(b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{"a":1}}' % id)
        wire.feed(b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}')
        with anyio.fail_after(60):
            await received.wait()
    assert served == []
    assert wire.written == b""


@pytest.mark.parametrize(
    "response",
    [
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":null,"result":1}',
    ],
)
async def test_an_error_beside_a_result_fails_the_call(response: bytes) -> None:
    async with Peer.over(Wire(response), dialect=STRICT_ABOUT_ERRORS) as peer:
        with pytest.raises(RemoteError) as failed:
            await peer.call("m", {}, timeout=5)
    assert failed.value.message == "it failed"
