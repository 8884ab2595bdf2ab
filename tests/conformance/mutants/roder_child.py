"""A Roder process extension that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import Call, Rejected, SmallServer, list_tools, unknown  # type: ignore[import-not-found]

SERVICES = [{"type": "tool_provider", "id": "conform", "tools": list_tools("parameters")}]


class RoderExtension(SmallServer):
    null_id_errors = False

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "extension/initialize":
                if params["protocolVersion"] != "0.2.0" or params["extensionId"] != "conform":
                    raise Rejected(-32602, "another version, or another extension")
                opening = {"protocolVersion": "0.2.0", "extensionId": "conform", "services": SERVICES}
                return {**opening, "manifestChecksum": "0123456789abcdef"}
            case "tools/call":
                return self.call_tool(params, call)
            case "extension/shutdown":
                return {}
            case _:
                unknown(method)

    def call_tool(self, params: Any, call: Call) -> Any:
        if params["providerId"] != "conform":
            raise Rejected(-32602, "unknown provider")
        try:
            return {"content": str(self.run_tool(params["toolName"], params["arguments"], call)), "isError": False}
        except Rejected as error:
            if str(error).startswith("unknown tool"):
                raise
            return {"content": str(error), "isError": True}


RoderExtension().run()
