"""Where bytes come from and go to: descriptors of the system, and streams that a program brings itself.

A transport moves bytes and knows nothing of frames. Nothing here blocks and nothing waits: what the other side does not
take is queued and counted, and whoever writes looks at `queued`. A receiver gets its bytes in callbacks, in order.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from becket.errors import ConnectionLost, DisconnectReason
from becket.peer.loops import Loop, Waiter
from becket.rpc.records import Settles

if TYPE_CHECKING:
    import socket

__all__ = [
    "ByteStream",
    "Describe",
    "FdTransport",
    "Receiver",
    "StreamTransport",
    "Transport",
    "closed_remotely",
    "wake",
]

SHUT_WR = 1  # as in `socket`, which takes a child 4 ms to import and which pipes do not need
READ_SIZE = 64 * 1024  # asking for more makes the kernel and malloc ten times slower for small messages
WRITE_PARTS = 64  # buffers handed to one writev
CLOSE_GRACE = 2.0  # for a stream that says goodbye when it is closed, as TLS does
FULL_PIPE = 1024 * 1024 // READ_SIZE + 1  # reads that empty the largest pipe, which may be 16 times the usual one


Describe = Callable[[str], ConnectionLost]
"""Makes the reason of an end from a detail that the receiver may know: what was cut off."""


class Receiver(Protocol):
    """Who gets the bytes."""

    def data_received(self, data: bytes) -> None: ...

    def room_made(self) -> None:
        """The queue has become shorter."""
        ...

    def transport_ended(self, describe: Describe) -> None:
        """No more bytes will come, for this reason. Said at most once, and not after `close`."""
        ...

    def transport_gone(self) -> None:
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


class ByteStream(Protocol):
    """What `Peer.over` takes: any byte stream of anyio, or an object with these three."""

    async def receive(self) -> bytes: ...

    async def send(self, item: bytes, /) -> None: ...

    async def aclose(self) -> None: ...


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
                self._receiver.data_received(data)
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


def wake(waiter: Settles | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
