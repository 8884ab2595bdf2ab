"""The extension that the suite plays for a host: a relay between its own pipes and the suite's socket.

The host starts it as a program with the path of the socket as argument. Standard library only, so that it starts in
20 ms. Each message on the socket has a kind of one byte and a length of four. To the suite: `H` its process as JSON,
`I` bytes of stdin, `E` the end of stdin, `S` a signal. From the suite: `O` bytes for stdout, `R` for stderr, `C` close
stdout, `X` exit with this code, `K` stay alive when stdin ends and on SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import threading

HEADER = struct.Struct(">cI")


class Relay:
    """Relays until the suite closes the socket."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._sending = threading.Lock()
        self._stays = False

    def run(self) -> None:
        """Relays in both directions until the suite is gone."""
        about = {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ), "fds": list_descriptors()}
        self.send(b"H", json.dumps(about).encode())
        signal.signal(signal.SIGTERM, self._on_signal)
        threading.Thread(target=self._relay_stdin, daemon=True).start()
        with self._socket.makefile("rb") as stream:
            while len(header := stream.read(HEADER.size)) == HEADER.size:
                kind, size = HEADER.unpack(header)
                self._on_message(kind, stream.read(size))
        os._exit(0)

    def send(self, kind: bytes, data: bytes) -> None:
        """Sends a message to the suite."""
        try:
            with self._sending:
                self._socket.sendall(HEADER.pack(kind, len(data)) + data)
        except OSError:
            os._exit(0)

    def _relay_stdin(self) -> None:
        while data := os.read(0, 1 << 16):
            self.send(b"I", data)
        self.send(b"E", b"")

    def _on_signal(self, number: int, frame: object) -> None:
        if not self._stays:
            os._exit(128 + number)

    def _on_message(self, kind: bytes, data: bytes) -> None:
        if kind == b"O":
            write_all(1, data)
        elif kind == b"R":
            write_all(2, data)
        elif kind == b"C":
            os.close(1)
        elif kind == b"X":
            os._exit(int(data))
        elif kind == b"K":
            self._stays = True


def list_descriptors() -> list[int]:
    """Returns the open descriptors, without the socket."""
    try:
        return sorted(int(name) for name in os.listdir("/proc/self/fd"))
    except OSError:
        return []


def write_all(descriptor: int, data: bytes) -> None:
    """Writes to a pipe; a host that has closed it is no error."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        pass


if __name__ == "__main__":
    Relay(sys.argv[1]).run()
