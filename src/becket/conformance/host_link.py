"""`HostLink`: starts a host, which starts the suite's child; what the host sends to it is read here.

The command line of the child has the path of the socket, because hosts do not pass their environment on.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from becket.conformance import child

__all__ = ["HostLink", "fill_command", "write_folder"]

HEADER: Final = struct.Struct(">cI")
CHUNK: Final = 1 << 16
STDERR_TAIL: Final = 4096
CHILD_VARIABLE: Final = "BECKET_CONFORM_CHILD"
FOLDER_VARIABLE: Final = "BECKET_CONFORM_FOLDER"
FOLDER_NAME: Final = "conform"  # in some systems the name of the folder is the id of the extension


class HostLink:
    """One run of a host, with the suite as its extension. `files` are those of `RoleSetup`.

    Raises:
        OSError: the host cannot be started.
    """

    def __init__(self, command: Sequence[str], files: Mapping[str, str]) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="becket-conform-"))
        path = self._root / "socket"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)
        self._server.setblocking(False)
        self._connection: socket.socket | None = None
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._stderr_tail = b""
        self._has_ended = False
        self._is_gone = False
        child_command = [sys.executable, "-I", "-S", child.__file__, str(path)]
        folder = self._root / FOLDER_NAME
        write_folder(folder, files, child_command)
        variables = {CHILD_VARIABLE: shlex.join(child_command), FOLDER_VARIABLE: str(folder)}
        try:
            self._process = subprocess.Popen(
                fill_command(command, child_command, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._server.close()
            shutil.rmtree(self._root, ignore_errors=True)
            raise
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def stderr(self) -> str:
        """The end of what the host has printed."""
        return self._stderr_tail.decode(errors="replace")

    def write(self, data: bytes) -> None:
        """Lets the child write bytes to its stdout."""
        self._send(b"O", data)

    def write_stderr(self, data: bytes) -> None:
        """Lets the child write bytes to its stderr."""
        self._send(b"R", data)

    def close_output(self) -> None:
        """Lets the child close its stdout."""
        self._send(b"C", b"")

    def leave(self, code: int) -> None:
        """Lets the child exit with this code."""
        self._send(b"X", b"%d" % code)

    def stay(self) -> None:
        """Lets the child ignore the end of its stdin and SIGTERM."""
        self._send(b"K", b"")

    def _send(self, kind: bytes, data: bytes) -> None:
        self._outgoing += HEADER.pack(kind, len(data)) + data
        self._flush()

    def _flush(self) -> None:
        try:
            while self._outgoing and self._connection is not None:
                del self._outgoing[: self._connection.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()

    def read(self, timeout: float) -> bytes | None:
        """Returns the next bytes of the child's stdin, `b""` after its end, or None after the timeout."""
        end = monotonic() + timeout
        while True:
            if (data := self._take()) is not None:
                return data
            if self._has_ended or self._is_gone:
                return b""
            left = end - monotonic()
            self._pump(max(0.0, min(left, 0.05)))
            if left <= 0:
                return None
            if self._connection is None and self._process.poll() is not None:
                return b""  # the host has exited without a child

    def _pump(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            if key.fileobj is self._server:
                self._connection, _ = self._server.accept()
                self._connection.setblocking(False)
                self._selector.unregister(self._server)
                self._selector.register(self._connection, selectors.EVENT_READ)
                continue
            try:
                data = os.read(key.fd, CHUNK)
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(key.fileobj)
            if key.fileobj is self._output:
                self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL:]
            elif data:
                self._incoming += data
            else:
                self._is_gone = True
        self._flush()

    def _take(self) -> bytes | None:
        """Returns the bytes of the next message of the child about its stdin."""
        while len(self._incoming) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._incoming)
            if len(self._incoming) < HEADER.size + size:
                return None
            data = bytes(self._incoming[HEADER.size : HEADER.size + size])
            del self._incoming[: HEADER.size + size]
            if kind == b"I":
                return data
            if kind == b"E":
                self._has_ended = True
                return b""
        return None

    def wait_gone(self, timeout: float) -> bool:
        """Returns whether the child is gone within this time."""
        end = monotonic() + timeout
        while not self._is_gone and (left := end - monotonic()) > 0:
            self._pump(min(left, 0.05))
            self._take()
        return self._is_gone

    def wait_exit(self, timeout: float) -> int | None:
        """Returns the exit code of the host, negative for a signal; None after the timeout."""
        end = monotonic() + timeout
        while self._process.poll() is None and (left := end - monotonic()) > 0:
            self._pump(min(left, 0.02))
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        """Sends a signal to the host."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kills the host and its process group; the child ends with its socket."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self._selector.close()
        self._output.close()
        self._server.close()
        if self._connection is not None:
            self._connection.close()
        shutil.rmtree(self._root, ignore_errors=True)


def write_folder(folder: Path, files: Mapping[str, str], child_command: Sequence[str]) -> None:
    """Writes the files of an extension into a new folder, with `{child}` and `{folder}` replaced.

    `{child}` is a command line for a shell, `{folder}` a path inside a text of JSON or TOML. A file that begins with
    `#!` becomes a program."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content.replace("{child}", shlex.join(child_command)).replace("{folder}", json.dumps(str(folder))[1:-1])
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)


def fill_command(command: Sequence[str], child_command: Sequence[str], folder: Path) -> list[str]:
    """Returns a command line with its placeholders replaced: a word `{child}` becomes the words of the child."""
    words: list[str] = []
    for word in command:
        if word == "{child}":
            words += child_command
        else:
            words.append(word.replace("{child}", shlex.join(child_command)).replace("{manifest}", str(folder)))
    return words
