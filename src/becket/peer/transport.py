"""Where bytes come from and go to: the descriptors of the system.

A transport moves bytes and knows nothing of frames. Nothing here blocks and nothing waits: what the other side does not
take is queued and counted, and whoever writes looks at `queued`. A receiver gets its bytes in callbacks, in order.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from typing import TYPE_CHECKING

from becket.errors import ConnectionLost, DisconnectReason

if TYPE_CHECKING:
    import socket

    from becket.peer.roles import Describe, Loop, Receiver
    from becket.rpc.roles import Settles

__all__ = ["FdTransport", "closed_remotely", "failure", "wake"]

SHUT_WR = 1  # as in `socket`, which takes a child 4 ms to import and which pipes do not need
READ_SIZE = 64 * 1024  # asking for more makes the kernel and malloc ten times slower for small messages
WRITE_PARTS = 64  # buffers handed to one writev
FULL_PIPE = 1024 * 1024 // READ_SIZE + 1  # reads that empty the largest pipe, which may be 16 times the usual one


def is_pollable(fd: int) -> bool:
    """Returns whether the system can tell when this descriptor is ready: not so for files and the null device."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISCHR(mode):
        return os.isatty(fd)
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class FdTransport:
    """Two descriptors (or one socket) in non-blocking mode. It owns them."""

    _is_closed = True  # until there is something to close

    def __init__(self, read_fd: int, write_fd: int, *, owner: socket.socket | None = None) -> None:
        self.queued = 0
        self.read_size = READ_SIZE  # its receiver may lower it, where a piece takes it too long
        self.has_ended = False
        self._has_told = False
        self._discards = False
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._owner = owner  # a socket object closes its one descriptor itself
        self._queue: deque[memoryview] = deque()
        self._is_reading = False
        self._ends_when_empty = False
        self._is_closed = False
        self._is_write_open = True
        self._read_polls = is_pollable(read_fd) if read_fd >= 0 else False
        self._early = b""

    @classmethod
    def of_socket(cls, sock: socket.socket) -> FdTransport:
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
        if self._early:
            loop.call_soon(self._receive_early)
        else:
            self.resume()

    # -- reading

    def read_early(self) -> bytes:
        """Waits for input before there is a loop and returns it; it comes again after `start`. Empty at the end."""
        if self._read_fd < 0:
            return b""
        if self._read_polls:
            import select

            poll = select.poll()
            poll.register(self._read_fd, select.POLLIN)
            poll.poll()
        data = os.read(self._read_fd, self.read_size)
        self._early += data
        return data

    def _receive_early(self) -> None:
        early, self._early = self._early, b""
        if not self._is_closed:
            self._receiver.data_received(early)
            self.resume()

    def resume(self) -> None:
        if self._is_reading or self._is_closed or self.has_ended:
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
            self._end(failure(error))
            return
        if data:
            if not self._discards:
                self._receiver.data_received(data)
        else:
            self._end(closed_remotely)

    def _end(self, describe: Describe) -> None:
        self.pause()
        self.has_ended = True
        self._tell(describe)

    def _tell(self, describe: Describe) -> None:
        if not self._has_told and not self._is_closed:
            self._has_told = True
            self._receiver.transport_ended(describe)

    def discard_input(self) -> None:
        """Reads on and drops what comes: the other side shall not wait for a reader that has left."""
        self._discards = True
        self.resume()

    def _read_unpolled(self) -> None:
        # A file is always ready; one read a turn leaves the loop to the others.
        if self._is_reading:
            if self._read_fd < 0:
                self._end(closed_remotely)
                return
            self._read()
            if self._is_reading:
                self._loop.call_soon(self._read_unpolled)

    def drain(self) -> None:
        """Reads what is there now, even while paused; for a pipe whose other side is known to be gone.

        Somebody else may hold its end and write for ever: no more is read than a pipe can hold."""
        for _ in range(FULL_PIPE):
            if self.has_ended or self._is_closed or self._discards:
                return
            try:
                data = os.read(self._read_fd, READ_SIZE)
            except OSError:
                return
            if not data:
                self.pause()
                self.has_ended = True
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
            self._fail_writing(error)
            return
        if written < len(data):
            self._queue.append(memoryview(data)[written:])
            self.queued += len(data) - written
            self._loop.add_writer(self._write_fd, self._flush)

    def _flush(self) -> None:
        try:
            written = os.writev(self._write_fd, [self._queue[i] for i in range(min(len(self._queue), WRITE_PARTS))])
        except BlockingIOError:
            return
        except OSError as error:
            self._fail_writing(error)
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
            if self._ends_when_empty:
                self._close_write_end()
        self._receiver.room_made()

    def _fail_writing(self, error: OSError) -> None:
        self._drop_queue()
        self._close_write_end()
        self._loop.call_soon(lambda: self._end_after(error))  # not from within whoever writes

    def _end_after(self, error: OSError) -> None:
        """What they said before they left has come, and is taken first."""
        self.drain()
        self._tell(failure(error))

    def _drop_queue(self) -> None:
        if self._queue:
            self._loop.remove_writer(self._write_fd)
            self._queue.clear()
            self.queued = 0

    def close_writing(self) -> None:
        if self._queue:
            self._ends_when_empty = True
        else:
            self._close_write_end()

    def close_now(self) -> None:
        """Ends writing at once; what is queued is lost."""
        self._drop_queue()
        self._close_write_end()

    def _close_write_end(self) -> None:
        if not self._is_write_open:
            return
        self._is_write_open = False
        if self._owner is not None:
            try:
                self._owner.shutdown(SHUT_WR)
            except OSError:
                pass  # the other side was faster
        elif self._write_fd != self._read_fd:
            if hasattr(self, "_loop"):
                self._loop.closing(self._write_fd)
            os.close(self._write_fd)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if hasattr(self, "_loop"):
            self.pause()
            self._drop_queue()
            if self._read_fd >= 0:
                self._loop.closing(self._read_fd)
        self._close_write_end()
        if self._owner is not None:
            self._owner.close()
        elif self._read_fd >= 0:
            os.close(self._read_fd)
        if hasattr(self, "_loop"):
            self._receiver.transport_gone()

    def __del__(self) -> None:
        if not self._is_closed:
            if not sys.is_finalizing():  # else nothing can be imported any more, and nobody reads it
                import warnings

                warnings.warn(f"a link was never closed: {self!r}", ResourceWarning, stacklevel=1, source=self)
            self._is_closed = True
            self._let_go()

    def _let_go(self) -> None:
        """Closes what it holds without its loop, which has ended or never began."""
        if self._owner is not None:
            self._owner.close()
            return
        if self._is_write_open:
            self._is_write_open = False
            os.close(self._write_fd)
        if self._read_fd >= 0 and self._read_fd != self._write_fd:
            os.close(self._read_fd)


def closed_remotely(detail: str) -> ConnectionLost:
    return ConnectionLost(DisconnectReason.REMOTE_CLOSE, detail)


def failure(error: Exception) -> Describe:
    def describe(detail: str) -> ConnectionLost:
        lost = ConnectionLost(DisconnectReason.STREAM_ERROR, detail or str(error) or repr(error))
        lost.__cause__ = error
        return lost

    return describe


def wake(waiter: Settles | None) -> None:
    if waiter is not None:
        waiter.set_result(None)
