"""A native extension in the standard library that offers all that the cases need, and has the defects it is given.

Without defects it passes every case. It starts in 30 ms, so that hundreds of mutants can be run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from native_wire import (  # type: ignore[import-not-found]  # it stands beside this program
    DEFECTS,
    FRAME_LIMIT,
    LinkEnded,
    Members,
    Rejected,
    check_message,
    decode,
    encode_frame,
    read_batch,
    read_frames,
    to_error,
    wrong,
)

Message = dict[str, Any]
FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"]
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
TOOLS = [
    f"conform_{name}"
    for name in (
        "echo",
        "add",
        "sleep",
        "block",
        "fail",
        "reject",
        "call",
        "log",
        "progress",
        "print",
        "stderr",
        "text",
    )
]

wire = os.dup(1)
os.dup2(2, 1)  # what the program prints goes to stderr
if DEFECTS.has("prints to the wire"):
    os.dup2(wire, 1)
sending = threading.Lock()


class Call:
    """One pending request of the host."""

    def __init__(self, id: Any, meta: Message) -> None:
        self.id = id
        self.depth = meta.get("depth", 0)
        self.deadline = time.monotonic() + meta["timeout_ms"] / 1000 if "timeout_ms" in meta else None
        self.credit = meta.get("credit")
        self.changed = threading.Condition()
        self.is_cancelled = False

    def remaining(self) -> float:
        return 60.0 if self.deadline is None else self.deadline - time.monotonic()

    def wait(self, is_met: Any, seconds: float) -> bool:
        """Waits until something holds; raises if the call is cancelled or beyond its deadline."""
        with self.changed:
            self.changed.wait_for(lambda: self.is_cancelled or is_met(), max(0.0, min(seconds, self.remaining())))
        if self.is_cancelled and not DEFECTS.has("ignores cancellation"):
            raise Rejected(-32800, "cancelled")
        if self.remaining() <= 0 and not is_met():
            raise Rejected(1001, "timeout")
        return bool(is_met())


calls: dict[tuple[type, Any], Call] = {}
own_calls: dict[Any, list[Any]] = {}
last_id = 0
features: frozenset[str] = frozenset()
is_initialized = False
used_ids: set[Any] = set()
task_count = 0
blocked = 0


# -- frames


def write(message: Any) -> None:
    for one in DEFECTS.outgoing(message):
        data = encode_frame(one)
        with sending:
            while data:
                data = data[os.write(wire, data) :]


# -- JSON-RPC


def on_body(body: bytes) -> None:
    if not body and DEFECTS.has("skips empty bodies"):
        return
    try:
        message = decode(body)
        if isinstance(message, list):
            on_batch(message)
            return
        check_message(message)
    except Rejected as error:
        write(to_error(None if error.id is ... else error.id, error))
        return
    on_message(message, write)


def on_batch(batch: list[Any]) -> None:
    responses = read_batch(batch, on_message)
    if DEFECTS.has("responds apart"):
        for response in responses:
            write(response)
    elif responses or DEFECTS.has("responds with empty batches"):
        write(responses)


def on_message(received: Any, respond: Any) -> None:
    message = DEFECTS.incoming(received)
    if message is None:
        return
    if DEFECTS.exits_on(message):
        os._exit(9)
    code = DEFECTS.rejection(message)
    if code is not None:
        respond(to_error(message.get("id"), Rejected(code, "rejected")))
        return
    if "method" not in message or (DEFECTS.has("confuses ids") and message.get("id") in own_calls):
        on_response(message)
    elif "id" in message:
        on_request(message, respond)
    else:
        on_notification(message["method"], message.get("params"))
    for extra in DEFECTS.extra(message):
        write(extra)


def on_response(message: Message) -> None:
    waiting = own_calls.pop(message.get("id"), None) if isinstance(message.get("id"), int) else None
    if waiting is None:
        return
    call, result = waiting
    if call is not None:
        with call.changed:
            result.append(message)
            call.changed.notify_all()


def on_notification(method: str, params: Any) -> None:
    params = params if isinstance(params, dict) else {}
    id = params.get("id")
    call = calls.get((type(id), id)) if isinstance(id, str | int | float) else None
    if DEFECTS.has("cancels by text") and call is None:
        call = next((one for one in calls.values() if str(one.id) == str(id)), None)
    if DEFECTS.has("cancels every call") and method == "$/cancelRequest":
        for one in list(calls.values()):
            cancel(one)
    elif method == "$/cancelRequest" and call is not None:
        cancel(call)
    elif method == "$/credit" and call is not None and isinstance(params.get("n"), int):
        with call.changed:
            call.credit = (call.credit or 0) + params["n"]
            call.changed.notify_all()


def cancel(call: Call) -> None:
    with call.changed:
        call.is_cancelled = True
        call.changed.notify_all()


def on_request(message: Message, respond: Any) -> None:
    id, method, params = message["id"], message["method"], message.get("params")
    if DEFECTS.has("uses an id once") and (id in used_ids or used_ids.add(id)):
        respond(to_error(None, Rejected(-32600, "used before")))
        return
    if (type(id), id) in calls:
        respond(to_error(None, Rejected(wrong("an id in use") or -32600, "the id is in use")))
        return
    meta: Message = {}
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict) and not DEFECTS.has("ignores metadata"):
        meta = params["_meta"].get("becket", {})
    if method == "$/ping" and not (DEFECTS.has("pings in a handler") and calls):
        respond({"id": id, "result": None})
        return
    call = Call(id, meta)
    if respond is write and method in ("tool.call", "command.invoke", "provider.stream", "provider.complete", "$/ping"):
        calls[type(id), id] = call
        runs_at_once = DEFECTS.has("one call at a time") or DEFECTS.has("blocks its reader")
        thread = threading.Thread(target=serve, args=(call, method, params, respond), daemon=True)
        thread.start()
        if runs_at_once:
            thread.join()
    else:
        serve(call, method, params, respond)


def serve(call: Call, method: str, params: Any, respond: Any) -> None:
    try:
        response: Message = {"id": call.id, "result": handle(call, method, params)}
    except Rejected as error:
        response = to_error(call.id, error)
    except Exception as error:
        text = repr(error) if DEFECTS.has("reveals errors") else "internal error"
        data = {"incident": "1"}
        response = to_error(call.id, Rejected(-32603, text, data))
        print("incident 1:", repr(error), file=sys.stderr)
    calls.pop((type(call.id), call.id), None)
    if len(json.dumps(response)) > FRAME_LIMIT and not DEFECTS.has("sends large frames"):
        response = to_error(call.id, Rejected(1004, "too large"))
    respond(response)
    if method == "shutdown":
        if DEFECTS.has("stays after shutdown") or (calls and DEFECTS.has("waits for calls at shutdown")):
            return
        os._exit(3 if DEFECTS.has("exits with an error") else 0)


# -- the contract


def handle(call: Call, method: str, params: Any) -> Any:
    global is_initialized
    if params is not None and not isinstance(params, dict | list):
        raise Rejected(wrong("a number as params") or -32602, "params must be an object")
    if params is None:
        params = {}
    if method == "initialize":
        return initialize(params)
    if method == "shutdown":
        return None
    if not is_initialized and not DEFECTS.has("needs no handshake") and method in HANDLERS:
        raise Rejected(1005, "not ready")
    if method not in HANDLERS:
        raise Rejected(-32601, f"unknown method: {method[:100]}")
    if not isinstance(params, dict):
        raise Rejected(-32602, "params must be an object")
    return HANDLERS[method](call, params)


def initialize(params: Any) -> Message:
    global features, is_initialized
    if "extension_protocol_version" not in params:
        raise Rejected(-32602, "params are missing")
    if params["extension_protocol_version"] != 1:
        raise Rejected(1008, "version 1 is supported", {"supported": [1]})
    if is_initialized:
        if DEFECTS.has("exits at a second handshake"):
            os._exit(5)
        raise Rejected(-32600, "the handshake is done")
    is_initialized = True
    wanted = params.get("features", [])
    features = frozenset(FEATURES if DEFECTS.has("ignores features") else [one for one in wanted if one in FEATURES])
    result: Message = {
        "protocol_version": 1,
        "capabilities": {
            "tools": [
                {"name": name, "description": "A tool.", "input_schema": ADD if name == "conform_add" else {}}
                for name in TOOLS
            ],
            "providers": [
                {
                    "id": "conform",
                    "display_name": "Conform",
                    "description": "Repeats.",
                    "models": [{"id": "words", "context_window": 4096, "capabilities": {"streaming": True}}],
                }
            ],
        },
    }
    if wanted or DEFECTS.has("sends information always"):
        result["features"] = FEATURES
        result["info"] = {"build": {"backend": "cpu"}}
    if wanted:
        result["capabilities"]["hooks"] = [{"hook": "before_tool_call", "match": {"tool": "conform_guarded"}}]
    return result


def meta_of(call: Call, **others: Any) -> Message:
    if "deadline" not in features or DEFECTS.has("omits metadata"):
        return {}
    return {"_meta": {"becket": {"parent": call.id, **others}}}


def notify(method: str, params: Message) -> None:
    write({"method": method, "params": params})


def send_event(call: Call, method: str, params: Message) -> None:
    """Sends an event of a call when its credit allows it."""
    if call.credit is not None and not DEFECTS.has("ignores credit"):
        call.wait(lambda: (call.credit or 0) > 0, 600.0)
        call.credit -= 1
    notify(method, {**meta_of(call), **params})


def call_host(call: Call, method: str, params: Message) -> Message:
    global last_id
    with sending:
        last_id += 0 if DEFECTS.has("reuses its ids") and last_id else 1
        id = last_id
        own_calls[id] = [call, result := []]
    rest = max(1, int(call.remaining() * 1000))
    meta = meta_of(call, depth=call.depth + 1, timeout_ms=rest)
    if DEFECTS.has("adds time") and meta:
        meta["_meta"]["becket"]["timeout_ms"] = rest + 60_000
    if DEFECTS.has("repeats the depth") and meta:
        meta["_meta"]["becket"]["depth"] = call.depth
    write({"id": id, "method": method, "params": {**meta, **params}})
    try:
        call.wait(lambda: bool(result), 60.0)
    except Rejected:
        if "cancel" in features:
            notify("$/cancelRequest", {"id": id})
        raise
    response: Message = result[0]
    return {"error": response["error"]} if response.get("error") is not None else {"result": response.get("result")}


def call_tool(call: Call, params: Message) -> Any:
    global blocked
    name, values = params.get("name"), params.get("input")
    if name not in TOOLS:
        raise Rejected(-32602, "there is no such tool", problems("/name"))
    if not isinstance(values, dict):
        raise Rejected(-32602, "the input must be an object", problems("/input"))
    match name:
        case "conform_echo":
            return values["value"]
        case "conform_add":
            return add(values)
        case "conform_sleep":
            call.wait(lambda: False, values["ms"] / 1000)
            return "slept"
        case "conform_block":
            blocked += 1
            time.sleep(values["ms"] / 1000)
            return "blocked"
        case "conform_fail":
            raise LookupError(values["text"])
        case "conform_reject":
            raise Rejected(values["code"], values["message"])
        case "conform_call":
            return call_host(call, values["method"], values["params"])
        case "conform_log":
            if "log" in features:
                notify("$/log", {"level": "warning", "logger": "conform", "message": values["message"]})
            return None
        case "conform_progress":
            for number in range(1, values["count"] + 1):
                if "progress" in features:
                    notify("$/progress", {"token": call.id, "value": number})
            return values["count"]
        case "conform_print":
            if "Content-Length" in values["text"] and DEFECTS.has("prints frames to the wire"):
                os.write(wire, values["text"].encode())
            print(values["text"], flush=True)
            return "printed"
        case "conform_stderr":
            print("x" * values["size"], file=sys.stderr, flush=True)
            return "written"
        case _:
            return "x" * values["size"]


def problems(*pointers: str) -> Message:
    return {"problems": [{"pointer": pointer, "message": "is wrong"} for pointer in pointers]}


def add(values: Message) -> int:
    names = values.names if isinstance(values, Members) else list(values)
    found = [f"/input/{name}" for name in ("a", "b") if type(values.get(name)) is not int]
    found += [f"/input/{name}" for name in names if name not in ("a", "b")]
    if names.count("a") > 1 and not DEFECTS.has("ends at duplicates"):
        found.append("/input/a")
    elif names.count("a") > 1:
        os._exit(4)
    if found:
        raise Rejected(-32602, "invalid input", problems(*found))
    return int(values["a"]) + int(values["b"])


def invoke_command(call: Call, params: Message) -> Any:
    global task_count
    args, run = params.get("args"), params.get("request_id")
    if not isinstance(args, list) or not all(isinstance(one, str) for one in args) or not isinstance(run, str):
        raise Rejected(-32602, "invalid params")
    if params.get("command") == "conform_count":
        last = int(args[0])
        for number in range(1, last + 1):
            event = {"kind": "text", "content": str(number)}
            send_event(call, "command.output", {"request_id": run, "event": event})
        send_event(call, "command.output", {"request_id": run, "event": {"kind": "done"}})
        return {"count": last}
    if params.get("command") != "conform_task":
        raise Rejected(-32602, "there is no such command", problems("/command"))
    task_count += 1
    task = {"id": "task" if DEFECTS.has("one task id") else f"task-{task_count}"}
    notify("task.start", {**task, "label": "Working", "kind": "rebuild"})
    notify("task.update", {**task, "current": 1, "total": 2})
    notify("task.log", {**task, "line": "half"})
    notify("task.update", {**task, "current": 2, "total": 2})
    if args:
        notify("task.done", {**task, "error": "stopped"})
        raise RuntimeError("stopped")
    notify("task.done", task)
    return None


def run_model(call: Call, params: Message, *, streams: bool) -> Any:
    if (params.get("provider_id"), params.get("model_id")) != ("conform", "words") or not params.get("messages"):
        raise Rejected(-32602, "there is no such model")
    text = str(params["messages"][-1]["content"])
    for word in text.split() if streams else ():
        send_event(call, "provider.stream.event", {"type": "text", "delta": word})
    if streams:
        send_event(call, "provider.stream.event", {"type": "done"})
    return {"content": [{"type": "text", "text": text}]}


def handle_hook(call: Call, params: Message) -> Any:
    values = params.get("tool_input")
    decision = values.get("decision") if params.get("tool_name") == "conform_guarded" and values else None
    if decision == "block":
        return {"action": "block", "reason": "blocked by the case"}
    if decision == "modify":
        return {"action": "modify", "input": {"decision": "modified"}}
    return {"action": "continue"}


def open_editor(call: Call, params: Message) -> Any:
    if "field" not in params:
        raise Rejected(-32602, "the field is missing")
    return {**params, "render": {"rows": [{"label": "white", "data": "white"}], "cursor": 0}}


HANDLERS: dict[str, Any] = {
    "tool.call": call_tool,
    "command.invoke": invoke_command,
    "provider.complete": lambda call, params: run_model(call, params, streams=False),
    "provider.stream": lambda call, params: run_model(call, params, streams=True),
    "hook.handle": handle_hook,
    "info.get": lambda call, params: {"build": {"backend": "cpu"}},
    "sidecar.spawn_args": lambda call, params: {},
    "settings.editor.open": open_editor,
    "$/ping": lambda call, params: call.wait(lambda: len(calls) < 2, 60.0) and None,
}


def main() -> None:
    if DEFECTS.has("prints at start"):
        os.write(wire, b"hello\n")
    if DEFECTS.has("ignores SIGTERM"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if DEFECTS.has("exits when idle"):
        threading.Timer(0.4, os._exit, (0,)).start()
    try:
        for body in read_frames(0):
            on_body(body)
    except LinkEnded:
        if DEFECTS.has("answers to a gigabyte"):
            write({"id": None, "error": {"code": 1004, "message": "too large"}})
            time.sleep(60)
        os._exit(2)
    if DEFECTS.has("ignores the end before the handshake") and not is_initialized:
        time.sleep(60)
    is_blocked = bool(calls) and blocked > 0
    if (calls and not is_blocked and DEFECTS.has("waits for a sleep at the end")) or (
        is_blocked and DEFECTS.has("waits for calls at the end")
    ):
        time.sleep(60)
    if DEFECTS.has("ignores the end of stdin"):
        time.sleep(60)
    os._exit(0)


if __name__ == "__main__":
    main()
