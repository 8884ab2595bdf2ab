"""One extension of a crowd: it echoes, and on demand floods its host or keeps a core busy for ever.

Of the standard library alone, so that a hundred of them start fast.
"""

import json
import os
import sys

NAME = sys.argv[1]
TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object"}}
    for name in ("echo", "begin_flood", "begin_spin")
]
LOG = json.dumps({"jsonrpc": "2.0", "method": "$/log", "params": {"level": "debug", "logger": NAME, "message": "x"}})
FLOOD = (f"Content-Length: {len(LOG)}\r\n\r\n{LOG}" * 500).encode()


def read_frame(source):
    length = 0
    while line := source.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(source.read(length)) if length else None


def write_frame(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    os.write(1, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def main():
    source = sys.stdin.buffer
    while (message := read_frame(source)) is not None:
        if "id" not in message:
            continue
        tool = None
        match message["method"]:
            case "initialize":
                response = {"result": {"protocol_version": 1, "capabilities": {"tools": TOOLS}}}
            case "tool.call":
                tool = message["params"]["name"]
                response = {"result": message["params"]["input"]}
            case "shutdown":
                return
            case _:
                response = {"error": {"code": -32601, "message": "unknown method"}}
        write_frame({"id": message["id"], **response})
        if tool == "begin_flood":
            while True:
                os.write(1, FLOOD)
        while tool == "begin_spin":
            pass


try:
    main()
except BrokenPipeError:
    pass
