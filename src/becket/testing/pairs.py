"""In-memory pairs: two connected peers, or a host and an extension, in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, Unpack

from becket.dialects import NATIVE
from becket.peer.options import PeerOptions
from becket.peer.peer import Peer
from becket.peer.protocols import Loop, Receiver
from becket.peer.transport.fd import build_remote_close
from becket.testing.faults import Fault

if TYPE_CHECKING:
    from becket.extension.server import ExtensionServer
    from becket.host.extension import Extension
    from becket.host.starting.connect import ExtensionOptions

__all__ = ["MemoryTransport", "connected", "memory_pair", "memory_transports"]

S = TypeVar("S", bound="ExtensionServer")


class MemoryTransport:
    """One end of a connection in memory. What is written arrives at the other end in the next loop iteration."""

    def __init__(self) -> None:
        self.queued = 0
        self.other: MemoryTransport
        self._inbox: deque[bytes] = deque()
        self._receiver: Receiver | None = None
        self._loop: Loop | None = None
        self._is_paused = False
        self._is_planned = False
        self._has_ended_input = False
        self._has_reported_end = False
        self._has_ended_output = False
        self._is_closed = False

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        self._plan()

    def write(self, data: bytes) -> None:
        if not self._has_ended_output:
            self.queued += len(data)
            self.other.accept(data)

    def accept(self, data: bytes) -> None:
        """Receives what the other end has written; drops it if this end is closed."""
        if self._is_closed:
            self.other.on_read(len(data))
        else:
            self._inbox.append(data)
            self._plan()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._plan()

    def close_writing(self) -> None:
        if not self._has_ended_output:
            self._has_ended_output = True
            self.other.end_input()

    def end_input(self) -> None:
        """The other end will write no more."""
        self._has_ended_input = True
        self._plan()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.close_writing()
        lost = sum(map(len, self._inbox))
        self._inbox.clear()
        self.other.on_read(lost)
        if self._receiver is not None:
            self._receiver.transport_closed()

    def _plan(self) -> None:
        if self._loop is not None and not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_planned = False
        assert self._receiver is not None
        while self._inbox and not self._is_paused and not self._is_closed:
            data = self._inbox.popleft()
            self.other.on_read(len(data))
            self._receiver.data_received(data)
        if self._has_ended_input and not self._inbox and not self._is_closed and not self._has_reported_end:
            self._has_reported_end = True
            self._receiver.input_ended(build_remote_close)

    def on_read(self, size: int) -> None:
        """The other end has read `size` bytes."""
        self.queued -= size
        if self._receiver is not None and not self._is_closed:
            self._receiver.write_queue_drained()


def memory_transports() -> tuple[MemoryTransport, MemoryTransport]:
    """Returns the two ends of a connection in memory."""
    left, right = MemoryTransport(), MemoryTransport()
    left.other, right.other = right, left
    return left, right


@asynccontextmanager
async def memory_pair(
    *,
    left: Fault | None = None,
    right: Fault | None = None,
    left_options: PeerOptions | None = None,
    right_options: PeerOptions | None = None,
    **options: Unpack[PeerOptions],
) -> AsyncGenerator[tuple[Peer, Peer], None]:
    """Yields two connected peers and closes them.

    `left` and `right` wrap their transports in faults (see `becket.testing.faults`). The options are those of
    `Peer.over`: for both, or for one of them."""
    ours: PeerOptions = {**options, **(left_options or {})}
    theirs: PeerOptions = {**options, **(right_options or {})}
    one, other = memory_transports()
    async with (
        Peer.over(left(one) if left else one, **ours) as left_peer,
        Peer.over(right(other) if right else other, **theirs) as right_peer,
    ):
        yield left_peer, right_peer


@asynccontextmanager
async def connected(
    server: S, *, id: str | None = None, **options: Unpack[ExtensionOptions]
) -> AsyncGenerator[tuple[Extension, S], None]:
    """Yields the host's handle on an extension, after the handshake, and the extension itself; then closes both.

    The options are those of `connect_extension`: `grants`, `config`, `store`, `audit` and the others. Both use the
    given `dialect`. Blocking functions of the extension run in threads, as in a process of their own.

    Raises:
        HandshakeFailed: the extension does not start, or its declarations violate the contract.
    """
    from becket.host.starting.connect import connect_extension_over  # imported here so that `memory_pair` stays light

    ours, theirs = memory_transports()
    async with (
        server.over(theirs, dialect=options.get("dialect", NATIVE), limits=options.get("limits")),
        connect_extension_over(ours, id=server.id if id is None else id, **options) as extension,
    ):
        yield extension, server
