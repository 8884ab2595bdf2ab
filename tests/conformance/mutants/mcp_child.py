"""An MCP server that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import DEFECTS, Call, Rejected, SmallServer, list_tools, unknown  # type: ignore[import-not-found]

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}


class McpServer(SmallServer):
    version = ""
    level = "debug"

    def serve(self, method: str, params: Any, call: Call) -> Any:
        if not isinstance(params, dict | None):
            raise Rejected(-32602, "params must be an object")
        params = params or {}
        match method:
            case "ping":
                return {}
            case "initialize":
                return self.initialize(params)
        if not self.version:
            raise Rejected(-32600, "not initialized")
        match method:
            case "tools/list":
                if "cursor" in params:
                    raise Rejected(-32602, "unknown cursor")
                return {"tools": list_tools("inputSchema")}
            case "tools/call":
                return self.call_tool(params, call)
            case "prompts/list":
                return {"prompts": [{"name": "conform_count", "arguments": [{"name": "args"}]}]}
            case "prompts/get":
                if params.get("name") != "conform_count":
                    raise Rejected(-32602, "unknown prompt")
                return {"messages": [{"role": "user", "content": {"type": "text", "text": "1 2"}}]}
            case "resources/list":
                return {"resources": [{"uri": "conform://a", "name": "a"}]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": "conform://{name}", "name": "all"}]}
            case "resources/read":
                raise Rejected(-32002, "unknown resource")
            case "logging/setLevel":
                if params.get("level") not in LEVELS:
                    raise Rejected(-32602, "unknown level")
                self.level = params["level"]
                return {}
            case _:
                unknown(method)

    def initialize(self, params: Any) -> Any:
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise Rejected(-32602, "no version")
        self.version = version if version in VERSIONS else VERSIONS[-1]
        info = {"name": "conform", "version": "1.0.0"}
        return {"protocolVersion": self.version, "capabilities": CAPABILITIES, "serverInfo": info}

    def call_tool(self, params: Any, call: Call) -> Any:
        if not isinstance(params.get("name"), str) or not isinstance(params.get("arguments", {}), dict):
            raise Rejected(-32602, "name and arguments are required")
        try:
            value = self.run_tool(params["name"], params.get("arguments", {}), call)
        except Rejected as error:
            if str(error).startswith("unknown tool"):
                raise
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        text = value if isinstance(value, str) else repr(value)
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": value}}

    def on_batch(self, batch: list[Any]) -> None:
        if self.version == "2025-03-26" and not DEFECTS.has("exits on a batch"):
            self.write([{"jsonrpc": "2.0", "id": one["id"], "result": {}} for one in batch])
        else:
            super().on_batch(batch)

    def on_notification(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and not DEFECTS.has("ignores cancellation"):
            id = (params or {}).get("requestId")
            if DEFECTS.has("exits on a malformed cancellation") and not isinstance(id, str | int):
                raise SystemExit(3)
            for call in self.find_calls(id):
                call.cancelled.set()

    def find_calls(self, id: Any) -> list[Call]:
        if DEFECTS.has("cancels all calls"):
            return list(self.calls.values())
        if DEFECTS.has("compares ids as text"):
            return [call for call in self.calls.values() if str(call.id) == str(id)]
        return [self.calls[type(id), id]] if isinstance(id, str | int) and (type(id), id) in self.calls else []

    def log(self, message: str) -> None:
        if LEVELS.index("warning") >= LEVELS.index(self.level) or DEFECTS.has("ignores the level"):
            self.write({"method": "notifications/message", "params": {"level": "warning", "data": message}})

    def progress(self, call: Call, number: int) -> None:
        token = call.params.get("_meta", {}).get("progressToken")
        if token is not None or DEFECTS.has("always has progress"):
            params = {"progressToken": token, "progress": number}
            self.write({"method": "notifications/progress", "params": params})


McpServer().run()
