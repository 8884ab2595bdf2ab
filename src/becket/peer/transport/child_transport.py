"""Carries a link over a child process's pipes, watches its exit and stops it in order."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from becket._loggers import peer_logger
from becket.errors import ConnectionLost, DisconnectReason
from becket.limits import Limits
from becket.methods.error_mapping import log_internal_error
from becket.peer.transport.child_process import ChildPipes, ChildProcess
from becket.peer.transport.fd import MAX_DRAIN_READS, READ_SIZE, FdTransport

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory, Loop, LoopFuture, Receiver, Timer

__all__ = ["ChildTransport"]

STDERR_READ = 16 * 1024  # bytes of stderr in one iteration: counting the lines in 64 KiB may take a millisecond


class ChildTransport(FdTransport):
    """The stdin and stdout of a child. Closing it ends the child and its whole session."""

    def __init__(self, child: ChildProcess, pipes: ChildPipes, limits: Limits) -> None:
        super().__init__(pipes.stdout, pipes.stdin)
        self.child = child
        self._stderr = pipes.stderr
        self._limits = limits
        self._reason_factory: ConnectionLostFactory | None = None
        self._is_stopping = False
        self._exit_future: LoopFuture | None = None
        self._drain_timer: Timer | None = None

    def start(self, loop: Loop, receiver: Receiver) -> None:
        super().start(loop, receiver)
        loop.add_reader(self._stderr, self._read_stderr)
        loop.add_reader(self.child.exit_fd, self._on_exit)

    # -- what is noticed

    def _report_end(self, describe: ConnectionLostFactory) -> None:
        """Reports the end of a pipe, after a moment for the exit, which says more: an ending process closes its
        pipes first."""
        self._reason_factory = self._reason_factory or describe
        if self.child.has_exited:
            self._report_end_now()
        elif self._drain_timer is None:
            self._drain_timer = self._loop.call_later(self._limits.drain_grace, self._report_end_now)

    def _on_exit(self) -> None:
        if not self.child.poll_exit():
            return
        self._loop.remove_reader(self.child.exit_fd)
        if not self._is_stopping:
            self.drain()
        self._drain_stderr()
        self._wake_stopping()
        # A grandchild may hold the pipe open. What the child wrote was in it before the exit, and has been read.
        self._report_end_now()

    def _report_end_now(self) -> None:
        if not self._is_stopping:
            super()._report_end(
                self.child.build_crash_error if self.child.has_exited else self._reason_factory or build_stream_error
            )

    def _read_stderr(self) -> None:
        """Reads one chunk of stderr, and the next one when its lines were logged, a portion in each iteration."""
        if self._take_stderr(STDERR_READ) and self.child.stderr_log.is_behind:
            self._loop.remove_reader(self._stderr)
            self._loop.call_soon(self._hand_out_lines)

    def _hand_out_lines(self) -> None:
        self.child.stderr_log.hand_out(self._loop.time())
        if self.child.stderr_log.is_behind:
            self._loop.call_soon(self._hand_out_lines)
        elif self._stderr >= 0:
            self._loop.add_reader(self._stderr, self._read_stderr)

    def _take_stderr(self, size: int) -> bool:
        """Reads one chunk of stderr and returns whether there may be more."""
        if self._stderr < 0:
            return False
        try:
            data = os.read(self._stderr, size)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        now = self._loop.time()
        if data:
            self.child.stderr_log.feed(data, now)
            return True
        self._close_stderr()
        if not self.child.stderr_log.is_behind:
            self.child.stderr_log.close(now)
        return False

    def _drain_stderr(self) -> None:
        for _ in range(MAX_DRAIN_READS):  # another holder of its end may write for ever
            if not self._take_stderr(READ_SIZE):
                return

    async def _finish_lines(self) -> None:
        """Logs the child's last lines, for a bounded time: lines beyond it are counted."""
        log, loop = self.child.stderr_log, self._loop
        until = loop.time() + self._limits.drain_grace
        self._drain_stderr()
        while log.is_behind and loop.time() < until:
            waiter = loop.create_future()
            loop.call_soon(partial(loop.wake, waiter))
            await waiter
            log.hand_out(loop.time())

    def _close_stderr(self) -> None:
        if self._stderr >= 0:
            self._loop.remove_reader(self._stderr)
            self._loop.notify_closing(self._stderr)
            os.close(self._stderr)
            self._stderr = -1

    # -- the end

    def close(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            if hasattr(self, "_loop"):
                self._loop.spawn(self._stop())
            else:
                self._is_closed = True
                self._close_fds()

    async def _stop(self) -> None:
        """Closes stdin, then terminates, then kills; every wait is bounded."""
        child, limits = self.child, self._limits
        try:
            self.discard_input()  # it may still be writing, and must be able to
            self.abort_writing()
            if not await self._wait_for_exit(limits.stdin_grace):
                child.terminate()
                if not await self._wait_for_exit(limits.term_grace):
                    child.kill()
                    await self._wait_for_exit(limits.kill_grace)
            await self._finish_lines()
        except BaseException as error:  # the loop ends: no further wait is possible
            child.kill_and_wait()
            if not isinstance(error, Exception):
                raise
            log_internal_error(error)
        finally:
            self._reap()

    def _wake_stopping(self) -> None:
        if self._exit_future is not None:
            self._loop.wake(self._exit_future)

    async def _wait_for_exit(self, seconds: float) -> bool:
        if not self.child.has_exited:
            self._exit_future = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake_stopping)
            try:
                await self._exit_future
            finally:
                timer.cancel()
        return self.child.has_exited

    def _reap(self) -> None:
        child = self.child
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        self._loop.remove_reader(child.exit_fd)
        self._drain_stderr()
        self._loop.notify_closing(child.exit_fd)
        child.reap()
        child.stderr_log.close(self._loop.time())
        self._close_stderr()
        if child.is_abandoned:
            log_abandoned(child)
        super().close()

    def _close_fds(self) -> None:
        if self.child.owner_pid == os.getpid():  # a fork of this program has the object, not the child
            self.child.kill_and_wait()
            self.child.reap()
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1
        super()._close_fds()


def log_abandoned(child: ChildProcess) -> None:
    peer_logger().warning(
        "process %d (%s) was killed and has not ended: the system holds it, and it is no longer waited for",
        child.pid,
        child.command[0],
    )


def build_stream_error(detail: str) -> ConnectionLost:
    return ConnectionLost(DisconnectReason.STREAM_ERROR, detail)
