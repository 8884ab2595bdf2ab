"""Relays bytes between a host and a child process and records them as a transcript.

The relay is transparent: a pipe that one end closes is closed for the other, signals are forwarded to the child, and
this process ends with the child's exit code or signal. Bytes are recorded before they are forwarded, so that a response
is never recorded before its request. If recording fails, relaying continues.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from types import FrameType
from typing import IO, BinaryIO

from becket.conversion.files.reader import describe_os_error
from becket.errors import StartFailed
from becket.limits import DEFAULT_LIMITS, MIB
from becket.peer.transport.child_process import explain_start_error, find_executable
from becket.peer.transport.exit_watch import watch_exit
from becket.stores.store import now_ms
from becket.testing.transcripts.file_format import LinkEnd
from becket.testing.transcripts.recorder import TranscriptRecorder

__all__ = ["exit_like", "open_recording", "relay"]

STDIN, STDOUT = 0, 1
READ_SIZE = 64 * 1024
MAX_PIPE_READS = 1024 * 1024 // READ_SIZE + 1  # enough to drain the largest pipe after the child has exited
LIMITS = DEFAULT_LIMITS.but(frame=16 * MIB)  # the largest frame limit of all dialects
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def relay(command: Sequence[str], file: BinaryIO) -> int:
    """Runs a program between this process's stdin and stdout and returns its exit code, negative for a signal.

    Raises:
        StartFailed: the program cannot be started.
    """
    child = start(command)
    recording = TranscriptWriter(TranscriptRecorder(command, started_ms=now_ms(), limits=LIMITS), file)

    def forward(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    assert child.stdin is not None
    assert child.stdout is not None
    exit = watch_exit(child.pid)
    waiter = SignalAwareWaiter()
    for number in FORWARDED_SIGNALS:
        signal.signal(number, forward)
    # A blocked read cannot be interrupted: the thread is a daemon and ends with the process.
    Thread(target=relay_input, args=(child.stdin, recording), daemon=True).start()
    with child.stdout:  # closing it signals the child that its output is no longer read
        relay_output(child.stdout.fileno(), exit.fd, waiter, recording)
    while exit.fd not in waiter.wait(exit.fd):
        pass
    exit.close()
    exit_code = child.wait()
    recording.end(exit_code)
    return exit_code


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    program = find_executable(command[0], os.environ, None)
    try:
        # In its own process group the child gets a signal once, through `forward`. The session stays the host's.
        return subprocess.Popen(
            [*command], executable=program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, process_group=0
        )
    except OSError as error:
        raise StartFailed(command[0], explain_start_error(error, program, None)) from error


def exit_like(exit_code: int) -> None:
    """Kills this process with the signal that killed the child; returns if there was none."""
    if exit_code >= 0:
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child's core dump is enough
    if -exit_code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-exit_code, signal.SIG_DFL)
    os.kill(os.getpid(), -exit_code)


# -- relaying


def relay_input(child: IO[bytes], recording: TranscriptWriter) -> None:
    """Forwards the host's bytes until the end of stdin, or until the child closes its stdin."""
    while data := read(STDIN):
        recording.on_data(LinkEnd.CHILD, data)
        if not write(child.fileno(), data):
            release_fd(STDIN)
            return
    recording.close(LinkEnd.CHILD)
    child.close()


def relay_output(child: int, exit: int, waiter: SignalAwareWaiter, recording: TranscriptWriter) -> None:
    """Forwards the child's bytes until it closes stdout or exits, even if another process still holds its stdout."""
    while True:
        has_exited = exit in waiter.wait(child, exit)
        rounds = MAX_PIPE_READS if has_exited else 1
        if not relay_available(child, rounds, recording) or has_exited:
            break
    recording.close(LinkEnd.HOST)
    release_fd(STDOUT)


class SignalAwareWaiter:
    """Waits for descriptors in the main thread, and for signals, so that their handlers run at once.

    A signal that arrives right before a wait, or in another thread, would not end it."""

    def __init__(self) -> None:
        self._signals, wake = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def wait(self, *fds: int) -> set[int]:
        """Returns those that are readable; none after a signal."""
        poll = select.poll()
        for fd in (self._signals, *fds):
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll()}
        if self._signals in ready:
            os.read(self._signals, READ_SIZE)
        return ready


def relay_available(child: int, rounds: int, recording: TranscriptWriter) -> bool:
    """Forwards available bytes; returns whether more may follow."""
    os.set_blocking(child, False)
    for _ in range(rounds):
        try:
            data = os.read(child, READ_SIZE)
        except BlockingIOError:
            return True
        if not data:
            return False
        recording.on_data(LinkEnd.HOST, data)
        if not write(STDOUT, data):
            return False
    return True


def release_fd(fd: int) -> None:
    """Closes a pipe to the host, and keeps its number occupied by the null device."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


def read(fd: int) -> bytes:
    try:
        return os.read(fd, READ_SIZE)
    except OSError:
        return b""


def write(fd: int, data: bytes) -> bool:
    """Writes all bytes; returns False if the reader has closed the pipe."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:  # the parent has set the pipe to non-blocking
            select.select([], [fd], [])
        except OSError:
            return False
    return True


# -- recording


class TranscriptWriter:
    """Writes a transcript from two threads."""

    def __init__(self, recorder: TranscriptRecorder, file: BinaryIO) -> None:
        self._recorder = recorder
        self._file = file
        self._lock = Lock()
        self._began = monotonic()
        self._has_failed = False

    def on_data(self, to: LinkEnd, data: bytes) -> None:
        with self._lock:
            self._write(self._recorder.feed(self._now(), to, data))

    def close(self, to: LinkEnd) -> None:
        with self._lock:
            self._write(self._recorder.close(self._now(), to))

    def end(self, exit_code: int) -> None:
        with self._lock:
            self._write(self._recorder.end(self._now(), exit_code))

    def _now(self) -> float:
        return monotonic() - self._began

    def _write(self, lines: bytes) -> None:
        if self._has_failed:
            return
        try:
            self._file.write(lines)
        except OSError as error:
            self._has_failed = True
            problem = f"{self._file.name}: recording stopped: {describe_os_error(error)}"
            print(f"becket: {problem}", file=sys.stderr, flush=True)


def open_recording(path: Path, *, overwrite: bool) -> tuple[Path, BinaryIO]:
    """Opens the file of a new recording, unbuffered and readable only by its owner, because it may hold secrets.

    If the file exists, the new one gets a number, or replaces it. Symbolic links are not followed: they could lead to
    any file of the user.

    Raises:
        OSError: the file cannot be written, or is a link.
    """
    if overwrite:
        return path, replace_recording(path)
    number = 1
    chosen = path
    while True:
        try:
            return chosen, create(chosen)
        except FileExistsError:
            number += 1
            chosen = path.with_name(f"{path.stem}.{number}{path.suffix}")


def create(path: Path) -> BinaryIO:
    """Creates a new file. `O_EXCL` does not follow links."""
    return open(path, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def replace_recording(path: Path) -> BinaryIO:
    """Replaces an older recording by a new file; opens a pipe or a device as it is."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return create(path)
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "is a link, which recordings do not follow: name the file itself", str(path))
    if stat.S_ISREG(mode):
        path.unlink()  # not truncated: it may have another mode, and other names
        return create(path)
    return open(path, "wb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))
