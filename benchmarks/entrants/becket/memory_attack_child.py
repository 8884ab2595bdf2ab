"""An extension that tries to fill its host's memory, in the way that its argument names, until its host ends it.

Of the standard library alone, so that it can send what becket would not.
"""

import json
import os
import sys
import threading
from itertools import count

ATTACK = sys.argv[1]
FRAME = 4 << 20
BATCH = 50
KEYS = 100  # in one subscription
MAX_KEY = 256
VALUES = 24_900  # in one message: the host takes 50,000 brackets and commas


def read_frame(source):
    length = 0
    while line := source.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(source.read(length)) if length else None


def write(body):
    data = memoryview(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    while data:
        data = data[os.write(1, data) :]


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def request(id, method, params):
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, method, params)


# Each kind of params is as large as a message may be: in bytes, or in values.
TEXT = b'{"text":"%b"}' % (b"a" * (FRAME - 200))
WIDE_TEXT = b'{"text":"%b"}' % ("\U0001f600".encode() + b"a" * (FRAME - 200))  # four bytes a character in Python
CONTAINERS = b'{"list":[%b]}' % b",".join([b"{}"] * VALUES)
NOTE = b'{"namespace":"attacker","content":"x","meta":{"list":[%b]}}' % b",".join([b"{}"] * VALUES)
LONG_NOTE = b'{"namespace":"attacker","content":"%b"}' % (b"a" * (FRAME - 200))
QUERY = b'{"namespace":"attacker","limit":1000}'


def query_batches(ids):
    return b"[%b]" % b",".join(request(next(ids), b"memory.query", QUERY) for _ in range(BATCH))


def slow_batches(ids):
    members = (request(next(ids), b"slow", b"{}"), request(next(ids), b"memory.query", QUERY))
    return b"[%b]" % b",".join(members)


def subscriptions(ids):
    id = next(ids)
    keys = [f"{id}-{number}-".ljust(MAX_KEY, "k") for number in range(KEYS)]
    return request(id, b"config.subscribe", json.dumps({"keys": keys}).encode())


MESSAGES = {
    "query_batches": query_batches,
    "unread_query_batches": query_batches,
    "meta_query_batches": query_batches,
    "slow_requests": lambda ids: request(next(ids), b"slow", TEXT),
    "slow_wide_requests": lambda ids: request(next(ids), b"slow", WIDE_TEXT),
    "slow_containers": lambda ids: request(next(ids), b"slow", CONTAINERS),
    "slow_batches": slow_batches,
    "consent": lambda ids: request(next(ids), b"memory.append", LONG_NOTE),
    "consent_containers": lambda ids: request(next(ids), b"memory.append", NOTE),
    "subscriptions": subscriptions,
}


def attack(source):
    if not ATTACK.startswith("unread"):
        threading.Thread(target=read_all, args=(source,), daemon=True).start()
    ids = count(1)
    while True:
        write(MESSAGES[ATTACK](ids))


def read_all(source):
    while source.read1(1 << 20):
        pass
    os._exit(0)


def main():
    source = sys.stdin.buffer
    while (message := read_frame(source)) is not None:
        if message.get("method") == "initialize":
            send({"id": message["id"], "result": {"protocol_version": 1, "capabilities": {}}})
        elif message.get("method") == "begin":
            attack(source)
        elif "id" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})


try:
    main()
except BrokenPipeError:
    pass
