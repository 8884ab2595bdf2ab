"""A cigen plugin that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

from defects import load_defects  # type: ignore[import-not-found]  # it stands beside this program
from small_protobuf import fields, number, text  # type: ignore[import-not-found]

DEFECTS = load_defects()
LARGEST = 10 * 1024 * 1024
JOB, ERROR = 1, 1  # of ResourceType, of Level


def read(size: int) -> bytes:
    """Reads so many bytes; fewer at the end."""
    data = b""
    while len(data) < size and (chunk := os.read(0, size - len(data))):
        data += chunk
        if DEFECTS.has("one read for each frame") and len(data) < size:
            os._exit(3)
    return data


def read_frames() -> Iterator[bytes]:
    while len(head := read(4)) == 4:
        (size,) = struct.unpack(">I", head)
        if size > LARGEST and not DEFECTS.has("has no limit"):
            return
        if size > 500_000 and DEFECTS.has("exits on a large message"):
            os._exit(3)
        body = read(size)
        if len(body) < size:
            break
        yield body
    if DEFECTS.has("ignores the end"):
        time.sleep(120)


def write(body: bytes) -> None:
    data = struct.pack(">I", len(body)) + body
    while data:
        data = data[os.write(1, data) :]


def diagnostic(field: int) -> bytes:
    return text(field, number(1, ERROR) + text(4, b"there is nothing to do"))


def answer(position: int, body: bytes) -> bytes:
    found = list(fields(body))
    if position == 0:
        return hello(dict(found))
    is_plan = position % 2 == 1
    if is_plan:
        if DEFECTS.has("plans once") and position > 1:
            os._exit(3)
        if DEFECTS.has("needs a schema") and not found:
            os._exit(3)
        return plan([value for field, value in found if field == 3])
    if DEFECTS.has("never generates"):
        os._exit(3)
    graph = [value for field, value in found if field == 2]
    if not graph:
        if DEFECTS.has("needs a graph"):
            os._exit(3)
        return diagnostic(2)
    path = b"" if DEFECTS.has("has no paths") else text(1, b"jobs.md")
    return text(1, path + text(2, b"- build"))


def hello(found: dict[int, int | bytes]) -> bytes:
    if DEFECTS.has("refuses an environment") and 3 in found:
        os._exit(3)
    if found.get(1) != 1 and not DEFECTS.has("accepts every core"):
        return b""
    name = b"" if DEFECTS.has("has no name") else text(1, b"provider/conform")
    protocol = 2 if DEFECTS.has("has the protocol 2") or found.get(1) != 1 else 1
    capability = text(4, b"\xff" if DEFECTS.has("has bytes as capability") else b"provider:conform")
    return name + text(2, b"1.0.0") + number(3, protocol) + capability


def plan(schemas: list[int | bytes]) -> bytes:
    jobs = [value for schema in schemas if isinstance(schema, bytes) for field, value in fields(schema) if field == 4]
    if not jobs:
        return diagnostic(3)
    ids = [b"job:build", b"job:test"]
    if DEFECTS.has("repeats ids"):
        ids[1] = ids[0]
    kind = b"" if DEFECTS.has("has no types") else number(2, JOB)
    if DEFECTS.has("has bytes as resource"):
        return text(1, b"\xff")
    return b"".join(text(1, text(1, id) + kind) for id in ids)


if DEFECTS.has("speaks first"):
    write(b"")
for position, body in enumerate(read_frames()):
    try:
        write(answer(position, body))
    except ValueError:
        if not DEFECTS.has("skips what is not protobuf"):
            break
