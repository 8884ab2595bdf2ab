"""Defines the Protocols that a link depends on: transport, receiver, inbound handler. Types only.

Protocols and nothing else, imported for their types alone: no program pays for them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

from becket.errors import ConnectionLost
from becket.jsonrpc.connection import InboundRequest
from becket.jsonrpc.messages import NotificationMessage
from becket.peer.transport.rate import Account, Charge, Ledger

__all__ = [
    "AdjustableReader",
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
    """One task waits, one callback lets it go on. To do so again means nothing."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def __await__(self) -> Generator[Any, None, None]: ...


class Loop(Protocol):
    """What a link asks of its event loop. Everything but `run_in_thread` and `wait_shielded` returns at once."""

    is_reentrant: bool
    """Whether a plain function can wait for the link: it then runs the loop itself, within the link's own callback."""

    workers: int
    """How many worker threads the link has at most; the link sets it before it uses one."""

    ledger: Ledger
    """What the links of this loop have used of its time."""
    charge: Charge
    """Charges the link for a turn that the loop does not know of."""

    @property
    def is_at_nesting_limit(self) -> bool:
        """Whether so many of them wait within each other that the next one must run in a thread of its own."""
        ...

    @property
    def is_in_handler(self) -> bool:
        """Whether a function that nests runs at this moment. From any thread."""
        ...

    def time(self) -> float: ...

    def call_soon(self, function: Callable[[], object], /) -> object: ...

    def call_after_wakeups(self, function: Callable[[], object], /) -> object:
        """The same, once those have gone on who were woken by now."""
        ...

    def run_turn(self, function: Callable[[], object], /) -> None:
        """Calls a function of the link, which is charged for it as for what its readers do."""
        ...

    def charge_to(self, account: Account, charge: Charge) -> None:
        """Calls `charge` with the processor time of each turn of the link, and with how long it took, while others
        share the loop."""
        ...

    def call_from_thread(self, function: Callable[[], object], /) -> object:
        """The same, from whatever thread."""
        ...

    def call_later(self, delay: float, function: Callable[[], object], /) -> Timer: ...

    def add_reader(self, fd: int, function: Callable[[], object], /) -> object: ...

    def remove_reader(self, fd: int, /) -> object: ...

    def add_writer(self, fd: int, function: Callable[[], object], /) -> object: ...

    def remove_writer(self, fd: int, /) -> object: ...

    def notify_closing(self, fd: int) -> None:
        """Nobody waits for this descriptor any more: it may be closed."""
        ...

    def create_future(self) -> LoopFuture: ...

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        """Starts a coroutine that catches its own errors. Where the loop can, it runs to its first wait at once."""
        ...

    def spawn_owned(self, coroutine: Coroutine[Any, Any, None], /) -> TaskHandle:
        """The same for a coroutine that whoever asks keeps hold of, and cancels in the end."""
        ...

    def cancel(self, running: Any, /) -> None:
        """Cancels what was spawned, at what it waits for now; where it has shielded itself, when that is over."""
        ...

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Runs a plain function in a worker. A cancelled caller still waits for it: a thread cannot be stopped."""
        ...

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns what a thread may run in place of a function that would have run inline: never beside another one."""
        ...

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        """Returns whether this is the cancellation of another task, for which the running one has waited."""
        ...

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        """Waits although cancelled; the cancellation is raised afterwards. Only for waits that are bounded."""
        ...

    def close(self) -> None:
        """Releases what the loop holds for this link and cancels what still runs."""
        ...


# -- for bytes


ConnectionLostFactory = Callable[[str], ConnectionLost]
"""Makes the reason of an end from a detail that the receiver may know: what was cut off."""


class Receiver(Protocol):
    """Who gets the bytes."""

    def data_received(self, data: bytes) -> None: ...

    def write_queue_drained(self) -> None:
        """The queue has become shorter."""
        ...

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """No more bytes will come, for this reason. Said at most once, and not after `close`."""
        ...

    def transport_closed(self) -> None:
        """Nothing of a closed transport is left: no descriptor, no task, no process. Said once, after `close`."""
        ...


class Transport(Protocol):
    """One byte link, used by one receiver."""

    @property
    def queued(self) -> int:
        """Bytes that were written here and have not left yet."""
        ...

    def start(self, loop: Loop, receiver: Receiver) -> None: ...

    def write(self, data: bytes) -> None: ...

    def pause(self) -> None:
        """Stops reading: the other side will feel it."""
        ...

    def resume(self) -> None: ...

    def close_writing(self) -> None:
        """Tells the other side that no more comes, once the queue is empty."""
        ...

    def close(self) -> None:
        """Ends it at once; what is queued is lost. May be called twice."""
        ...


class ByteStream(Protocol):
    """What `Peer.over` takes: any byte stream of anyio, or an object with these three."""

    async def receive(self) -> bytes: ...

    async def send(self, item: bytes, /) -> None: ...

    async def aclose(self) -> None: ...


class AdjustableReader(Protocol):
    """Something that is read a piece at a time."""

    read_size: int


# -- for messages


class InboundHandler(Protocol):
    """Who serves what the other side sends."""

    def running(self) -> list[object]:
        """Returns an object for each handler that has begun and has not returned."""
        ...

    def on_request(self, request: InboundRequest) -> None: ...

    def on_notification(self, notification: NotificationMessage) -> None: ...

    def on_cancel(self, request: InboundRequest) -> None: ...

    def on_deadline(self, request: InboundRequest) -> None: ...

    def close(self, requests: list[InboundRequest]) -> None: ...


class LongLivedStream(Protocol):
    """A stream that goes on although its request was answered: no table of calls knows of it."""

    def expire(self, now: float, /) -> float:
        """Ends it if its time is over; returns when that will be."""
        ...

    def disconnect(self, lost: ConnectionLost, /) -> None:
        """Ends it with the link."""
        ...
