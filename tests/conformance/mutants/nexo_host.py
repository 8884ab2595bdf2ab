"""A host of nexo that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_host import DEFECTS, SHUTDOWN_TIMEOUT, CallFailed, Message, SmallHost  # type: ignore[import-not-found]

HOOKS = ("before_message", "after_message", "before_tool_call", "after_tool_call")


class NexoHost(SmallHost):
    first_id = 0
    next_call = ("tools/list", {})

    def shake_hands(self) -> None:
        result = self.call("initialize", {"agent_version": "0.1.0", "extension_id": "conform"})
        tools = result.get("tools", [])
        if not isinstance(tools, list) and not DEFECTS.has("accepts every result"):
            raise CallFailed("undecodable handshake payload")
        if DEFECTS.has("needs known hooks") and any(hook not in HOOKS for hook in result.get("hooks", [])):
            raise CallFailed("unknown hook")
        if DEFECTS.has("needs descriptions") and any("description" not in tool for tool in tools):
            raise CallFailed("a tool without a description")

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        return self.call("tools/call", {"name": name, "arguments": input}, timeout)

    def read_result(self, response: Message) -> Any:
        if DEFECTS.has("takes null for an error") and "error" in response:
            raise CallFailed("null")
        return super().read_result(response)

    def carry_out(self, order: Message) -> Message:
        if order["do"] != "hook":
            return super().carry_out(order)
        event = {"agent_id": "a", "session_id": None, "tool_name": order["tool"], "arguments": order["input"]}
        try:
            result = self.call("hooks/before_tool_call", event, 5.0) or {}
        except CallFailed:
            return {"result": {"action": "block" if DEFECTS.has("fails closed") else "continue"}}
        return {"result": {"action": "block" if result.get("abort") else "continue"}}

    def request_shutdown(self) -> None:
        try:
            self.call("shutdown", {"reason": "client shutdown"}, SHUTDOWN_TIMEOUT, id=0)
        except CallFailed:
            pass


NexoHost().main()
