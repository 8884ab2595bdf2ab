"""Relays bytes between a host and a child process and records them as a transcript.

To both it is as if it were not there: what one closes is closed for the other, signals reach the child, and its end is
the end of this process, by the same exit code or the same signal. Bytes are recorded before they are passed on, so that
no answer stands before its question. Where the recording fails, the conversation goes on.
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
from becket.testing.transcripts.file import LinkEnd, TranscriptRecorder

__all__ = ["exit_like", "open_recording", "relay"]

STDIN, STDOUT = 0, 1
READ_SIZE = 64 * 1024
MAX_PIPE_READS = 1024 * 1024 // READ_SIZE + 1  # reads that empty the largest pipe: what an ended child has left
LIMITS = DEFAULT_LIMITS.but(frame=16 * MIB)  # the largest frame that any of the dialects has is recorded as one
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def relay(command: Sequence[str], file: BinaryIO) -> int:
    """Runs a program between this process's stdin and stdout until it ends, and returns how: negative for a signal.

    Raises:
        StartFailed: it cannot be started.
    """
    child = start(command)
    recording = TranscriptWriter(TranscriptRecorder(command, started_ms=now_ms(), limits=LIMITS), file)

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    for number in FORWARDED_SIGNALS:
        signal.signal(number, pass_on)
    assert child.stdin is not None
    assert child.stdout is not None
    # Nobody can end a thread that reads; this one is left to the end of the process.
    Thread(target=relay_input, args=(child.stdin, recording), daemon=True).start()
    with child.stdout:  # closed when nobody reads it any more, which the child must feel
        relay_output(child.stdout.fileno(), child.pid, recording)
    exit_code = child.wait()
    recording.end(exit_code)
    return exit_code


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    program = find_executable(command[0], os.environ, None)
    try:
        # In a group of its own a signal reaches it once: through us. The session stays that of the host.
        return subprocess.Popen(
            [*command], executable=program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, process_group=0
        )
    except OSError as error:
        raise StartFailed(command[0], explain_start_error(error, program, None)) from error


def exit_like(exit_code: int) -> None:
    """Ends this process as that child has ended, if a signal has ended it; returns otherwise."""
    if exit_code >= 0:
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one of the child is enough
    if -exit_code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-exit_code, signal.SIG_DFL)
    os.kill(os.getpid(), -exit_code)


# -- what passes


def relay_input(child: IO[bytes], recording: TranscriptWriter) -> None:
    """Passes on what the host says, until it says no more or the child does not listen."""
    while data := read(STDIN):
        recording.on_data(LinkEnd.CHILD, data)
        if not write(child.fileno(), data):
            release_fd(STDIN)
            return
    recording.close(LinkEnd.CHILD)
    child.close()


def relay_output(child: int, pid: int, recording: TranscriptWriter) -> None:
    """Passes on what the child says, until it says no more or has ended, whoever else holds its stdout."""
    exit = watch_exit(pid)
    try:
        poll = select.poll()
        poll.register(child, select.POLLIN)
        poll.register(exit.fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            rounds = MAX_PIPE_READS if exit.fd in ready else 1
            if not relay_available(child, rounds, recording) or exit.fd in ready:
                break
    finally:
        exit.close()
    recording.close(LinkEnd.HOST)
    release_fd(STDOUT)


def relay_available(child: int, rounds: int, recording: TranscriptWriter) -> bool:
    """Passes on what there is; returns whether more may come."""
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
    """Closes one of our own ends, which tells the host; its number is not given to anything else."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)


def read(fd: int) -> bytes:
    try:
        return os.read(fd, READ_SIZE)
    except OSError:
        return b""


def write(fd: int, data: bytes) -> bool:
    """Writes all of it; returns whether anybody is there to read it."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:  # whoever gave it to us has set it so
            select.select([], [fd], [])
        except OSError:
            return False
    return True


# -- what is kept


class TranscriptWriter:
    """A transcript that is being written, by two threads."""

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
            said = f"{self._file.name}: the recording ends here: {describe_os_error(error)}"
            print(f"becket: {said}", file=sys.stderr, flush=True)


def open_recording(path: Path, *, overwrite: bool) -> tuple[Path, BinaryIO]:
    """Opens the file of a new recording, unbuffered and for its owner alone: it holds all that was said.

    Where there is one already the new one gets a number, or replaces it. A link is never followed: it could lead to any
    file of the user's.

    Raises:
        OSError: it cannot be written, or is a link.
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
    """Creates a file that was not there. `O_EXCL` follows no link."""
    return open(path, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def replace_recording(path: Path) -> BinaryIO:
    """Opens a new file in the place of an older recording; a pipe or a device is written to as it is."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return create(path)
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "is a link, which recordings do not follow: name the file itself", str(path))
    if stat.S_ISREG(mode):
        path.unlink()  # its mode and its other names are somebody else's
        return create(path)
    return open(path, "wb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))
