"""A nexo extension that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import DEFECTS, Call, Rejected, SmallServer, list_tools, unknown  # type: ignore[import-not-found]


class NexoExtension(SmallServer):
    null_id_errors = False

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "initialize":
                return {"server_version": "1", "tools": list_tools("input_schema"), "hooks": ["before_tool_call"]}
            case "tools/list":
                return {"tools": list_tools("input_schema")}
            case "tools/call":
                if DEFECTS.has("refuses _meta") and "_meta" in params["arguments"]:
                    raise Rejected(-32602, "unknown argument")
                return self.run_tool(params["name"], params["arguments"], call)
            case "hooks/before_tool_call":
                match params["arguments"]["decision"]:
                    case "block":
                        return {"abort": True, "reason": "blocked by the case"}
                    case "modify":
                        return {"override": {"arguments": {}}}
                    case _:
                        return None
            case "shutdown":
                return {}
            case _:
                unknown(method)


NexoExtension().run()
