"""Links to the program under test: its pipes, or through a host that has started the suite's own child.

A link is read and written by one thread. What the program does not read waits in the link, so that sending never
blocks.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final, Protocol

__all__ = ["ExtensionLink", "LinkFactory", "ProcessLink", "ProgramLink"]

CHUNK: Final = 1 << 16
POLL_INTERVAL: Final = 0.05  # seconds; polls for the exit, because pipes may stay open after it
STDERR_TAIL: Final = 4096


class ProgramLink(Protocol):
    """One connection with a program, from its start to its end."""

    def write(self, data: bytes) -> None:
        """Sends bytes, or queues them while the program does not read."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """Returns the next bytes, `b""` after the end of the output, or None after the timeout."""
        ...

    def close_output(self) -> None:
        """Ends what the suite sends."""
        ...

    def wait_exit(self, timeout: float) -> int | None:
        """Returns the exit code of the program, negative for a signal; None after the timeout."""
        ...

    def send_signal(self, number: int) -> None:
        """Sends a signal to the program."""
        ...

    def kill(self) -> None:
        """Kills the program and its process group, and releases everything."""
        ...

    @property
    def stderr(self) -> str:
        """The end of the program's stderr."""
        ...


class ExtensionLink(ProgramLink, Protocol):
    """A connection in which the suite plays the extension, as a process that a host has started."""

    def leave(self, code: int) -> None:
        """Lets the extension exit with this code."""
        ...

    def stay(self) -> None:
        """Lets the extension ignore the end of its stdin and SIGTERM."""
        ...

    def write_stderr(self, data: bytes) -> None:
        """Lets the extension write to its stderr."""
        ...

    def wait_gone(self, timeout: float) -> bool:
        """Returns whether the extension's process is gone within this time."""
        ...


LinkFactory = Callable[[], ProgramLink]


class ProcessLink:
    """The pipes of a child process in a session of its own.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            bufsize=0,
            start_new_session=True,  # so that its own children are killed with it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._stderr = self._process.stderr
        self._stderr_tail = b""
        self._outgoing = bytearray()
        self._has_ended = False
        os.set_blocking(self._stdin.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    @property
    def stderr(self) -> str:
        """The end of the program's stderr."""
        return self._stderr_tail.decode(errors="replace")

    def write(self, data: bytes) -> None:
        """Sends bytes, or queues them while the program does not read."""
        self._outgoing += data
        self._flush()

    def _flush(self) -> None:
        if self._stdin.closed:
            self._outgoing.clear()
            return
        try:
            while self._outgoing:
                del self._outgoing[: os.write(self._stdin.fileno(), self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # the program has exited, or closed its stdin
            self._outgoing.clear()

    def read(self, timeout: float) -> bytes | None:
        """Returns the next bytes of its stdout, `b""` after its end, or None after the timeout."""
        end = monotonic() + timeout
        while not self._has_ended:
            left = end - monotonic()
            for key, _ in self._selector.select(max(0.0, min(left, POLL_INTERVAL))):
                data = os.read(key.fd, CHUNK)
                if not data:
                    self._selector.unregister(key.fileobj)
                if key.fileobj is self._stderr:
                    self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL:]
                elif data:
                    self._flush()
                    return data
                else:
                    self._has_ended = True
            self._flush()
            if left <= 0:
                return None
        return b""

    def close_output(self) -> None:
        """Closes its stdin after everything that was queued."""
        end = monotonic() + 1.0
        while self._outgoing and monotonic() < end:
            self._flush()
        self._stdin.close()

    def wait_exit(self, timeout: float) -> int | None:
        """Returns the exit code of the process, negative for a signal; None after the timeout."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Sends a signal to the process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kills the process with its session's group and closes the pipes."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            stream.close()
