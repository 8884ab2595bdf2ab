"""Extensions written from the contract alone, without becket; the argument selects one.

Only the standard library, and started with `-S`: it is there in a few milliseconds."""

from __future__ import annotations

import json
import os
import sys
import time


def read():
    length = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length))


def write(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def respond(requested, result):
    write({"id": requested["id"], "result": result})


def notify(method, params):
    write({"method": method, "params": params})


def call(number, method, params):
    write({"id": number, "method": method, "params": params})
    while True:
        message = read()
        if message.get("id") == number and "method" not in message:
            return message.get("result", message.get("error"))


TOOLS = [{"name": "echo", "description": "Says it again.", "input_schema": {"type": "object"}}]
PROVIDERS = [
    {
        "id": "local",
        "display_name": "Local",
        "description": "Mine.",
        "models": [{"id": "small", "capabilities": {"streaming": True}}],
    }
]


def serve(requested):
    """A full extension of the first version of the contract."""
    params = requested.get("params") or {}
    match requested["method"]:
        case "tool.call":
            if params["name"] == "crash":
                os._exit(3)
            respond(requested, {"content": json.dumps(params["input"])})
        case "provider.stream":
            for word in ("good ", "day"):
                notify("provider.stream.event", {"event": {"type": "text", "delta": word}})
            notify("provider.stream.event", {"type": "done"})
            respond(requested, {"content": [{"type": "text", "text": "good day"}]})
        case "command.invoke":
            output = {"request_id": params["request_id"], "kind": "text", "content": " ".join(params["args"])}
            notify("task.start", {"id": "1", "label": "Working"})
            notify("command.output", output)
            notify("task.done", {"id": "1"})
            respond(requested, None)
            notify("command.output", {"request_id": params["request_id"], "kind": "done"})
        case "hook.handle":
            respond(requested, {"action": "block", "reason": params["kind"]})
        case "shutdown":
            sys.exit(0)  # without a response, as many do
        case _:
            write({"id": requested["id"], "error": {"code": -32601, "message": "method not found"}})


def notes():
    requested = read()
    respond(requested, {"protocol_version": 1, "capabilities": {"tools": TOOLS, "providers": PROVIDERS, "hooks": True}})
    while True:
        serve(read())


def remembers():
    requested = read()
    own = requested["params"]["plugin_id"]
    call(1, "memory.append", {"namespace": own, "content": "while starting"})
    found = call(2, "memory.query", {"namespace": own})
    tool = {**TOOLS[0], "description": found["records"][0]["content"]}
    respond(requested, {"protocol_version": 1, "capabilities": {"tools": [tool]}})
    while True:
        serve(read())


def reports_its_start():
    requested = read()
    about = {"cwd": os.getcwd(), "params": requested["params"], "env": sorted(os.environ)}
    respond(
        requested, {"protocol_version": 1, "capabilities": {"capabilities": [{"kind": "k", "name": json.dumps(about)}]}}
    )
    while True:
        serve(read())


def logs():
    sys.stderr.write("WARNING:notes.index:the index is old\nplain words\nERROR:notes:\x1b[2Jred\n")
    sys.stderr.flush()
    requested = read()
    notify("$/log", {"level": "error", "logger": "notes", "message": "first\nsecond \x1b[0m"})
    respond(requested, {"protocol_version": 1, "capabilities": []})
    while True:
        serve(read())


def silent():
    print("still thinking", file=sys.stderr, flush=True)
    read()
    time.sleep(60)


def deaf():
    time.sleep(60)


def crashes():
    read()
    raise ValueError("no index")


def exits():
    sys.exit(0)


def prints():
    print("Welcome to notes!", flush=True)
    read()
    time.sleep(60)


def of_tomorrow():
    respond(read(), {"protocol_version": 2, "capabilities": {"rooms": []}})
    time.sleep(60)


def forgets_itself():
    respond(read(), {"protocol_version": 1, "capabilities": {"tools": [{**TOOLS[0], "name": ""}]}})
    time.sleep(60)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
