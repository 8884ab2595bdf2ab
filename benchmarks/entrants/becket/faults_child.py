"""A child that sends `begin` and, at the host's first byte, sends the frame that its argument names, without end.

Of the standard library alone, so that it starts fast and can send what becket would not.
"""

import os
import sys

BEGIN = b'{"jsonrpc":"2.0","method":"begin"}'
HEADED = b"Content-Length: %d\r\n\r\n%b" % (len(BEGIN), BEGIN)
PAD = b"a" * 65_536

FRAMES = {  # how it begins, its first bytes, and what is repeated
    "length": (HEADED, b"Content-Length: 4294967296\r\n\r\n", PAD),
    "header": (HEADED, b"", b"X-Name: value\r\n" * 4_096),
    "header_line": (HEADED, b"X-Name: ", PAD),
    "line": (BEGIN + b"\n", b'{"jsonrpc":"2.0","method":"', PAD),
}

begin, first, repeated = FRAMES[sys.argv[1]]
os.write(1, begin)
os.read(0, 1)
os.write(1, first)
try:
    while True:
        os.write(1, repeated)
except BrokenPipeError:
    pass
