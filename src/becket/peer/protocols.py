"""Defines the Protocols that a link depends on: transport, receiver, inbound handler.

Types only: imported for type checking alone, at no cost at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

from becket.errors import BecketError, ConnectionLost
from becket.jsonrpc.call_protocols import FutureLike
from becket.jsonrpc.calls import InboundRequest
from becket.jsonrpc.messages import NotificationMessage
from becket.peer.transport.fair_share import Account, Charge, Ledger

__all__ = [
    "ByteStream",
    "ConnectionLostFactory",
    "InboundHandler",
    "LongLivedStream",
    "Loop",
    "LoopFuture",
    "Receiver",
    "TaskHandle",
    "Timer",
    "Transport",
]


# -- for time and tasks


class Timer(Protocol):
    """A callback that will run later."""

    def cancel(self) -> None: ...


class TaskHandle(Protocol):
    """A coroutine that runs on its own."""

    def cancel(self) -> object: ...


class LoopFuture(Protocol):
    """A future that one task awaits, and that `Loop.wake` sets."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def __await__(self) -> Generator[Any, None, None]: ...


class Loop(Protocol):
    """The event loop of a link. All methods but `run_in_thread` and `wait_shielded` return at once."""

    is_reentrant: bool
    """Whether a plain function can wait for the link: it then runs the loop itself, within the link's own callback."""

    workers: int
    """The maximum number of worker threads of the link, which sets it before it uses one."""

    ledger: Ledger
    """The processor time that the links of this loop have used."""
    charge: Charge
    """Charges the link for a turn that the loop does not measure."""

    @property
    def is_at_nesting_limit(self) -> bool:
        """Whether so many functions wait within each other that the next one must run in a thread of its own."""
        ...

    @property
    def is_in_handler(self) -> bool:
        """Whether a nested function runs at this moment. From any thread."""
        ...

    def time(self) -> float: ...

    def call_soon(self, function: Callable[[], object], /) -> object: ...

    def call_after_wakeups(self, function: Callable[[], object], /) -> object:
        """The same, after the tasks woken so far have run."""
        ...

    def run_turn(self, function: Callable[[], object], /) -> None:
        """Calls a function of the link, and charges the link as for its read callbacks."""
        ...

    def charge_to(self, account: Account, charge: Charge) -> None:
        """Calls `charge` with the processor time and the duration of each turn of the link, while others share the
        loop."""
        ...

    def call_from_thread(self, function: Callable[[], object], /) -> object:
        """The same, from any thread."""
        ...

    def call_later(self, delay: float, function: Callable[[], object], /) -> Timer: ...

    def add_reader(self, fd: int, function: Callable[[], object], /) -> object: ...

    def remove_reader(self, fd: int, /) -> object: ...

    def add_writer(self, fd: int, function: Callable[[], object], /) -> object: ...

    def remove_writer(self, fd: int, /) -> object: ...

    def notify_closing(self, fd: int) -> None:
        """Prepares a descriptor, which has no waiter any more, for being closed."""
        ...

    def create_future(self) -> LoopFuture: ...

    def wake(self, waiter: FutureLike, /) -> None:
        """Sets a future, so that what awaits it resumes. Has no effect if it is done."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        """Starts a coroutine that catches its own errors. Where the loop can, it runs to its first wait at once."""
        ...

    def spawn_owned(self, coroutine: Coroutine[Any, Any, None], /) -> TaskHandle:
        """The same for a coroutine that the caller owns, and cancels in the end."""
        ...

    def cancel(self, running: Any, /) -> None:
        """Cancels a spawned coroutine at its current wait; if that is shielded, after the shield."""
        ...

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Runs a plain function in a worker. A cancelled caller still waits for it: a thread cannot be stopped."""
        ...

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function for a thread that calls `function` under the link's lock, as if it ran inline."""
        ...

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        """Returns whether this is the cancellation of another task that the running one awaits."""
        ...

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        """Waits although cancelled; the cancellation is raised afterwards. Only for bounded waits."""
        ...

    def close(self) -> None:
        """Releases the loop's resources for this link and cancels what still runs."""
        ...


# -- for bytes


ConnectionLostFactory = Callable[[str], ConnectionLost]
"""Builds the reason of an end from a detail that the receiver may know: the partial frame."""


class Receiver(Protocol):
    """The consumer of a transport's bytes."""

    def data_received(self, data: bytes) -> None: ...

    def write_queue_drained(self) -> None:
        """Called when the queue has become shorter."""
        ...

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Called at most once, and not after `close`: no more bytes come, for this reason."""
        ...

    def transport_closed(self) -> None:
        """Called once, after `close`: no descriptor, task or process of the transport is left."""
        ...


class Transport(Protocol):
    """One byte link with one receiver."""

    @property
    def queued(self) -> int:
        """Bytes that were written here and have not left yet."""
        ...

    def start(self, loop: Loop, receiver: Receiver) -> None: ...

    def write(self, data: bytes) -> None: ...

    def pause(self) -> None:
        """Stops reading, which slows the other peer down."""
        ...

    def resume(self) -> None: ...

    def close_writing(self) -> None:
        """Closes the sending direction once the queue is empty."""
        ...

    def close(self) -> None:
        """Closes it at once; the queue is lost. May be called twice."""
        ...


class ByteStream(Protocol):
    """The argument of `Peer.over`: any byte stream of anyio, or an object with these three methods."""

    async def receive(self) -> bytes: ...

    async def send(self, item: bytes, /) -> None: ...

    async def aclose(self) -> None: ...


# -- for messages


class InboundHandler(Protocol):
    """Serves the messages of the other peer."""

    def running(self) -> list[object]:
        """Returns an object for each handler that has begun and has not returned."""
        ...

    def on_request(self, request: InboundRequest) -> None: ...

    def on_notification(self, notification: NotificationMessage) -> None: ...

    def on_cancel(self, request: InboundRequest) -> None: ...

    def on_deadline(self, request: InboundRequest) -> None: ...

    def close(self, requests: list[InboundRequest]) -> None: ...


class LongLivedStream(Protocol):
    """A stream that outlives its call, whose response only acknowledged it."""

    @property
    def group(self) -> str:
        """That of its call."""
        ...

    def close_with(self, error: BecketError, /) -> None:
        """Ends it with this error, and cancels it at the other peer."""
        ...

    def expire(self, now: float, /) -> float:
        """Ends it if its deadline has passed; returns the deadline."""
        ...

    def disconnect(self, lost: ConnectionLost, /) -> None:
        """Ends it with the link."""
        ...
