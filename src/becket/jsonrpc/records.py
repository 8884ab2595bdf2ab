"""JSON-RPC connection state, sans I/O: pending calls, inbound requests, batches, closing.

Records without behaviour: the rules are `connection`'s.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw, Struct

from becket.errors import BecketError
from becket.framing.framing import SkippedFrame
from becket.jsonrpc.messages import Failure, NotificationMessage

if TYPE_CHECKING:
    from becket.jsonrpc.protocols import FutureLike, StreamControl

__all__ = [
    "NULL_FUTURE",
    "BatchResponse",
    "CancelRequested",
    "CancelResponse",
    "CancellationFormat",
    "ConnectionEvent",
    "EventBuffer",
    "IdCounter",
    "InboundRequest",
    "OutboundCall",
]


CancelResponse = Literal["answered", "never answered", "answers itself"]
"""What becomes of a request that was cancelled by the side that sent it: it is answered with an error, or with its
result if that was first (LSP); it is never answered (MCP); it is told, and answers with a result of its own (ACP).
(No enum: to make one takes a starting extension a fifth of a millisecond.)"""


class CancellationFormat(Struct, frozen=True):
    """How a dialect says that a request is no longer wanted. Of the methods in `excluded_methods` it does not say
    so."""

    method: str
    member: str = "id"
    response: CancelResponse = "answered"
    excluded_methods: frozenset[str] = frozenset()


class IdCounter(Struct):
    """The numbers of calls, one after the other. Links that share one never give the same number twice."""

    last: int = 0


class NullFuture:
    """Settles nothing: where nobody waits, or does so no more."""

    def set_result(self, _: None, /) -> None:
        """Nobody wants to know."""


NULL_FUTURE = NullFuture()


class OutboundCall(Struct, eq=False):  # seen by the collector: its error holds a traceback, and that the call
    """A call of ours. It comes out of `receive` once, as the event of its answer: `result` or `error` is set then."""

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


class InboundRequest(Struct, eq=False, gc=False):
    """A request of theirs. It is open until it was answered, or until its link has ended."""

    id: bytes
    key: bytes
    method: str
    params: Raw | None
    batch: BatchResponse | None = None
    deadline: float = inf
    depth: int = 0
    credit: int | None = None
    is_cancelled: bool = False
    is_response_suppressed: bool = False  # cancelled, where that means that it is never answered, whatever comes of it
    chain: tuple[Any, ...] = ()  # the gates of those on whose behalf it was made, beside its own link's
    has_parent: bool = False  # it says to which call of ours it belongs
    has_unknown_parent: bool = False  # it claims to belong to a call of ours that is not open
    handling: tuple[str, ...] = ()  # the callers whose requests they handle meanwhile, where it names no parent
    is_answered: bool = False  # before its function has ended
    driver_state: Any = None  # whatever its driver runs it with
    held: int = 0  # bytes of the link's budget, until it is answered


class CancelRequested(Struct, frozen=True):
    """They no longer want the answer to this request of theirs, which is still open."""

    request: InboundRequest


class BatchResponse:
    """The answers to one batch, sent together when the last is there."""

    __slots__ = ("bodies", "held", "missing", "size")

    def __init__(self) -> None:
        self.bodies: list[tuple[bytes, bytes]] = []  # id and answer; the answers are dropped once they are too large
        self.size = 0  # of all answers
        self.held = 0  # bytes of the link's budget
        self.missing = 0


ConnectionEvent = InboundRequest | NotificationMessage | OutboundCall | CancelRequested | Failure | SkippedFrame
"""Their request or notification; our call with its answer; a cancellation; an error without a call; a dropped frame."""


class EventBuffer:
    """Takes events into a list, for whoever looks at them later."""

    def __init__(self) -> None:
        self.events: list[ConnectionEvent] = []
        self.outgoing: list[bytes] = []

    def on_request(self, request: InboundRequest) -> None:
        self.events.append(request)

    def on_notification(self, notification: NotificationMessage) -> None:
        self.events.append(notification)

    def on_response(self, call: OutboundCall) -> None:
        self.events.append(call)

    def on_cancel(self, request: InboundRequest) -> None:
        self.events.append(CancelRequested(request))

    def on_anomaly(self, oddity: Failure | SkippedFrame) -> None:
        self.events.append(oddity)

    def send(self, frame: bytes) -> None:
        self.outgoing.append(frame)
