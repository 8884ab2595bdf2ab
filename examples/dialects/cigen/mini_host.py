"""A core as cigen is one, in plain Python and very small: `python3 mini_host.py COMMAND...` drives any plugin.

It sends hello, requests a plan and the files, in that order and again for each line of its input, which are the ids
of jobs, and prints what comes back: each message by its members' numbers. Protobuf is written and read by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, Any

PROTOCOL = int(os.environ.get("CORE_PROTOCOL", "1"))
VERSION = "0.2.0"
LARGEST = 10 * 1024 * 1024
ERROR = 1

Members = dict[int, list[Any]]


def put(field: int, value: int | str | bytes) -> bytes:
    """Returns one member of a message."""
    if isinstance(value, int):
        return varint(field << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def take(data: bytes) -> Members:
    """Returns the members of a message by their numbers; texts and messages are bytes."""
    found: Members = {}
    position = 0

    def read() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        tag = read()
        size = read()
        if tag & 7 == 2:
            found.setdefault(tag >> 3, []).append(data[position : position + size])
            position += size
        else:
            found.setdefault(tag >> 3, []).append(size)
    return found


class Plugin:
    """A running plugin: one request at a time, and its response."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin: IO[bytes] = self.process.stdin
        self._stdout: IO[bytes] = self.process.stdout

    def call(self, body: bytes) -> Members:
        """Sends a message and returns the members of the next one."""
        self._stdin.write(len(body).to_bytes(4, "big") + body)
        self._stdin.flush()
        head = self._stdout.read(4)
        if len(head) < 4:
            raise EOFError("Failed to read message length")
        size = int.from_bytes(head, "big")
        if size > LARGEST:
            raise ValueError(f"Message too large: {size} bytes")
        return take(self._stdout.read(size))

    def end(self) -> int:
        """Closes its input, waits for five seconds, and ends it then."""
        self._stdin.close()
        try:
            return self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self._stdout.close()


def handshake(plugin: Plugin) -> None:
    env = b"".join(put(3, put(1, name) + put(2, value)) for name, value in sorted(os.environ.items()))
    info = plugin.call(put(1, PROTOCOL) + put(2, VERSION) + env)
    theirs = info.get(3, [0])[-1]
    if theirs != PROTOCOL:
        raise ValueError(f"Protocol version mismatch: core={PROTOCOL}, plugin={theirs}")
    print("plugin:", info[1][-1].decode(), info[2][-1].decode())
    print("capabilities:", *(one.decode() for one in info.get(4, [])))


def work(plugin: Plugin, ids: list[str]) -> None:
    """Requests a plan of these jobs, and the files of that plan."""
    schema = put(1, "1") + b"".join(put(4, put(1, id)) for id in ids)
    planned = plugin.call(put(3, schema))
    report(planned.get(3, []))
    graph = planned.get(1, [])
    print("plan:", *(take(resource)[1][-1].decode() for resource in graph))
    made = plugin.call(put(1, "listing") + b"".join(put(2, resource) for resource in graph) + put(4, schema))
    report(made.get(2, []))
    for fragment in map(take, made.get(1, [])):
        print("file:", fragment[1][-1].decode(), repr(fragment[2][-1].decode()))


def report(diagnostics: list[bytes]) -> None:
    for one in map(take, diagnostics):
        level = "error" if one.get(1) == [ERROR] else "note"
        print(f"{level}:", one.get(2, [b""])[-1].decode(), one.get(4, [b""])[-1].decode())


def main() -> None:
    plugin = Plugin(sys.argv[1:])
    try:
        handshake(plugin)
        for line in sys.stdin:
            work(plugin, line.split())
    except (EOFError, ValueError) as error:
        print("refused:", error)
    finally:
        print("exit:", plugin.end())


if __name__ == "__main__":
    main()
