"""A child process as a transport: its pipes, its stderr and its exit, watched on an event loop and ended in order."""

from __future__ import annotations

import os

from becket.errors import ConnectionLost, DisconnectReason
from becket.limits import Limits
from becket.peer.loops import Loop, Waiter, unexpected
from becket.peer.process import Child, Pipes
from becket.peer.transport import READ_SIZE, Describe, FdTransport, Receiver, wake

__all__ = ["ChildTransport"]


class ChildTransport:
    """The stdin and stdout of a child. Closing it ends the child, and nothing of its session remains."""

    def __init__(self, child: Child, pipes: Pipes, limits: Limits) -> None:
        self.child = child
        self._pipe = FdTransport(pipes.stdout, pipes.stdin)
        self._stderr = pipes.stderr
        self._limits = limits
        self._reason: Describe | None = None
        self._has_told = False
        self._is_closing = False
        self._exit_waiter: Waiter | None = None

    @property
    def queued(self) -> int:
        """Bytes that the child has not taken yet."""
        return self._pipe.queued

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._loop = loop
        self._receiver = receiver
        self.data_received = receiver.data_received
        self.room_made = receiver.room_made
        self.write = self._pipe.write
        self.pause = self._pipe.pause
        self.resume = self._pipe.resume
        self._pipe.start(loop, self)
        loop.add_reader(self._stderr, self._read_stderr)
        loop.add_reader(self.child.pidfd, self._note_exit)

    # Bound to the pipe's own in `start`: a message passes through no function of this class.
    def data_received(self, data: bytes) -> None: ...

    def room_made(self) -> None: ...

    def write(self, data: bytes) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close_writing(self) -> None:
        self._pipe.close_writing()

    # -- what is noticed

    def transport_ended(self, describe: Describe) -> None:
        """A pipe has ended. A process that ends closes its pipes first: its exit gets a moment to tell more."""
        self._reason = self._reason or describe
        if self.child.has_exited:
            self._tell()
        else:
            self._loop.call_later(self._limits.drain_grace, self._tell)

    def transport_gone(self) -> None:
        """The pipes are closed; the process is looked after in `_stop`."""

    def _note_exit(self) -> None:
        self._loop.remove_reader(self.child.pidfd)
        self.child.note_exit()
        self._pipe.drain()
        self._drain_stderr()
        wake(self._exit_waiter)
        if self._pipe.has_ended:
            self._tell()
        else:  # a grandchild holds the pipe: it gets a moment and no more
            self._loop.call_later(self._limits.drain_grace, self._tell)

    def _tell(self) -> None:
        if self._has_told or self._is_closing:
            return
        self._has_told = True
        if self.child.has_exited:
            self._receiver.transport_ended(self.child.crash)
        else:
            self._receiver.transport_ended(self._reason or ended_without_reason)

    def _read_stderr(self) -> bool:
        """Takes one chunk of stderr and returns whether there may be more."""
        if self._stderr < 0:
            return False
        try:
            data = os.read(self._stderr, READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        now = self._loop.time()
        if data:
            self.child.log.feed(data, now)
            return True
        self.child.log.end(now)
        self._close_stderr()
        return False

    def _drain_stderr(self) -> None:
        for _ in range(
            self._limits.stderr_tail // READ_SIZE + 16
        ):  # a pipe holds 64 KiB, or 1 MiB where it was enlarged
            if not self._read_stderr():
                return

    def _close_stderr(self) -> None:
        if self._stderr >= 0:
            self._loop.remove_reader(self._stderr)
            self._loop.closing(self._stderr)
            os.close(self._stderr)
            self._stderr = -1

    # -- the end

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.spawn(self._stop())

    async def _stop(self) -> None:
        """Closes stdin, then asks, then kills; every wait is bounded."""
        child, limits = self.child, self._limits
        try:
            self.data_received = discard  # it may still be writing, and must be able to
            self._pipe.resume()
            self._pipe.close_now()
            if not await self._exits_within(limits.stdin_grace):
                child.terminate()
                if not await self._exits_within(limits.term_grace):
                    child.kill()
                    await self._exits_within(limits.kill_grace)
        except Exception as error:
            unexpected(error)
        finally:
            self._bury()

    async def _exits_within(self, seconds: float) -> bool:
        if not self.child.has_exited:
            self._exit_waiter = self._loop.create_waiter()
            timer = self._loop.call_later(seconds, lambda: wake(self._exit_waiter))
            try:
                await self._exit_waiter
            finally:
                timer.cancel()
        return self.child.has_exited

    def _bury(self) -> None:
        child = self.child
        if not child.has_exited:
            self._loop.remove_reader(child.pidfd)
            child.kill_now()
        self._drain_stderr()
        self._loop.closing(child.pidfd)
        child.bury()
        if self._stderr >= 0:
            child.log.end(self._loop.time())
            self._close_stderr()
        self._pipe.close()
        self._receiver.transport_gone()


def discard(data: bytes) -> None:
    """Takes what nobody wants any more."""


def ended_without_reason(detail: str) -> ConnectionLost:
    return ConnectionLost(DisconnectReason.STREAM_ERROR, detail)
