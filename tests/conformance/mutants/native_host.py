"""A native host in the standard library that carries out the orders of the suite, and has the defects it is given.

Without defects it passes every case. Its second argument and those after it are the command line of the extension.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

from native_wire import (  # type: ignore[import-not-found]  # it stands beside this program
    DEFECTS,
    LinkEnded,
    Rejected,
    check_message,
    decode,
    encode_frame,
    read_batch,
    read_frames,
    to_error,
)

Message = dict[str, Any]
FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"]
STRAY_LIMIT, CONTENT_LIMIT, CREDIT = 100, 16 * 1024, 64

child = subprocess.Popen(
    sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
)
assert child.stdin is not None
assert child.stdout is not None
assert child.stderr is not None
wire, output, errors = child.stdin.fileno(), child.stdout.fileno(), child.stderr.fileno()
sending = threading.Lock()
changed = threading.Condition()
responses: dict[int, Message] = {}
pending: set[int] = set()
events: list[Message] = []
features: frozenset[str] = frozenset()
records: list[Message] = []
config: dict[str, str] = {}
revisions: dict[str, int] = {}
watched: set[str] = set()
state = {"id": 0, "revision": 0, "strays": 0, "time": 0}
has_ended = threading.Event()


class CallFailed(Exception):
    """A call of the extension failed; the text says why."""


# -- the link


def write(message: Any) -> None:
    for one in DEFECTS.outgoing(message):
        data = encode_frame(one)
        try:
            with sending:
                while data:
                    data = data[os.write(wire, data) :]
        except OSError:
            return


def read() -> None:
    try:
        for body in read_frames(output):
            on_body(body)
    except LinkEnded:
        kill()
    if DEFECTS.has("ignores the end of the output"):
        return
    with changed:
        has_ended.set()
        changed.notify_all()


def drain() -> None:
    """Reads stderr, so that the extension never blocks on it."""
    while os.read(errors, 1 << 16) and not DEFECTS.has("never reads stderr"):
        pass


def kill() -> None:
    if not DEFECTS.has("never kills"):
        child.kill()


def on_body(body: bytes) -> None:
    try:
        message = decode(body)
        if isinstance(message, list):
            batch = read_batch(message, on_message)
            if DEFECTS.has("responds apart"):
                for response in batch:
                    write(response)
            elif batch:
                write(batch)
            return
        check_message(message)
    except Rejected as error:
        write(to_error(None if error.id is ... else error.id, error))
        return
    on_message(message, write)


def on_message(received: Any, respond: Any) -> None:
    message = DEFECTS.incoming(received)
    if message is None:
        return
    if DEFECTS.exits_on(message):
        os._exit(9)
    for extra in DEFECTS.extra(message):
        write(extra)
    if "method" not in message:
        on_response(message)
    elif "id" not in message:
        on_notification(message["method"], message.get("params"))
    else:
        code = DEFECTS.rejection(message)
        try:
            if code is not None:
                raise Rejected(code, "rejected")
            respond({"id": message["id"], "result": serve(message["method"], message.get("params"))})
        except Rejected as error:
            respond(to_error(message["id"], error))


def on_response(message: Message) -> None:
    id = message.get("id")
    with changed:
        if isinstance(id, int) and (id in pending or DEFECTS.has("accepts every response")):
            pending.discard(id)
            responses[id] = message
            changed.notify_all()
            return
    state["strays"] += 1
    if state["strays"] > STRAY_LIMIT and DEFECTS.has("answers to noise"):
        write({"id": None, "error": {"code": -32600, "message": "noise"}})
    elif state["strays"] > STRAY_LIMIT:
        raise LinkEnded("responses to unknown ids")


def on_notification(method: str, params: Any) -> None:
    if method in ("command.output", "provider.stream.event") and isinstance(params, dict):
        with changed:
            events.append(params)
            parent = params.get("_meta", {}).get("becket", {}).get("parent")
            if len(events) % (CREDIT // 2) == 0 and "credit" in features and parent in pending:
                write({"method": "$/credit", "params": {"id": parent, "n": CREDIT // 2}})


# -- what extensions call


def serve(method: str, params: Any) -> Any:
    if method not in SERVED:
        raise Rejected(-32601, f"unknown method: {method[:100]}")
    params = params if isinstance(params, dict) else {}
    parent = params.get("_meta", {}).get("becket", {}).get("parent")
    if parent is not None and parent not in pending:
        raise Rejected(1003, "permission denied: unknown parent")
    return SERVED[method](params)


def append(params: Message) -> Message:
    check_namespace(params)
    content, idem = params.get("content"), params.get("idem")
    if not isinstance(content, str) or len(content) > CONTENT_LIMIT:
        raise Rejected(-32602, "the content must be a text of up to 16 KiB")
    for record in records:
        if idem is not None and record["idem"] == idem and not DEFECTS.has("appends twice"):
            return {"ok": True, "timestamp_ms": record["timestamp_ms"], "id": record["id"]}
    state["time"] += 1
    record = {
        "id": len(records) + 1,
        "namespace": "conform",
        "content": content,
        "timestamp_ms": state["time"],
        "tags": params.get("tags", []),
        "idem": idem,
    }
    records.append(record)
    return {"ok": True, "timestamp_ms": record["timestamp_ms"], "id": record["id"]}


def check_namespace(params: Message) -> None:
    if params.get("namespace") != "conform":
        raise Rejected(1003, "permission denied: another namespace")


def query(params: Message) -> Message:
    check_namespace(params)
    needle = params.get("content_contains", "")
    found = [record for record in records if needle.lower() in record["content"].lower()]
    if DEFECTS.has("minds the case"):
        found = [record for record in records if needle in record["content"]]
    newest = found if DEFECTS.has("oldest first") else found[::-1]
    return {"records": [{**record} for record in newest[: params.get("limit", 50)]]}


def get_config(params: Message) -> Message:
    return {"value": config.get(params["key"]), "revision": revisions.get(params["key"], 0)}


def set_config(params: Message) -> Message:
    key, value = params["key"], params["value"]
    if not isinstance(value, str):
        raise Rejected(-32602, "the value must be a text")
    wanted = params.get("if_revision")
    if wanted is not None and wanted != revisions.get(key, 0):
        return {"ok": False, "revision": revisions.get(key, 0)}
    state["revision"] += 1
    config[key], revisions[key] = value, state["revision"]
    if key in watched or (watched and DEFECTS.has("notifies of every key")):
        write({"method": "config.changed", "params": {"key": key, "value": value, "revision": state["revision"]}})
    return {"ok": True, "revision": state["revision"]}


def subscribe(params: Message) -> Message:
    watched.update(params.get("keys", []))
    return {"ok": True, "revision": state["revision"], "snapshot": {}}


SERVED: dict[str, Any] = {
    "$/ping": lambda params: None,
    "memory.append": append,
    "memory.query": query,
    "config.get": get_config,
    "config.set": set_config,
    "config.subscribe": subscribe,
}


# -- what extensions are called for


def call(method: str, params: Message | None, timeout: float, *, has_credit: bool = False) -> Any:
    """Returns the result of a call.

    Raises:
        CallFailed: there is no response in time, or an error, or the extension is gone.
    """
    id = send_request(method, params, timeout, has_credit=has_credit)
    with changed:
        changed.wait_for(lambda: id in responses or has_ended.is_set(), timeout)
        pending.discard(id)
        response = responses.pop(id, None)
    if response is None:
        if "cancel" in features and not has_ended.is_set():
            write({"method": "$/cancelRequest", "params": {"id": id}})
        raise CallFailed(f"{method}: no response")
    if response.get("error") is not None:
        raise CallFailed(f"{method}: {response['error'].get('message')}")
    return response.get("result")


def send_request(method: str, params: Message | None, timeout: float, *, has_credit: bool) -> int:
    with changed:
        state["id"] += 0 if DEFECTS.has("reuses its ids") and state["id"] else 1
        id = state["id"]
        pending.add(id)
    meta: Message = {}
    if "deadline" in features:
        meta["timeout_ms"] = int(timeout * 1000)
    if "credit" in features and has_credit:
        meta["credit"] = CREDIT
    if meta and params is not None:
        params = {"_meta": {"becket": meta}, **params}
    write({"id": id, "method": method, **({} if params is None else {"params": params})})
    return id


def shake_hands() -> None:
    global features
    result = call(
        "initialize",
        {
            "synaps_version": "0.1.0",
            "extension_protocol_version": 1,
            "plugin_id": "conform",
            "plugin_root": None,
            "config": {},
            "host": {"name": "mutant", "version": "1"},
            "features": FEATURES,
        },
        10.0,
    )
    if DEFECTS.has("accepts every result") and not isinstance(result, dict):
        result = {"protocol_version": 1}
    if not isinstance(result, dict) or (result.get("protocol_version") != 1 and not DEFECTS.has("accepts version 2")):
        raise CallFailed("the handshake failed")
    declared = result.get("capabilities", {})
    names = [tool["name"] for tool in declared.get("tools", [])]
    if (len(set(names)) < len(names) and not DEFECTS.has("accepts equal names")) or (
        any(":" in name for name in names) and not DEFECTS.has("accepts colons")
    ):
        raise CallFailed("invalid tools")
    if any(not one["models"] for one in declared.get("providers", [])) and not DEFECTS.has("accepts empty providers"):
        raise CallFailed("a provider without models")
    features = frozenset(FEATURES if DEFECTS.has("ignores features") else result.get("features", []))


def carry_out(order: Message) -> Message:
    events.clear()
    match order["do"]:
        case "tool":
            params = {"name": order["name"], "input": order["input"]}
            return {"result": call("tool.call", params, order.get("timeout_ms", 60_000) / 1000)}
        case "command":
            params = {"command": order["name"], "args": order["args"], "request_id": "run-1"}
            result = call("command.invoke", params, 60.0, has_credit=True)
            return {"result": result, "texts": [event["content"] for event in read_outputs("run-1")]}
        case "stream":
            params = {
                "provider_id": order["provider"],
                "model_id": order["model"],
                "model": f"conform:{order['provider']}:{order['model']}",
                "messages": [{"role": "user", "content": order["text"]}],
            }
            call("provider.stream", params, 60.0, has_credit=True)
            return {"texts": [one["delta"] for one in events if one.get("type") == "text"]}
        case _:
            others = dict.fromkeys(("tool_output", "message", "session_id", "transcript", "data"))
            tool = {"tool_name": order["tool"], "tool_runtime_name": order["tool"], "tool_input": order["input"]}
            try:
                return {"result": call("hook.handle", {"kind": "before_tool_call", **tool, **others}, 5.0)}
            except CallFailed:
                return {"result": {"action": "block" if DEFECTS.has("fails closed") else "continue"}}


def read_outputs(run: str) -> list[Message]:
    """Returns the texts among the outputs of a run."""
    outputs = [one["event"] for one in events if one.get("request_id") == run or DEFECTS.has("mixes runs")]
    return [event for event in outputs if event["kind"] == "text"]


def run_orders() -> None:
    outcome: Message = {}
    while True:
        order = call("tool.call", {"name": "conform_next", "input": {"outcome": outcome}}, 600.0)
        if order["do"] == "stop":
            return
        try:
            outcome = carry_out(order)
        except CallFailed as error:
            outcome = {"error": str(error)}


def stop() -> None:
    """Ends the extension: a request, the end of its stdin, SIGTERM, SIGKILL."""
    if not DEFECTS.has("sends no shutdown"):
        try:
            call("shutdown", None, 600.0 if DEFECTS.has("waits for shutdown") else 0.5)
        except CallFailed:
            pass
    if DEFECTS.has("never closes stdin"):
        time.sleep(60)
    os.close(wire)
    for end in (child.terminate, child.kill):
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            if not DEFECTS.has("never kills"):
                end()
    if DEFECTS.has("never kills"):
        time.sleep(60)
    child.wait()


def main() -> None:
    for work in (read, drain):
        threading.Thread(target=work, daemon=True).start()
    try:
        if DEFECTS.has("calls before the handshake"):
            send_request("info.get", None, 1.0, has_credit=False)
        shake_hands()
        run_orders()
    except CallFailed as error:
        print(error, file=sys.stderr)
        if not has_ended.is_set() and not DEFECTS.has("leaves the extension"):
            stop()
        elif DEFECTS.has("leaves the extension"):
            time.sleep(60)
        kill()
        if DEFECTS.has("hangs without its extension"):
            time.sleep(60)
        os._exit(1)
    stop()
    os._exit(4 if DEFECTS.has("ends with an error") else 0)


if __name__ == "__main__":
    main()
