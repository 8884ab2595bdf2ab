"""A plugin as cigen starts them, in plain Python: it makes a `Makefile` of the jobs of a project.

Of protobuf it has what it needs, some forty lines: numbers, texts and messages within messages. The program that
cigen finds by its name is `cigen-provider-make`, beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import BinaryIO

PROTOCOL = 1
NAME = "provider/make"
LARGEST = 10 * 1024 * 1024

Value = int | bytes
REPLACE, ERROR, JOB = 1, 1, 1  # of MergeStrategy, of Level, of ResourceType

# -- protobuf


def number(field: int, value: int) -> bytes:
    """Returns a member that is a number, nothing where it is 0."""
    return varint(field << 3) + varint(value) if value else b""


def text(field: int, value: str | bytes) -> bytes:
    """Returns a member that is a text or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    parts: list[int] = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def members(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yields what is in a message: the number of each member, and its value."""
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        if tag & 7 == 0:
            value, position = read_varint(data, position)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, position = read_varint(data, position)
            if position + size > len(data):
                raise ValueError("a member is cut off")
            yield tag >> 3, data[position : position + size]
            position += size
        else:
            raise ValueError(f"a member of kind {tag & 7}, and cigen has none")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7


def find(data: bytes, field: int) -> bytes:
    """Returns the last member with this number, empty where there is none."""
    return next(
        (value for name, value in reversed([*members(data)]) if name == field and isinstance(value, bytes)), b""
    )


def find_all(data: bytes, field: int) -> list[bytes]:
    return [value for name, value in members(data) if name == field and isinstance(value, bytes)]


# -- frames


def receive(stream: BinaryIO) -> bytes | None:
    """Returns the next message; None at the end, wherever that comes."""
    head = stream.read(4)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > LARGEST:
        return None
    body = stream.read(size)
    return body if len(body) == size else None


def send(stream: BinaryIO, body: bytes) -> None:
    if len(body) > LARGEST:
        sys.exit(f"a message of {len(body)} bytes is too large")
    stream.write(len(body).to_bytes(4, "big") + body)
    stream.flush()


# -- the plugin


def info() -> bytes:
    """Returns a PluginInfo."""
    return text(1, NAME) + text(2, "0.1.0") + number(3, PROTOCOL) + text(4, "provider:make") + text(6, "provider:*")


def plan(request: bytes) -> bytes:
    """Returns a PlanResult: a resource for each job of the schema, and a diagnostic where there are none."""
    jobs = find_all(find(request, 3), 4)
    if not jobs:
        problem = number(1, ERROR) + text(2, "MAKE_001") + text(3, "No jobs") + text(4, "the schema has no jobs")
        return text(3, problem)
    resources = [text(1, f"job:{find(job, 1).decode()}") + number(2, JOB) for job in jobs]
    return b"".join(text(1, resource) for resource in resources)


def generate(request: bytes) -> bytes:
    """Returns a GenerateResult: one file with a target for each job."""
    lines: list[str] = []
    for job in find_all(find(request, 4), 4):
        needs = " ".join(need.decode() for need in find_all(job, 2))
        lines.append(f"{find(job, 1).decode()}: {needs}".rstrip())
        for step in find_all(job, 5):
            command = find(find(step, 1), 2).decode()  # a step that runs something
            lines += [f"\t{line}" for line in command.splitlines()]
    content = "".join(f"{line}\n" for line in lines)
    return text(1, text(1, "Makefile") + text(2, content) + number(3, REPLACE) + text(5, "make"))


def main() -> None:
    """Sends its info, then responds to plans and requests to generate, in turn, until its input ends."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    hello = receive(stdin)
    if hello is None:
        return
    core = next((value for field, value in members(hello) if field == 1 and isinstance(value, int)), 0)
    if core != PROTOCOL:
        sys.exit(f"Protocol version mismatch: core={core}, plugin={PROTOCOL}")
    send(stdout, info())
    while True:
        for method in (plan, generate):
            request = receive(stdin)
            if request is None:
                return
            print(f"{NAME}: {method.__name__}", file=sys.stderr, flush=True)
            send(stdout, method(request))


if __name__ == "__main__":
    main()
