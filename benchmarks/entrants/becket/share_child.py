"""A child that burns processor time until the host's first byte, and then writes what its argument names, without end.

Of the standard library alone. `echo` responds to requests; `spin` burns for ever and never writes. A fork reads what
the host responds, so that a flood ends for no reason but that the host takes no more of it.
"""

import json
import os
import select
import sys

FRAME_LIMIT = 4 * 1024 * 1024
BLOCK = 64 * 1024


def framed(body):
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def largest():
    """Returns a message at the limits of bytes and of nodes."""
    head, tail = b'{"jsonrpc":"2.0","method":"x","params":[', b"]}"
    count = 24_990
    room = (FRAME_LIMIT - len(head) - len(tail)) // count - 1
    item = b'{"a":"%b"}' % (b"x" * (room - len(b'{"a":""}')))
    return framed(head + b",".join([item] * count) + tail)


def repeated(pattern):
    return pattern * (BLOCK // len(pattern))


FLOODS = {  # the descriptor, and what is written to it
    "tiny": lambda: (1, repeated(framed(b'{"jsonrpc":"2.0","method":"x","params":[1]}'))),
    "handlers": lambda: (1, repeated(framed(b'{"jsonrpc":"2.0","method":"x","params":[1]}'))),
    "garbage": lambda: (1, repeated(framed(b"{}"))),
    "largest": lambda: (1, largest()),
    "errors": lambda: (2, repeated(b"E\n")),
    "returns": lambda: (2, repeated(b"E\r")),
    "long": lambda: (2, repeated(b"E" * 8_000 + b"\n")),
    "unbroken": lambda: (2, repeated(b"E")),
    "spin": lambda: (-1, b""),
}


def echo():
    """Responds to each request with null."""
    source = sys.stdin.buffer
    while header := source.readline():
        source.readline()
        id = json.loads(source.read(int(header.split(b":")[1])))["id"]
        os.write(1, framed(b'{"jsonrpc":"2.0","id":%d,"result":null}' % id))


def main():
    if sys.argv[1] == "echo":
        echo()
        return
    fd, flood = FLOODS[sys.argv[1]]()
    while fd < 0 or not select.select([0], [], [], 0)[0]:
        for _ in range(10_000):
            pass
    if os.fork() == 0:
        while os.read(0, BLOCK):
            pass
        os._exit(0)
    view = memoryview(flood)
    while True:
        written = 0
        while written < len(view):
            written += os.write(fd, view[written:])


try:
    main()
except BrokenPipeError:
    pass
