"""Transport wrappers that split, delay, tear or cut bytes on purpose.

Nothing sleeps: a delay is a number of loop iterations. Example: `memory_pair(left=lambda end: CutReads(end,
cut_after=9))`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

from becket.errors import ConnectionLost, DisconnectReason
from becket.peer.protocols import ConnectionLostFactory, Loop, Receiver, Transport

__all__ = ["CutReads", "CutWrites", "DelayReads", "Fault", "SplitReads", "TornWrites"]

Fault = Callable[[Transport], Transport]
"""Wraps a transport in a faulty one."""


class TransportWrapper:
    """A transport around another one; passes everything unchanged."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self._loop: Loop
        self._receiver: Receiver
        self._is_closed = False

    @property
    def queued(self) -> int:
        """Bytes that were written and have not been sent yet."""
        return self.inner.queued

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        self.inner.start(loop, self)

    def write(self, data: bytes) -> None:
        self.inner.write(data)

    def pause(self) -> None:
        self.inner.pause()

    def resume(self) -> None:
        self.inner.resume()

    def close_writing(self) -> None:
        self.inner.close_writing()

    def close(self) -> None:
        self._is_closed = True
        self.inner.close()

    def data_received(self, data: bytes) -> None:
        """Handles bytes read by the inner transport."""
        self._receiver.data_received(data)

    def write_queue_drained(self) -> None:
        """The inner write queue has become shorter."""
        self._receiver.write_queue_drained()

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """The inner transport has reached its end of input."""
        self._receiver.input_ended(describe)

    def transport_closed(self) -> None:
        """The inner transport is closed."""
        self._receiver.transport_closed()


class SplitReads(TransportWrapper):
    """Delivers what arrives in parts: of `every` bytes, or split at each position of `at` in the stream."""

    def __init__(self, inner: Transport, *, every: int = 0, at: Iterable[int] = ()) -> None:
        super().__init__(inner)
        self._ends = gaps(at) if not every else repeat(every)
        self._left = next(self._ends, 0)

    def data_received(self, data: bytes) -> None:
        while self._left and len(data) > self._left and not self._is_closed:
            part, data = data[: self._left], data[self._left :]
            self._left = next(self._ends, 0)
            self._receiver.data_received(part)
        self._left = max(0, self._left - len(data)) or next(self._ends, 0)
        if not self._is_closed:
            self._receiver.data_received(data)


def gaps(positions: Iterable[int]) -> Iterator[int]:
    """Yields the distances between positions of a stream, from its start."""
    before = 0
    for position in sorted(set(positions)):
        if position > before:
            yield position - before
            before = position


class DelayReads(TransportWrapper):
    """Delivers what arrives, and the end, a number of loop iterations later, in order."""

    def __init__(self, inner: Transport, *, turns: int) -> None:
        super().__init__(inner)
        self._turns = turns
        self._held: deque[tuple[int, Callable[[], None]]] = deque()
        self._turn = 0
        self._is_paused = False

    def pause(self) -> None:
        self._is_paused = True
        super().pause()

    def resume(self) -> None:
        self._is_paused = False
        super().resume()

    def data_received(self, data: bytes) -> None:
        self._hold(lambda: self._receiver.data_received(data))

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        self._hold(lambda: self._receiver.input_ended(describe))

    def _hold(self, hand_on: Callable[[], None]) -> None:
        self._held.append((self._turn + self._turns, hand_on))
        if len(self._held) == 1:
            self._loop.call_soon(self._pass_turn)

    def _pass_turn(self) -> None:
        self._turn += 1
        while self._held and not self._is_closed and not self._is_paused and self._held[0][0] <= self._turn:
            self._held.popleft()[1]()
        if self._held and not self._is_closed:
            self._loop.call_soon(self._pass_turn)


class TornWrites(TransportWrapper):
    """Sends every write in parts of at most `size` bytes, one per loop iteration, like a full pipe."""

    def __init__(self, inner: Transport, *, size: int) -> None:
        super().__init__(inner)
        self._size = size
        self._parts: deque[bytes] = deque()
        self._is_planned = False  # whether the next part is scheduled; a drain callback may write again
        self._waiting = 0
        self._ends_when_empty = False

    @property
    def queued(self) -> int:
        """Bytes that were written and have not been sent yet."""
        return self._waiting + self.inner.queued

    def write(self, data: bytes) -> None:
        self._parts.extend(data[start : start + self._size] for start in range(0, len(data), self._size))
        self._waiting += len(data)
        self._plan()

    def _plan(self) -> None:
        if self._parts and not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self._send_part)

    def _send_part(self) -> None:
        self._is_planned = False
        if self._is_closed:
            return
        part = self._parts.popleft()
        self._waiting -= len(part)
        self.inner.write(part)
        self._plan()
        if not self._parts and self._ends_when_empty:
            self.inner.close_writing()
        self._receiver.write_queue_drained()

    def close_writing(self) -> None:
        if self._parts:
            self._ends_when_empty = True
        else:
            self.inner.close_writing()


class CutReads(TransportWrapper):
    """Cuts the connection when `cut_after` bytes have been read; nothing after those is delivered."""

    def __init__(self, inner: Transport, *, cut_after: int) -> None:
        super().__init__(inner)
        self._left = cut_after
        self._is_cut = False

    def data_received(self, data: bytes) -> None:
        if self._is_cut:
            return
        head = data[: self._left]
        self._left -= len(head)
        if head:
            self._receiver.data_received(head)
        if len(head) < len(data) and not self._is_closed:
            self._is_cut = True
            self._receiver.input_ended(build_cut_error)

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        if not self._is_cut:
            self._receiver.input_ended(describe)


class CutWrites(TransportWrapper):
    """Cuts the connection when `cut_after` bytes have been written; the other peer receives nothing after those."""

    def __init__(self, inner: Transport, *, cut_after: int) -> None:
        super().__init__(inner)
        self._left = cut_after
        self._is_cut = False

    def write(self, data: bytes) -> None:
        if self._is_cut:
            return
        head = data[: self._left]
        self._left -= len(head)
        if head:
            self.inner.write(head)
        if len(head) < len(data):
            self._is_cut = True
            # Not within the write: a real pipe breaks between two loop iterations, or reports it in its own callback.
            self._loop.call_soon(self._report_cut)

    def _report_cut(self) -> None:
        if not self._is_closed:
            self._receiver.input_ended(build_cut_error)

    def data_received(self, data: bytes) -> None:
        if not self._is_cut:
            self._receiver.data_received(data)

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        if not self._is_cut:
            self._receiver.input_ended(describe)


def build_cut_error(detail: str) -> ConnectionLost:
    """Returns the error of a connection that was cut."""
    return ConnectionLost(DisconnectReason.STREAM_ERROR, detail or "cut by the test")
