"""Reads and writes non-blocking descriptors and sockets; queues what the peer does not read.

A transport moves bytes and does not know frames. Nothing here blocks or waits: bytes that the other peer does not read
are queued and counted in `queued`. A receiver gets its bytes in callbacks, in order.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from becket.errors import ConnectionLost, DisconnectReason

if TYPE_CHECKING:
    import socket

    from becket.peer.protocols import ConnectionLostFactory, Loop, Receiver

__all__ = ["FdTransport", "build_error_factory", "build_remote_close"]

SHUT_WR = 1  # as in `socket`, which takes a child 4 ms to import and which pipes do not need
READ_SIZE = 64 * 1024  # larger reads make the kernel and malloc ten times slower for small messages
MAX_WRITEV_BUFFERS = 64  # buffers handed to one writev
MAX_DRAIN_READS = 1024 * 1024 // READ_SIZE + 1  # reads that empty the largest pipe, which may be 16 times the usual one


def is_pollable(fd: int) -> bool:
    """Returns whether the system can poll this descriptor: not so for files and the null device."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISCHR(mode):
        return os.isatty(fd)
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class FdTransport:
    """Two descriptors (or one socket) in non-blocking mode. It owns them."""

    _is_closed = True  # until there is something to close

    def __init__(self, read_fd: int, write_fd: int, *, owner: socket.socket | None = None) -> None:
        self.queued = 0
        self.read_size = READ_SIZE  # its receiver may lower it, if a chunk takes too long
        self.has_reached_eof = False
        self._has_reported_end = False
        self._deliver: Callable[[bytes], object] = drop  # before the start, and when its input is discarded
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._socket = owner  # a socket object closes its one descriptor itself
        self._queue: deque[memoryview] = deque()
        self._is_reading = False
        self._closes_when_drained = False
        self._is_closed = False
        self._is_write_open = True
        self._read_polls = is_pollable(read_fd) if read_fd >= 0 else False
        self._early = b""

    @classmethod
    def from_socket(cls, sock: socket.socket) -> FdTransport:
        """Returns a transport over a connected socket, which it closes in the end."""
        sock.setblocking(False)
        return cls(sock.fileno(), sock.fileno(), owner=sock)

    @property
    def read_fd(self) -> int:
        """The descriptor that it reads from; -1 for a stdin that is closed."""
        return self._read_fd

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        self._deliver = receiver.data_received
        if self._early:
            loop.call_soon(self._receive_early)
        else:
            self.resume()

    # -- reading

    def read_before_start(self, signal_fd: int = -1) -> bytes:
        """Waits for input before there is a loop and returns it; it is delivered again after `start`. Empty at the
        end. `signal_fd` is readable when a signal has arrived, whose handler is to run meanwhile."""
        if self._read_fd < 0:
            return b""
        import select

        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        if signal_fd >= 0:
            poll.register(signal_fd, select.POLLIN)
        while [fd for fd, _ in poll.poll()] == [signal_fd]:
            os.read(signal_fd, 4096)
        data = os.read(self._read_fd, self.read_size)
        self._early += data
        return data

    def _receive_early(self) -> None:
        early, self._early = self._early, b""
        if not self._is_closed:
            self._receiver.data_received(early)
            self.resume()

    def resume(self) -> None:
        if self._is_reading or self._is_closed or self.has_reached_eof:
            return
        self._is_reading = True
        if self._read_polls:
            self._loop.add_reader(self._read_fd, self._read)
        else:
            self._loop.call_soon(self._read_unpolled)

    def pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            if self._read_polls:
                self._loop.remove_reader(self._read_fd)

    def _read(self) -> None:
        try:
            data = os.read(self._read_fd, self.read_size)
        except BlockingIOError:
            return
        except OSError as error:
            self._on_eof(build_error_factory(error))
            return
        if data:
            deliver = self._deliver
            deliver(data)
        else:
            self._on_eof(build_remote_close)

    def _on_eof(self, describe: ConnectionLostFactory) -> None:
        self.pause()
        self.has_reached_eof = True
        self._report_end(describe)

    def _report_end(self, describe: ConnectionLostFactory) -> None:
        if not self._has_reported_end and not self._is_closed:
            self._has_reported_end = True
            self._receiver.input_ended(describe)

    def discard_input(self) -> None:
        """Reads on and drops the bytes, so that the other peer does not block on a reader that has left."""
        self._deliver = drop
        self.resume()

    def _read_unpolled(self) -> None:
        # A file is always ready; one read per turn leaves the loop to others.
        if self._is_reading:
            if self._read_fd < 0:
                self._on_eof(build_remote_close)
                return
            self._read()
            if self._is_reading:
                self._loop.call_soon(self._read_unpolled)

    def drain(self) -> None:
        """Reads the available bytes, even while paused; for a pipe whose other end is known to be gone.

        Another process may hold its end and write for ever: no more is read than a pipe can hold."""
        for _ in range(MAX_DRAIN_READS):
            if self.has_reached_eof or self._is_closed or self._deliver is drop:
                return
            try:
                data = os.read(self._read_fd, READ_SIZE)
            except OSError:
                return
            if not data:
                self.pause()
                self.has_reached_eof = True
                return
            self._receiver.data_received(data)

    # -- writing

    def write(self, data: bytes) -> None:
        if not self._is_write_open:
            return
        if self._queue:
            self._queue.append(memoryview(data))
            self.queued += len(data)
            return
        try:
            written = os.write(self._write_fd, data)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self._on_write_error(error)
            return
        if written < len(data):
            self._queue.append(memoryview(data)[written:])
            self.queued += len(data) - written
            self._loop.add_writer(self._write_fd, self._flush)

    def _flush(self) -> None:
        try:
            written = os.writev(
                self._write_fd, [self._queue[i] for i in range(min(len(self._queue), MAX_WRITEV_BUFFERS))]
            )
        except BlockingIOError:
            return
        except OSError as error:
            self._on_write_error(error)
            return
        self.queued -= written
        while written:
            part = self._queue[0]
            if written < len(part):
                self._queue[0] = part[written:]
                break
            written -= len(part)
            self._queue.popleft()
        if not self._queue:
            self._loop.remove_writer(self._write_fd)
            if self._closes_when_drained:
                self._close_write_end()
        self._receiver.write_queue_drained()

    def _on_write_error(self, error: OSError) -> None:
        self._drop_queue()
        self._close_write_end()
        self._loop.call_soon(lambda: self._report_write_error(error))  # not within the caller's write

    def _report_write_error(self, error: OSError) -> None:
        """Reports the error after the bytes that the other peer sent before it left."""
        self.drain()
        self._report_end(build_error_factory(error))

    def _drop_queue(self) -> None:
        if self._queue:
            self._loop.remove_writer(self._write_fd)
            self._queue.clear()
            self.queued = 0

    def close_writing(self) -> None:
        if self._queue:
            self._closes_when_drained = True
        else:
            self._close_write_end()

    def abort_writing(self) -> None:
        """Ends writing at once; the queue is lost."""
        self._drop_queue()
        self._close_write_end()

    def _close_write_end(self) -> None:
        if not self._is_write_open:
            return
        self._is_write_open = False
        if self._socket is not None:
            try:
                self._socket.shutdown(SHUT_WR)
            except OSError:
                pass  # the other peer was faster
        elif self._write_fd != self._read_fd:
            if hasattr(self, "_loop"):
                self._loop.notify_closing(self._write_fd)
            os.close(self._write_fd)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if hasattr(self, "_loop"):
            self.pause()
            self._drop_queue()
            if self._read_fd >= 0:
                self._loop.notify_closing(self._read_fd)
        self._close_write_end()
        if self._socket is not None:
            self._socket.close()
        elif self._read_fd >= 0:
            os.close(self._read_fd)
        if hasattr(self, "_loop"):
            self._receiver.transport_closed()

    def __del__(self) -> None:
        if not self._is_closed:
            if not sys.is_finalizing():  # else nothing can be imported any more, and the warning cannot be shown
                import warnings

                warnings.warn(f"a link was never closed: {self!r}", ResourceWarning, stacklevel=1, source=self)
            self._is_closed = True
            self._close_fds()

    def _close_fds(self) -> None:
        """Closes its descriptors without its loop, which has ended or never began."""
        if self._socket is not None:
            self._socket.close()
            return
        if self._is_write_open:
            self._is_write_open = False
            os.close(self._write_fd)
        if self._read_fd >= 0 and self._read_fd != self._write_fd:
            os.close(self._read_fd)


def drop(data: bytes) -> None:
    """Drops bytes that no receiver takes."""


def build_remote_close(detail: str) -> ConnectionLost:
    return ConnectionLost(DisconnectReason.REMOTE_CLOSE, detail)


def build_error_factory(error: Exception) -> ConnectionLostFactory:
    def describe(detail: str) -> ConnectionLost:
        lost = ConnectionLost(DisconnectReason.STREAM_ERROR, detail or str(error) or repr(error))
        lost.__cause__ = error
        return lost

    return describe
