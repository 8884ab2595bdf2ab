"""A process extension of Roder in plain Python: tools, models, tasks, agents, and an event sink.

It reads one message a line from its stdin and writes to its stdout. Its first response repeats the manifest that
lies beside it, with its checksum. Requests that take long are acknowledged at once, and report by events.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

Message = dict[str, Any]

PROTOCOL = "0.2.0"
MANIFEST = Path(os.environ.get("RODER_EXTENSION_MANIFEST") or Path(__file__).with_name("roder-extension.toml"))

writing = threading.Lock()
cancelled: dict[str, threading.Event] = {}
kinds_seen: list[str] = []


class Failure(Exception):
    """Becomes an error response."""


def fnv1a(data: bytes) -> str:
    number = 0xCBF29CE484222325
    for byte in data:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"


def write(message: Message) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def notify(method: str, params: Message) -> None:
    write({"method": method, "params": params})


# -- the handshake


def initialize(params: Message) -> Message:
    data = MANIFEST.read_bytes()
    manifest = tomllib.loads(data.decode())
    if params["protocolVersion"] != PROTOCOL:
        raise Failure(f"this extension speaks {PROTOCOL}")
    return {
        "protocolVersion": PROTOCOL,
        "extensionId": manifest["id"],
        "services": manifest["provides"],
        "manifestChecksum": fnv1a(data),
    }


# -- tools


def call_tool(params: Message) -> Message:
    arguments = params["arguments"]
    match params["toolName"]:
        case "word_count":
            count = len(arguments["text"].split())
            return {"content": f"{count} words", "isError": False, "data": {"words": count}}
        case "divide" if arguments["b"] == 0:
            return {"content": "nothing can be divided by 0", "isError": True}
        case "divide":
            return {"content": str(arguments["a"] / arguments["b"]), "isError": False}
        case unknown:
            raise Failure(f"there is no tool {unknown}")


# -- models


def list_models(params: Message) -> Message:
    efforts = [{"effort": "low", "description": "thinks little"}]
    return {
        "models": [
            {"id": "parrot", "name": "Parrot", "context_window": 4096},
            {"id": "sage:7b", "name": "Sage", "context_window": None, "supported_reasoning": efforts},
        ]
    }


def stream_turn(params: Message) -> None:
    stream, request = params["streamId"], params["request"]
    texts = [item["UserMessage"]["text"] for item in request["transcript"] if "UserMessage" in item]
    text = texts[-1] if texts else ""

    def send_event(event: Message) -> None:
        notify("inference/event", {"streamId": stream, "event": event})

    if text == "fail":
        send_event({"Failed": {"message": "the parrot is asleep"}})
        return
    send_event({"ReasoningDelta": {"text": "they want me to "}})
    send_event({"ReasoningDelta": {"text": "repeat it"}})
    if request["tools"]:
        send_event({"ToolCallStarted": {"id": "t1", "name": request["tools"][0]["name"]}})
        send_event({"ToolCallDelta": {"id": "t1", "arguments_delta": '{"text":'}})
        arguments = json.dumps({"text": text})
        send_event({"ToolCallCompleted": {"id": "t1", "name": request["tools"][0]["name"], "arguments": arguments}})
    for word in text.split():
        send_event({"MessageDelta": {"text": word + " "}})
    send_event({"ProviderMetadata": {"events_seen": len(kinds_seen), "model": request["model"]["model"]}})
    send_event({"Usage": {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}})
    send_event({"Completed": {"stop_reason": "stop", "provider_response_id": "r-1"}})


# -- tasks


def describe_task(params: Message) -> Message:
    schema = {"type": "object", "properties": {"args": {"type": "array", "items": {"type": "string"}}}}
    return {"spec": {"kind": "build", "description": "Builds what it is told to.", "input_schema": schema}}


def execute(params: Message) -> None:
    execution, given = params["executionId"], params["input"]
    targets = given.get("args", [])
    is_over = cancelled.setdefault(execution, threading.Event())

    def send_event(event: Message) -> None:
        notify("tasks/event", {"executionId": execution, "event": event})

    if targets == ["nothing"]:
        send_event({"type": "failed", "error": "there is nothing to build"})
    elif targets == ["forever"]:
        send_event({"type": "output", "stream": "log", "chunk": "working"})
        threading.Thread(target=wait_for_end, args=(execution, is_over), daemon=True).start()
    else:
        send_event({"type": "output", "stream": "log", "chunk": f"{len(targets)} to build"})
        for target in targets:
            send_event({"type": "output", "stream": "stdout", "chunk": f"built {target}"})
        send_event({"type": "output", "stream": "stderr", "chunk": "one warning"})
        send_event({"type": "completed", "result": {"exit_code": 0, "payload": {"built": targets}}})


def wait_for_end(execution: str, is_over: threading.Event) -> None:
    is_over.wait()
    emit("workshop.cancelled", {"executionId": execution})


# -- agents


def list_agents(params: Message) -> Message:
    agent: Message = {
        "agent_type": "apprentice",
        "description": "Does what it is told.",
        "tools": [],
        "model": "parrot",
        "system_prompt": None,
        "permission_mode": "read_only",
        "max_turns": 3,
        "max_result_chars": None,
    }
    return {"definitions": [agent]}


def dispatch(params: Message) -> None:
    dispatch_id, request = params["dispatchId"], params["request"]

    def send_event(event: Message) -> None:
        notify("subagents/event", {"dispatchId": dispatch_id, "event": event})

    send_event({"type": "status", "status": "RUNNING", "detail": "at the bench"})
    if request["prompt"] == "fail":
        send_event({"type": "failed", "error": "it broke"})
    elif request["prompt"] == "forever":
        is_over = cancelled.setdefault(dispatch_id, threading.Event())
        threading.Thread(target=wait_for_end, args=(dispatch_id, is_over), daemon=True).start()
    else:
        result: Message = {
            "thread_id": "bench-1",
            "turn_id": "bench-turn-1",
            "agent_type": request["subagent_type"] or "apprentice",
            "model": "parrot",
            "final_message": f"done: {request['prompt']}",
            "usage": None,
            "exit_reason": "completed",
            "metadata": {},
        }
        send_event({"type": "completed", "result": result})


def cancel(params: Message) -> Message:
    cancelled.setdefault(params.get("dispatchId") or params["executionId"], threading.Event()).set()
    return {}


# -- events


def handle_event(params: Message) -> None:
    kinds_seen.append(params["envelope"]["kind"])
    emit("workshop.heard", {"kinds": kinds_seen})


def emit(kind: str, payload: Message) -> None:
    notify("extension/event", {"extensionId": "workshop", "eventKind": kind, "schemaVersion": 1, "payload": payload})


# -- the loop

METHODS = {
    "extension/initialize": initialize,
    "tools/call": call_tool,
    "inference/listModels": list_models,
    "tasks/spec": describe_task,
    "tasks/cancel": cancel,
    "subagents/definitions": list_agents,
    "subagents/cancel": cancel,
}
ACKNOWLEDGED = {
    "inference/streamTurn": ("streamId", stream_turn),
    "tasks/execute": ("executionId", execute),
    "subagents/dispatch": ("dispatchId", dispatch),
}


def handle(message: Message) -> bool:
    """Handles one message; returns False after the last one."""
    method, id = message.get("method", ""), message.get("id")
    params: Message = message.get("params") or {}
    if method == "events/handle":
        handle_event(params)
    elif method in ACKNOWLEDGED:
        name, run = ACKNOWLEDGED[method]
        write({"id": id, "result": {name: params[name]}})
        run(params)
    elif method in METHODS:
        try:
            write({"id": id, "result": METHODS[method](params)})
        except (Failure, KeyError) as failure:
            write({"id": id, "error": {"code": -32000, "message": str(failure)}})
    elif method == "extension/shutdown":
        write({"id": id, "result": {}})
        return False
    elif id is not None:
        write({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
    return True


def main() -> None:
    print("the workshop is open", file=sys.stderr)
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # lines that are not messages are skipped
        if not handle(message):
            return


if __name__ == "__main__":
    main()
