"""A link over a byte stream of the program's own: of anyio, or whatever has the same three methods."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

from becket.peer.transport import closed_remotely, failure, wake

if TYPE_CHECKING:
    from becket.peer.roles import ByteStream, Loop, Receiver, Waiter

__all__ = ["StreamTransport"]

CLOSE_GRACE = 2.0  # for a stream that says goodbye when it is closed, as TLS does


class StreamTransport:
    """A byte stream of the program's own. One task reads, one writes: a frame is never torn by a cancelled caller."""

    def __init__(self, stream: ByteStream, *, close_grace: float = CLOSE_GRACE) -> None:
        self.queued = 0
        self._stream = stream
        self._close_grace = close_grace
        self._queue: deque[bytes] = deque()
        self._wanted: Waiter | None = None
        self._resumed: Waiter | None = None
        self._is_paused = False
        self._is_closed = False
        self._has_told = False
        self._ends_when_empty = False

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        loop.call_soon(self._begin)

    def _begin(self) -> None:
        if not self._is_closed:
            self._tasks = [self._loop.spawn(self._read()), self._loop.spawn(self._write())]

    async def _read(self) -> None:
        import anyio

        try:
            while not self._is_closed:
                if self._is_paused:
                    self._resumed = self._loop.create_waiter()
                    await self._resumed
                    continue
                data = await self._stream.receive()
                if not data or self._is_closed:
                    break
                began, used = monotonic(), thread_time()
                self._receiver.data_received(data)
                self._loop.charge(thread_time() - used, monotonic() - began)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            pass
        except Exception as error:  # whatever a stream of somebody else raises: the link must not wait for it
            self._report(error)
            return
        if not self._is_closed and not self._has_told:
            self._has_told = True
            self._receiver.transport_ended(closed_remotely)

    async def _write(self) -> None:
        try:
            while not self._is_closed:
                if not self._queue:
                    if self._ends_when_empty:
                        await self._end_writing()
                        return
                    self._wanted = self._loop.create_waiter()
                    await self._wanted
                    continue
                data = b"".join(self._queue)
                self._queue.clear()
                await self._stream.send(data)
                self.queued -= len(data)
                self._receiver.room_made()
        except Exception as error:
            self._report(error)

    async def _end_writing(self) -> None:
        send_eof: Callable[[], Any] | None = getattr(self._stream, "send_eof", None)
        if send_eof is not None:
            await send_eof()

    def _report(self, error: Exception) -> None:
        if not self._is_closed and not self._has_told:
            self._has_told = True
            self._receiver.transport_ended(failure(error))

    def write(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._queue.append(data)
        self.queued += len(data)
        wake(self._wanted)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        wake(self._resumed)

    def close_writing(self) -> None:
        self._ends_when_empty = True
        wake(self._wanted)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if hasattr(self, "_loop"):
            for task in getattr(self, "_tasks", ()):
                task.cancel()
            self._loop.spawn(self._close_stream())

    async def _close_stream(self) -> None:
        import anyio

        try:
            with anyio.move_on_after(self._close_grace):
                await self._stream.aclose()
        except Exception:
            pass  # it may well be broken: that is why it is closed
        finally:
            self._receiver.transport_gone()
