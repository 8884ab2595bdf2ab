"""A host of Roder that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_host import DEFECTS, SHUTDOWN_TIMEOUT, CallFailed, Message, SmallHost  # type: ignore[import-not-found]

EXPECTED = {"protocolVersion": "0.2.0", "extensionId": "conform", "manifestChecksum": "676c10d6a626edb3"}
SCHEMA = {"type": "object"}
SERVICES = [
    {
        "type": "tool_provider",
        "id": "conform-tools",
        "tools": [
            {"name": "conform_next", "description": "Returns the next order.", "parameters": SCHEMA},
            {"name": "conform_echo", "description": "Returns its input.", "parameters": SCHEMA},
        ],
    }
]


class RoderHost(SmallHost):
    next_call = ("tools/call", {})

    def shake_hands(self) -> None:
        params = {
            "protocolVersion": "0.2.0",
            "apiVersion": "0.1.0",
            "extensionId": "conform",
            "cwd": ".",
            "grantedCapabilities": [],
            "config": {},
            "eventFilter": {"kinds": []},
        }
        result = self.call("extension/initialize", params)
        for name, value in {**EXPECTED, "services": SERVICES}.items():
            if result.get(name) != value and not DEFECTS.has(f"accepts every {name}"):
                raise CallFailed(f"{name} is not that of the manifest")

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        params = {
            "providerId": "conform-tools",
            "toolName": name,
            "callId": "c1",
            "threadId": "t1",
            "turnId": "u1",
            "arguments": input,
        }
        result = self.call("tools/call", params, timeout)
        if "isError" not in result and not DEFECTS.has("forgives no isError"):
            raise CallFailed("a malformed result")
        if result.get("isError"):
            raise CallFailed(result["content"])
        return result.get("data") or result["content"]

    def read_result(self, response: Message) -> Any:
        if "error" in response and (response["error"] is not None or not DEFECTS.has("forgives null errors")):
            raise CallFailed((response["error"] or {}).get("message", "unknown process extension error"))
        return response.get("result")

    def request_shutdown(self) -> None:
        try:
            self.call("extension/shutdown", {}, SHUTDOWN_TIMEOUT)
        except CallFailed:
            pass


RoderHost().main()
