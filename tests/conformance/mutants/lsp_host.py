"""A language client that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import unknown  # type: ignore[import-not-found]

from small_host import DEFECTS, SHUTDOWN_TIMEOUT, Call, CallFailed, Message, SmallHost  # type: ignore[import-not-found]

CAPABILITIES = {"workspace": {"configuration": True}, "window": {"workDoneProgress": True}}


class LspHost(SmallHost):
    is_lines = False
    next_call = ("workspace/executeCommand", {"command": "conform_next"})

    def shake_hands(self) -> None:
        params = {"processId": None, "rootUri": None, "capabilities": CAPABILITIES}
        self.call("initialize", params)
        if not DEFECTS.has("never initialized"):
            self.write({"method": "initialized", "params": {}})

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        return self.call("workspace/executeCommand", {"command": name, "arguments": [input]}, timeout)

    def on_timeout(self, id: int, method: str) -> None:
        self.write({"method": "$/cancelRequest", "params": {"id": id}})

    def read_result(self, response: Message) -> Any:
        if DEFECTS.has("takes null for an error") and self._last_id > 2 and response.get("result") is None:
            raise CallFailed("null")
        return super().read_result(response)

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "workspace/configuration":
                return [None for _ in params["items"]]
            case "client/registerCapability" | "window/workDoneProgress/create":
                return None
            case _:
                unknown(method)

    def request_shutdown(self) -> None:
        if DEFECTS.has("exits without waiting"):
            self.write({"id": 99, "method": "shutdown"})
            self.write({"method": "exit"})
            return
        try:
            self.call("shutdown", None, SHUTDOWN_TIMEOUT)
            self.write({"method": "exit"})
        except CallFailed:
            pass


LspHost().main()
