"""A raw conversation with a program over its pipes: bytes are written by the test, and read back as they came."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("echo_child.py")
PATIENCE = 60.0  # seconds until a program counts as silent


class Conversation:
    """Starts a program and exchanges messages with it. Single-threaded: it reads only on request."""

    def __init__(self, *arguments: str, command: list[str] | None = None) -> None:
        self.framing = arguments[1] if len(arguments) > 1 else "content-length"
        chosen = command or [sys.executable, str(CHILD), *arguments]
        self._process = subprocess.Popen(chosen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._buffer = b""

    # -- sending

    def write(self, data: bytes) -> None:
        """Writes these bytes, whatever they are."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def send(self, message: object) -> None:
        """Writes one frame: a text unchanged, any other value as JSON."""
        self.write(self.frame(message))

    def frame(self, message: object) -> bytes:
        text = message if isinstance(message, bytes) else str(message).encode()
        if not isinstance(message, (str, bytes)):
            text = json.dumps(message).encode()
        if self.framing == "json-lines":
            return text + b"\n"
        return b"Content-Length: %d\r\n\r\n%b" % (len(text), text)

    # -- receiving

    def receive_raw(self) -> bytes:
        """Returns the bytes of the next frame, header and all."""
        if self.framing == "json-lines":
            return self._read_through(b"\n")
        header = self._read_through(b"\r\n\r\n")
        return header + self._read(int(header.split(b":")[1]))

    def receive(self) -> Any:
        """Returns the next message."""
        return json.loads(self.receive_raw().split(b"\r\n\r\n")[-1])

    def call(self, message: object) -> Any:
        """Sends a message and returns the next one."""
        self.send(message)
        return self.receive()

    def is_silent_after(self, message: object) -> bool:
        """Sends a message and returns whether the next response belongs to a later request."""
        self.send(message)
        self.send({"jsonrpc": "2.0", "id": "are you there", "method": "echo"})
        return self.receive() == {"jsonrpc": "2.0", "id": "are you there", "result": None}

    def _read_through(self, end: bytes) -> bytes:
        while end not in self._buffer:
            self._buffer += self._receive()
        found, _, self._buffer = self._buffer.partition(end)
        return found + end

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += self._receive()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _receive(self) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        assert select.select([fd], [], [], PATIENCE)[0], "silent"
        data = os.read(fd, 65_536)
        assert data, "it has ended"
        return data

    # -- the end

    def close(self) -> int:
        """Ends its input and returns its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            return self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
