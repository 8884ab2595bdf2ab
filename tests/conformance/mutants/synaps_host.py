"""A host of SynapsCLI that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import Rejected, unknown  # type: ignore[import-not-found]

from small_host import DEFECTS, SHUTDOWN_TIMEOUT, Call, CallFailed, Message, SmallHost  # type: ignore[import-not-found]


class SynapsHost(SmallHost):
    is_lines = False
    has_null_params = True
    is_bad_json_fatal = True
    next_call = ("info.get", None)

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Message] = []
        self.config: dict[str, str] = {}

    def shake_hands(self) -> None:
        params = {
            "synaps_version": "0.1.0",
            "extension_protocol_version": 1,
            "plugin_id": "conform",
            "plugin_root": None,
            "config": {},
        }
        result = self.call("initialize", params)
        if result.get("protocol_version") != 1 and not DEFECTS.has("accepts version 2"):
            raise CallFailed("another version")

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        return self.call("tool.call", {"name": name, "input": input}, timeout)

    def read_result(self, response: Message) -> Any:
        if "error" in response and (response["error"] is not None or not DEFECTS.has("forgives null errors")):
            raise CallFailed((response["error"] or {}).get("message", "unknown extension error"))
        return response.get("result")

    def request_shutdown(self) -> None:
        try:
            self.call("shutdown", None, SHUTDOWN_TIMEOUT)
        except CallFailed:
            pass

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "memory.append":
                self.check_namespace(params)
                record = {"namespace": "conform", "content": params["content"], "timestamp_ms": 1, "tags": []}
                self.records.append(record)
                return {"ok": True, "timestamp_ms": 1}
            case "memory.query":
                self.check_namespace(params)
                wanted = params.get("content_contains", "").lower()
                return {"records": [one for one in self.records if wanted in one["content"].lower()]}
            case "config.get":
                return {"value": self.config.get(params["key"])}
            case "config.set":
                self.config[params["key"]] = params["value"]
                return {"ok": True}
            case _:
                unknown(method)

    def check_namespace(self, params: Message) -> None:
        if params["namespace"] != "conform":
            raise Rejected(-32602, "namespace must equal extension id")


SynapsHost().main()
