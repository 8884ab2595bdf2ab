"""An extension for SynapsCLI in plain Python: the standard library, one thread, one message after the other.

It calls its host as most such programs do: it writes the request, and takes the next message for the response.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import count as numbers_from
from typing import Any

Message = dict[str, Any]

CAPABILITIES: Message = {
    "tools": [
        {
            "name": "write",
            "description": "Writes an entry into the journal.",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        },
        {
            "name": "read",
            "description": "Reads the entries that contain a text.",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
        {"name": "whoami", "description": "Tells what it knows of itself.", "input_schema": {"type": "object"}},
    ],
    "providers": [
        {
            "id": "aloud",
            "display_name": "Aloud",
            "description": "Reads the journal aloud, word by word.",
            "models": [{"id": "slow", "capabilities": {"streaming": True, "tool_use": False}}],
        }
    ],
    "capabilities": [],
    "observed": ["members that nobody knows"],
}

ids = numbers_from(1000)
about: Message = {}  # what the host has sent about this extension


# -- frames


def send(message: Message) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> Message | None:
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        if not line.strip():
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    message: Message = json.loads(sys.stdin.buffer.read(length))
    return message


def call(method: str, params: Message) -> Any:
    id = next(ids)
    send({"id": id, "method": method, "params": params})
    response = receive()
    if response is None or response.get("id") != id or "method" in response:
        raise SystemExit(f"expected the response to {method}, got {response}")
    if "error" in response:
        raise RuntimeError(response["error"]["message"])
    return response["result"]


def notify(method: str, params: Message) -> None:
    send({"method": method, "params": params})


# -- what it does


def remember(text: str) -> int:
    kept = call("memory.append", {"namespace": about["plugin_id"], "content": text, "tags": ["entry"], "meta": None})
    timestamp: int = kept["timestamp_ms"]
    return timestamp


def recall(text: str) -> list[str]:
    query = {"namespace": about["plugin_id"], "content_contains": text, "tag_prefix": "ent", "limit": 20}
    return [record["content"] for record in call("memory.query", query)["records"]]


def call_tool(name: str, given: Message) -> Any:
    match name:
        case "write":
            greeting = about["config"]["greeting"]
            remember(f"{greeting}, {given['text']}")
            return "written"
        case "read":
            return {"content": "\n".join(recall(given.get("text", "")))}
        case "whoami":
            return {"id": about["plugin_id"], "root": about["plugin_root"], "variables": sorted(os.environ)}
        case _:
            raise RuntimeError(f"no tool {name}")


def stream(request: Message) -> Message:
    words = request["messages"][-1]["content"].split()
    notify("provider.stream.event", {"event": {"type": "thinking", "text": "hm"}})
    for word in words:
        notify("provider.stream.event", {"type": "text", "delta": word})
    notify("provider.stream.event", {"type": "nonsense"})  # hosts ignore unknown members
    notify("provider.stream.event", {"type": "usage", "output_tokens": len(words)})
    return {"content": [], "stop_reason": "end_turn"}


def complete(request: Message) -> Message:
    text = str(request["messages"][-1]["content"])
    return {"content": [{"type": "text", "text": text.upper()}], "usage": {"output_tokens": 1}}


def run_command(request: Message) -> Message:
    id = request["request_id"]

    def put_out(**event: object) -> None:
        notify("command.output", {"request_id": id, "event": event})

    entries = recall("")
    notify("task.start", {"id": "tidy", "label": "Tidying up", "kind": "rebuild"})
    for number, entry in enumerate(entries, 1):
        notify("task.update", {"id": "tidy", "current": number, "total": len(entries)})
        notify("task.log", {"id": "tidy", "line": entry})
    notify("task.done", {"id": "tidy"})
    notify("command.output", {"request_id": "somebody else's", "kind": "text", "content": "not for you"})
    notify("command.output", {"request_id": id, "kind": "system", "content": f"mood: {mood()}"})
    put_out(kind="table", headers=["entry"], rows=[[entry] for entry in entries])
    put_out(kind="done")
    return {"tidied": len(entries), "args": request["args"]}


def mood() -> object:
    return call("config.get", {"key": "mood"})["value"]


def handle_hook(event: Message) -> Message:
    if "rm -rf" in json.dumps(event["tool_input"]):
        return {"action": "block", "reason": "the journal would be lost"}
    return {"action": "continue"}


def initialize(params: Message) -> Message:
    about.update(params)
    entries = recall("first words")  # calls within a call
    if not entries:
        remember("first words")
    call("config.set", {"key": "mood", "value": "calm"})
    return {"protocol_version": 1, "capabilities": CAPABILITIES}


def handle_request(method: str, params: Any) -> Any:
    match method:
        case "initialize":
            return initialize(params)
        case "info.get":
            return {"build": {"backend": "cpu", "version": "1"}, "models": [{"id": "slow", "installed": True}]}
        case "tool.call":
            return call_tool(params["name"], params["input"])
        case "provider.complete":
            return complete(params)
        case "provider.stream":
            return stream(params)
        case "command.invoke":
            return run_command(params)
        case "hook.handle":
            return handle_hook(params)
        case "sidecar.spawn_args":
            return {"args": ["--quiet"], "language": "en"}
        case _:
            raise LookupError(f"method not found: {method}")


def main() -> None:
    while message := receive():
        if "method" not in message or "id" not in message:
            continue  # a response that nothing waits for, or a notification
        if message["method"] == "shutdown":
            return  # without a response, as many do
        try:
            send({"id": message["id"], "result": handle_request(message["method"], message["params"])})
        except LookupError as error:
            send({"id": message["id"], "error": {"code": -32601, "message": str(error)}})
        except RuntimeError as error:
            send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})


main()
