"""A client of MCP that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

import os
import time
from typing import Any

from small_server import unknown  # type: ignore[import-not-found]

from small_host import DEFECTS, Call, CallFailed, Message, SmallHost  # type: ignore[import-not-found]

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class McpHost(SmallHost):
    next_call = ("tools/list", {})

    def shake_hands(self) -> None:
        params = {
            "protocolVersion": VERSIONS[-1],
            "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": "mutant", "version": "1"},
        }
        result = self.call("initialize", params)
        version = result.get("protocolVersion")
        if version is None and not DEFECTS.has("needs no version"):
            raise CallFailed("no version")
        if version not in (None, *VERSIONS) and not DEFECTS.has("accepts every version"):
            raise CallFailed("another version")
        if DEFECTS.has("hangs on an old version") and version == VERSIONS[0]:
            time.sleep(60)
        self.write({"method": "notifications/initialized"})
        if "tools" in result["capabilities"] or DEFECTS.has("lists what is not offered"):
            self.list_tools()

    def list_tools(self) -> None:
        params: Message = {}
        while True:
            page = self.call("tools/list", params)
            if "nextCursor" not in page or DEFECTS.has("lists one page"):
                return
            params = {"cursor": page["nextCursor"]}

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        result = self.call("tools/call", {"name": name, "arguments": input}, timeout)
        text = "".join(block.get("text", "") for block in result["content"])
        if DEFECTS.has("knows all content") and any("text" not in block for block in result["content"]):
            os._exit(9)
        if result.get("isError"):
            raise CallFailed(text)
        return result.get("structuredContent") or text

    def on_timeout(self, id: int, method: str) -> None:
        self.write({"method": "notifications/cancelled", "params": {"requestId": id}})

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "ping":
                return {}
            case "roots/list":
                return {"roots": [{"uri": "file:///project"}]}
            case "sampling/createMessage":
                return {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "small"}
            case "elicitation/create":
                return {"action": "decline"}
            case _:
                unknown(method)

    def request_shutdown(self) -> None:
        if DEFECTS.has("sends shutdown"):
            self.write({"id": 99, "method": "shutdown"})


McpHost().main()
