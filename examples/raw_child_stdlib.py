"""The other half of raw_peer.py in plain Python. It uses nothing of becket: a frame is a header and a JSON text."""

from __future__ import annotations

import json
import sys
from collections import deque
from itertools import count as numbers_from
from typing import Any

Message = dict[str, Any]

ids = numbers_from(1)
set_aside: deque[Message] = deque()  # came while this program waited for a response
sleeping: set[object] = set()
cancelled: set[object] = set()


def send(message: Message) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> Message:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        sys.exit(0)  # the host has closed the pipe
    message: Message = json.loads(sys.stdin.buffer.read(length))
    return message


def call(method: str, params: object) -> Any:
    id = next(ids)
    send({"id": id, "method": method, "params": params})
    while "method" in (message := receive()) or message["id"] != id:
        set_aside.append(message)
    return message["result"]


def handle_request(request: Message) -> None:
    id, params = request["id"], request.get("params", {})
    match request["method"]:
        case "echo":
            send({"id": id, "result": params})
        case "total":
            result = 0
            for number in params["numbers"]:
                result = call("host/add", {"a": result, "b": number})
            send({"id": id, "result": result})
        case "count":
            for number in range(1, params["to"] + 1):
                send({"method": "$/progress", "params": {"token": id, "value": number}})
            send({"id": id, "result": "done"})
        case "sleep":
            sleeping.add(id)  # gets a response when it is cancelled
        case "wasCancelled":
            send({"id": id, "result": bool(cancelled)})
        case "crash":
            print("out of paper", file=sys.stderr, flush=True)
            sys.exit(3)
        case method:
            send({"id": id, "error": {"code": -32601, "message": f"unknown method: {method}"}})


while True:
    message = set_aside.popleft() if set_aside else receive()
    if "id" in message:
        handle_request(message)
    elif message["method"] == "$/cancelRequest" and (id := message["params"]["id"]) in sleeping:
        sleeping.remove(id)
        cancelled.add(id)
        send({"id": id, "error": {"code": -32800, "message": "cancelled"}})
