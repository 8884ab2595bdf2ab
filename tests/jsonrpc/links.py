"""The remote end of a link for the tests of the connection: writes and reads plain JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from becket.errors import ConnectionLost, DisconnectReason
from becket.framing import ContentLength, FramingFactory, SkippedFrame
from becket.jsonrpc.calls import CancellationFormat, CancelResponse, InboundRequest, OutboundCall
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import Connection, ConnectionEvent
from becket.jsonrpc.protocols import DirectHandler
from becket.limits import Limits

LOST = ConnectionLost(DisconnectReason.REMOTE_CLOSE, "over")


class Waiter:
    """Counts how often a call was settled."""

    def __init__(self) -> None:
        self.settled = 0

    def done(self) -> bool:
        return self.settled > 0

    def set_result(self, result: None, /) -> None:
        self.settled += 1


def link(
    framing: FramingFactory = ContentLength,
    *,
    rule: CancelResponse | None = "sent",
    member: str = "id",
    limits: dict[str, Any] | None = None,
    **options: Any,
) -> Connection:
    """Returns a new connection, with the cancellation of LSP by default."""
    chosen = Limits(**(limits or {}))
    cancelling = None if rule is None else CancellationFormat("$/cancelRequest", member, rule)
    return Connection(framing(chosen), JsonCodec(chosen), limits=chosen, cancellation=cancelling, **options)


def append_json(seen: list[Any]) -> DirectHandler:
    """Returns a direct handler that appends params to `seen` if they are JSON."""

    def handle(params: bytes) -> bool:
        try:
            msgspec.json.decode(params)
        except msgspec.DecodeError:
            return False
        seen.append(params)
        return True

    return handle


def frame(*values: object) -> bytes:
    """Returns the frames of these values, or of these texts as they are."""
    framing = ContentLength()
    bodies = (value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in values)
    return b"".join(framing.encode(body.encode()) for body in bodies)


def read(data: bytes) -> list[Any]:
    """Returns the messages of these frames."""
    frames = ContentLength().feed(data)
    return [json.loads(bytes(body)) for body in frames if not isinstance(body, SkippedFrame)]


def request(id: object, method: str = "echo", **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **members}


def notification(method: str, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": method, **members}


def success(id: object, result: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def failure(id: object, code: int = -1, message: str = "no", **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **members}}


def call(connection: Connection, method: str = "echo", params: bytes | None = None) -> OutboundCall:
    """Opens a call; what it sends is thrown away."""
    opened = OutboundCall(method, Waiter())
    connection.open_call(opened, params)
    return opened


def receive(connection: Connection, *values: object, now: float = 0.0) -> list[ConnectionEvent]:
    return connection.receive(frame(*values), now)


def receive_request(connection: Connection, id: object = 1, **members: object) -> InboundRequest:
    """Lets a request arrive and returns it."""
    (event,) = receive(connection, request(id, **members))
    assert isinstance(event, InboundRequest)
    return event


def sent_messages(connection: Connection) -> list[Any]:
    """Returns what the link itself has sent since the last time."""
    return read(connection.data_to_send())


def codes(responses: list[Any]) -> list[tuple[object, object]]:
    """Returns id and error number of each response."""
    return [(response["id"], response["error"]["code"]) for response in responses]
