"""A core of cigen that plans, generates and ends, and has the defects it is given."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from typing import NoReturn

from defects import load_defects  # type: ignore[import-not-found]  # it stands beside this program
from small_protobuf import fields, number, text  # type: ignore[import-not-found]

DEFECTS = load_defects()
LARGEST = 10 * 1024 * 1024
ERROR = 1  # of Level

plugin = subprocess.Popen(
    sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
)
assert plugin.stdin is not None
assert plugin.stdout is not None
assert plugin.stderr is not None
wire, output, errors = plugin.stdin.fileno(), plugin.stdout.fileno(), plugin.stderr.fileno()


def write(body: bytes) -> None:
    data = struct.pack(">I", len(body)) + body
    while data:
        data = data[os.write(wire, data) :]


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(output, size - len(data))
        if not chunk:
            fail("the plugin has ended")
        data += chunk
        if DEFECTS.has("one read for each frame") and len(data) < size:
            os._exit(9)
    return data


def exchange(body: bytes) -> list[tuple[int, int | bytes]]:
    """Sends a message and returns the fields of the next one."""
    write(body)
    (size,) = struct.unpack(">I", read(4))
    if size > LARGEST and not DEFECTS.has("has no limit"):
        fail("a frame is too large")
    if size > 500_000 and DEFECTS.has("exits on a large message"):
        os._exit(9)
    if size == 0 and DEFECTS.has("exits on an empty frame"):
        os._exit(9)
    try:
        return list(fields(read(size)))
    except ValueError:
        if DEFECTS.has("skips what is not protobuf"):
            return []
        fail("a frame is not protobuf")


def hello() -> None:
    protocol = b"" if DEFECTS.has("has no protocol") else number(1, 1)
    if DEFECTS.has("plans before the info"):
        write(protocol)
    info = dict(exchange(protocol + text(2, b"0.2.0")))
    if info.get(3) != 1 and not DEFECTS.has("accepts every plugin"):
        fail("another protocol")
    if DEFECTS.has("needs known fields") and any(field > 7 for field in info):
        os._exit(9)


def plan() -> list[bytes]:
    """Returns the resources of the plan."""
    if DEFECTS.has("generates at once"):
        write(b"")
    schema = b"" if DEFECTS.has("has no schema") else text(3, text(1, b"1"))
    found = exchange(schema)
    levels = [dict(fields(value)).get(1) for field, value in found if field == 3]
    if (ERROR in levels and not DEFECTS.has("ignores errors")) or (levels and DEFECTS.has("ends at warnings")):
        fail("the plan has errors")
    return [value for field, value in found if field == 1]


def generate(resources: list[bytes]) -> None:
    graph = b"" if DEFECTS.has("has no graph") else b"".join(text(2, one) for one in resources)
    exchange((b"" if DEFECTS.has("has no target") else text(1, b"conform")) + graph)


def drain() -> None:
    while os.read(errors, 1 << 16) and not DEFECTS.has("never reads stderr"):
        pass


def stop() -> None:
    """Ends the plugin: the end of its stdin, then SIGKILL."""
    if DEFECTS.has("never closes stdin"):
        time.sleep(60)
    os.close(wire)
    try:
        plugin.wait(1.0)
    except subprocess.TimeoutExpired:
        if DEFECTS.has("never kills"):
            time.sleep(60)
        plugin.kill()
    plugin.wait()


def fail(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    if DEFECTS.has("hangs without its plugin"):
        time.sleep(60)
    stop()
    os._exit(0 if DEFECTS.has("ends without an error") else 1)


threading.Thread(target=drain, daemon=True).start()
hello()
generate(plan())
stop()
os._exit(4 if DEFECTS.has("ends with an error") else 0)
