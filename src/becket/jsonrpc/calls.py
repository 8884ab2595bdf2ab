"""Calls in both directions: the record of a pending call, of an inbound request and of a batch of responses."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Raw, Struct

from becket.errors import BadReply, BecketError, RemoteError
from becket.jsonrpc.frame_cache import NO_PREFIXES, NotificationPrefixes

if TYPE_CHECKING:
    from becket.jsonrpc.call_protocols import FutureLike, StreamControl

__all__ = [
    "CLOSED",
    "NULL_FUTURE",
    "OPEN",
    "RESPONDED",
    "BatchResponse",
    "CancelResponse",
    "CancellationFormat",
    "IdCounter",
    "InboundRequest",
    "OutboundCall",
    "RequestState",
    "has_response",
]

CancelResponse = Literal["sent", "never sent", "sent by the handler"]
"""The response to a request that its caller has cancelled: an error, or its result if that was first (LSP); none
(MCP); a result of its own, from the handler that sees the cancellation (ACP)."""


class CancellationFormat(Struct, frozen=True):
    """How a dialect sends a cancellation. Requests of the methods in `excluded_methods` are not cancelled."""

    method: str
    member: str = "id"
    response: CancelResponse = "sent"
    excluded_methods: frozenset[str] = frozenset()


class IdCounter:
    """The numbers of calls, in sequence. Links that share a counter never use the same number twice."""

    __slots__ = ("last",)

    def __init__(self, last: int = 0) -> None:
        self.last = last


class NullFuture:
    """Settles nothing, for a call without a waiter."""

    def done(self) -> bool:
        return False

    def set_result(self, _: None, /) -> None:
        """Does nothing."""


NULL_FUTURE = NullFuture()


class OutboundCall(Struct, eq=False):  # tracked by the collector: its error refers to a traceback, and that to the call
    """An outbound call. `receive` returns it once, as the event of its response: `result` or `error` is set then."""

    method: str
    future: FutureLike
    deadline: float = inf
    timeout: float = inf
    number: int = 0
    id: bytes = b""  # the same as it is sent
    result: Raw | None = None
    error: BecketError | None = None
    stream: StreamControl | None = None
    chain: tuple[Any, ...] = ()  # the gates of those on whose behalf it is made
    group: str = ""  # the calls that end together, if they are ended: see `Link.end_calls`


RequestState = Literal["open", "responded", "closed"]
"""The state of an inbound request."""

OPEN: Final = "open"
"""Its response is to be sent."""
RESPONDED: Final = "responded"
"""Its response was sent, and its handler goes on."""
CLOSED: Final = "closed"
"""It is over, or its link has ended."""


class InboundRequest(Struct, eq=False, gc=False):
    """An inbound request, filed under its id, or under a number if the id is null or in use."""

    id: bytes
    key: bytes | int
    method: str
    params: Raw | None
    batch: BatchResponse | None = None
    state: RequestState = OPEN
    deadline: float = inf
    depth: int = 0
    credit: int | None = None
    is_cancelled: bool = False
    is_response_suppressed: bool = False  # cancelled, if a cancelled request gets no response
    chain: tuple[Any, ...] = ()  # the gates of those on whose behalf it was made, beside its own link's
    has_parent: bool = False  # the outbound call that it names as its parent
    has_unknown_parent: bool = False  # it names a parent that is not pending
    handling: tuple[str, ...] = ()  # if it names no parent: the callers whose requests the other peer handles meanwhile
    driver_state: Any = None  # the driver's own state
    held: int = 0  # bytes of the link's budget, until its response
    event_prefixes: NotificationPrefixes = NO_PREFIXES  # of its events, which carry its id


class BatchResponse:
    """The responses to one batch, sent together when the last one is there."""

    __slots__ = ("bodies", "held", "missing", "size")

    def __init__(self) -> None:
        self.bodies: list[tuple[bytes, bytes]] = []  # id and response; dropped once they are too large
        self.size = 0  # of all responses
        self.held = 0  # bytes of the link's budget
        self.missing = 1  # responses, and the end of the batch


def has_response(call: OutboundCall) -> bool:
    """Returns whether the other peer has responded to a call."""
    return call.result is not None or isinstance(call.error, RemoteError | BadReply)
