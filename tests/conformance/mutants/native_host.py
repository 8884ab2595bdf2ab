"""A native host in the standard library that carries out the orders of the suite, and has the defects it is given.

Without defects it passes every case. Its second argument and those after it are the command line of the extension.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import native_wire  # type: ignore[import-not-found]  # it stands beside this program
from native_wire import Rejected, check_message, decode, encode_frame, read_batch, read_frames, to_error

from small_host import DEFECTS, CallFailed, LinkEnded, Message, SmallHost  # type: ignore[import-not-found]

FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"]
STRAY_LIMIT, CONTENT_LIMIT, CREDIT = 100, 16 * 1024, 64
SHUTDOWN_TIMEOUT = 0.5  # seconds


class NativeHost(SmallHost):
    is_lines = False
    next_call = ("info.get", {})

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Message] = []
        self.features: frozenset[str] = frozenset()
        self.records: list[Message] = []
        self.config: dict[str, str] = {}
        self.revisions: dict[str, int] = {}
        self.watched: set[str] = set()
        self.revision = 0
        self.strays = 0
        self.served: dict[str, Callable[[Message], Any]] = {
            "$/ping": lambda params: None,
            "memory.append": self.append,
            "memory.query": self.query,
            "config.get": self.get_config,
            "config.set": self.set_config,
            "config.subscribe": self.subscribe,
        }

    # -- the link: read as strictly as the specification says

    def write(self, message: Any) -> None:
        for one in DEFECTS.outgoing(message):
            data = encode_frame(one)
            try:
                with self._sending:
                    while data:
                        data = data[os.write(self._wire, data) :]
            except OSError:  # the extension is gone
                return

    def _read_frames(self) -> Iterator[bytes]:
        try:
            yield from read_frames(self._input)
        except native_wire.LinkEnded as error:
            raise LinkEnded from error

    def _on_body(self, body: bytes) -> None:
        try:
            message = decode(body)
            if isinstance(message, list):
                batch = read_batch(message, self._handle)
                if DEFECTS.has("responds apart"):
                    for response in batch:
                        self.write(response)
                elif batch:
                    self.write(batch)
                return
            check_message(message)
        except Rejected as error:
            self.write(to_error(None if error.id is ... else error.id, error))
            return
        self._handle(message, self.write)

    def _handle(self, received: Any, respond: Callable[[Any], None]) -> None:
        message = DEFECTS.incoming(received)
        if message is None:
            return
        if DEFECTS.exits_on(message):
            os._exit(9)
        for extra in DEFECTS.extra(message):
            self.write(extra)
        if "method" not in message:
            self.on_response(message)
        elif "id" not in message:
            self.on_notification(message["method"], message.get("params"))
        else:
            code = DEFECTS.rejection(message)
            try:
                if code is not None:
                    raise Rejected(code, "rejected")
                respond({"id": message["id"], "result": self.serve_method(message["method"], message.get("params"))})
            except Rejected as error:
                respond(to_error(message["id"], error))

    def on_response(self, message: Message) -> None:
        received = self._own.get(message.get("id"))
        if received == []:
            received.append(message)
            return
        self.strays += 1
        if self.strays > STRAY_LIMIT and DEFECTS.has("answers to noise"):
            self.write({"id": None, "error": {"code": -32600, "message": "noise"}})
        elif self.strays > STRAY_LIMIT:
            raise LinkEnded("responses to unknown ids")

    def on_notification(self, method: str, params: Any) -> None:
        if method in ("command.output", "provider.stream.event") and isinstance(params, dict):
            self.events.append(params)
            parent = params.get("_meta", {}).get("becket", {}).get("parent")
            if len(self.events) % (CREDIT // 2) == 0 and "credit" in self.features and parent in self._own:
                self.write({"method": "$/credit", "params": {"id": parent, "n": CREDIT // 2}})

    # -- what extensions call

    def serve_method(self, method: str, params: Any) -> Any:
        if method not in self.served:
            raise Rejected(-32601, f"unknown method: {method[:100]}")
        params = params if isinstance(params, dict) else {}
        parent = params.get("_meta", {}).get("becket", {}).get("parent")
        if parent is not None and parent not in self._own:
            raise Rejected(1003, "permission denied: unknown parent")
        return self.served[method](params)

    def append(self, params: Message) -> Message:
        check_namespace(params)
        content, idem = params.get("content"), params.get("idem")
        if not isinstance(content, str) or len(content) > CONTENT_LIMIT:
            raise Rejected(-32602, "the content must be a text of up to 16 KiB")
        for record in self.records:
            if idem is not None and record["idem"] == idem and not DEFECTS.has("appends twice"):
                return {"ok": True, "timestamp_ms": record["timestamp_ms"], "id": record["id"]}
        number = len(self.records) + 1
        tags = params.get("tags", [])
        self.records.append(
            {
                "id": number,
                "namespace": "conform",
                "content": content,
                "timestamp_ms": number,
                "tags": tags,
                "idem": idem,
            }
        )
        return {"ok": True, "timestamp_ms": number, "id": number}

    def query(self, params: Message) -> Message:
        check_namespace(params)
        needle = params.get("content_contains", "")
        found = [record for record in self.records if needle.lower() in record["content"].lower()]
        if DEFECTS.has("minds the case"):
            found = [record for record in self.records if needle in record["content"]]
        newest = found if DEFECTS.has("oldest first") else found[::-1]
        return {"records": [{**record} for record in newest[: params.get("limit", 50)]]}

    def get_config(self, params: Message) -> Message:
        return {"value": self.config.get(params["key"]), "revision": self.revisions.get(params["key"], 0)}

    def set_config(self, params: Message) -> Message:
        key, value = params["key"], params["value"]
        if not isinstance(value, str):
            raise Rejected(-32602, "the value must be a text")
        wanted = params.get("if_revision")
        if wanted is not None and wanted != self.revisions.get(key, 0):
            return {"ok": False, "revision": self.revisions.get(key, 0)}
        self.revision += 1
        self.config[key], self.revisions[key] = value, self.revision
        if key in self.watched or (self.watched and DEFECTS.has("notifies of every key")):
            self.write({"method": "config.changed", "params": {"key": key, "value": value, "revision": self.revision}})
        return {"ok": True, "revision": self.revision}

    def subscribe(self, params: Message) -> Message:
        self.watched.update(params.get("keys", []))
        return {"ok": True, "revision": self.revision, "snapshot": {}}

    # -- what extensions are called for

    def call_with_meta(self, method: str, params: Message, timeout: float, *, has_credit: bool = False) -> Any:
        """Returns the result of a call with the metadata that the extension supports."""
        meta: Message = {}
        if "deadline" in self.features:
            meta["timeout_ms"] = int(timeout * 1000)
        if "credit" in self.features and has_credit:
            meta["credit"] = CREDIT
        return self.call(method, {"_meta": {"becket": meta}, **params} if meta else params, timeout)

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        return self.call_with_meta("tool.call", {"name": name, "input": input}, timeout)

    def on_timeout(self, id: int, method: str) -> None:
        if "cancel" in self.features:
            self.write({"method": "$/cancelRequest", "params": {"id": id}})

    def shake_hands(self) -> None:
        params = {
            "synaps_version": "0.1.0",
            "extension_protocol_version": 1,
            "plugin_id": "conform",
            "plugin_root": None,
            "config": {},
            "host": {"name": "mutant", "version": "1"},
            "features": FEATURES,
        }
        result = self.call("initialize", params, 10.0)
        if DEFECTS.has("accepts every result") and not isinstance(result, dict):
            result = {"protocol_version": 1}
        if not isinstance(result, dict) or (
            result.get("protocol_version") != 1 and not DEFECTS.has("accepts version 2")
        ):
            raise CallFailed("the handshake failed")
        declared = result.get("capabilities", {})
        names = [tool["name"] for tool in declared.get("tools", [])]
        if (len(set(names)) < len(names) and not DEFECTS.has("accepts equal names")) or (
            any(":" in name for name in names) and not DEFECTS.has("accepts colons")
        ):
            raise CallFailed("invalid tools")
        has_empty_provider = any(not one["models"] for one in declared.get("providers", []))
        if has_empty_provider and not DEFECTS.has("accepts empty providers"):
            raise CallFailed("a provider without models")
        self.features = frozenset(FEATURES if DEFECTS.has("ignores features") else result.get("features", []))

    def carry_out(self, order: Message) -> Message:
        self.events.clear()
        match order["do"]:
            case "tool":
                return super().carry_out(order)
            case "command":
                params = {"command": order["name"], "args": order["args"], "request_id": "run-1"}
                result = self.call_with_meta("command.invoke", params, 60.0, has_credit=True)
                return {"result": result, "texts": [event["content"] for event in self.read_outputs("run-1")]}
            case "stream":
                params = {
                    "provider_id": order["provider"],
                    "model_id": order["model"],
                    "model": f"conform:{order['provider']}:{order['model']}",
                    "messages": [{"role": "user", "content": order["text"]}],
                }
                self.call_with_meta("provider.stream", params, 60.0, has_credit=True)
                return {"texts": [one["delta"] for one in self.events if one.get("type") == "text"]}
            case _:
                others = dict.fromkeys(("tool_output", "message", "session_id", "transcript", "data"))
                tool = {"tool_name": order["tool"], "tool_runtime_name": order["tool"], "tool_input": order["input"]}
                params = {"kind": "before_tool_call", **tool, **others}
                try:
                    return {"result": self.call_with_meta("hook.handle", params, 5.0)}
                except CallFailed:
                    return {"result": {"action": "block" if DEFECTS.has("fails closed") else "continue"}}

    def read_outputs(self, run: str) -> list[Message]:
        """Returns the texts among the outputs of a run."""
        outputs = [one["event"] for one in self.events if one.get("request_id") == run or DEFECTS.has("mixes runs")]
        return [event for event in outputs if event["kind"] == "text"]

    def request_shutdown(self) -> None:
        if not DEFECTS.has("sends no shutdown"):
            try:
                self.call("shutdown", None, 600.0 if DEFECTS.has("waits for shutdown") else SHUTDOWN_TIMEOUT)
            except CallFailed:
                pass


def check_namespace(params: Message) -> None:
    if params.get("namespace") != "conform":
        raise Rejected(1003, "permission denied: another namespace")


if __name__ == "__main__":
    NativeHost().main()
