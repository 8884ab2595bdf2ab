"""Carries a link over an anyio byte stream, or any object with receive, send and aclose."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

from becket.peer.transport.fd import build_error_factory, build_remote_close

if TYPE_CHECKING:
    from becket.peer.protocols import ByteStream, Loop, LoopFuture, Receiver

__all__ = ["StreamTransport"]

CLOSE_GRACE = 2.0  # seconds for a stream with a closing handshake, such as TLS


class StreamTransport:
    """A byte stream of the program's own. One task reads, one writes: a cancelled caller never splits a frame."""

    def __init__(self, stream: ByteStream, *, close_grace: float = CLOSE_GRACE) -> None:
        self.queued = 0
        self._stream = stream
        self._close_grace = close_grace
        self._queue: deque[bytes] = deque()
        self._write_future: LoopFuture | None = None
        self._resume_future: LoopFuture | None = None
        self._is_paused = False
        self._is_closed = False
        self._has_reported_end = False
        self._closes_when_drained = False

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        loop.call_soon(self._start_tasks)

    def _start_tasks(self) -> None:
        if not self._is_closed:
            self._tasks = [self._loop.spawn(self._read()), self._loop.spawn(self._write())]

    async def _read(self) -> None:
        import anyio

        try:
            while not self._is_closed:
                if self._is_paused:
                    self._resume_future = self._loop.create_future()
                    await self._resume_future
                    continue
                data = await self._stream.receive()
                if not data or self._is_closed:
                    break
                began, used = monotonic(), thread_time()
                self._receiver.data_received(data)
                self._loop.charge(thread_time() - used, monotonic() - began)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            pass
        except Exception as error:  # whatever a custom stream raises: the link must not wait for it
            self._report_error(error)
            return
        if not self._is_closed and not self._has_reported_end:
            self._has_reported_end = True
            self._receiver.input_ended(build_remote_close)

    async def _write(self) -> None:
        try:
            while not self._is_closed:
                if not self._queue:
                    if self._closes_when_drained:
                        await self._end_writing()
                        return
                    self._write_future = self._loop.create_future()
                    await self._write_future
                    continue
                data = b"".join(self._queue)
                self._queue.clear()
                await self._stream.send(data)
                self.queued -= len(data)
                self._receiver.write_queue_drained()
        except Exception as error:
            self._report_error(error)

    async def _end_writing(self) -> None:
        send_eof: Callable[[], Any] | None = getattr(self._stream, "send_eof", None)
        if send_eof is not None:
            await send_eof()

    def _report_error(self, error: Exception) -> None:
        if not self._is_closed and not self._has_reported_end:
            self._has_reported_end = True
            self._receiver.input_ended(build_error_factory(error))

    def write(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._queue.append(data)
        self.queued += len(data)
        self._wake(self._write_future)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._wake(self._resume_future)

    def _wake(self, waiter: LoopFuture | None) -> None:
        if waiter is not None:
            self._loop.wake(waiter)

    def close_writing(self) -> None:
        self._closes_when_drained = True
        self._wake(self._write_future)

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
            pass  # it is closed because it may be broken
        finally:
            self._receiver.transport_closed()
