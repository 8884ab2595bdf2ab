"""A SynapsCLI extension that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import Call, Rejected, SmallServer, list_tools, unknown  # type: ignore[import-not-found]

PROVIDER = {
    "id": "conform",
    "display_name": "Conform",
    "description": "Repeats words.",
    "models": [{"id": "words", "capabilities": {"streaming": True}}],
}


class SynapsExtension(SmallServer):
    is_lines = False

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "initialize":
                if params["extension_protocol_version"] != 1:
                    raise Rejected(-32602, "another version")
                capabilities = {"tools": list_tools("input_schema"), "providers": [PROVIDER]}
                return {"protocol_version": 1, "capabilities": capabilities}
            case "tool.call":
                return self.run_tool(params["name"], params["input"], call)
            case "hook.handle":
                return decide(params["tool_input"].get("decision"))
            case "command.invoke":
                for number in range(int(params["args"][0])):
                    event = {"kind": "text", "content": str(number)}
                    self.write({"method": "command.output", "params": {"request_id": params["request_id"], **event}})
                return {}
            case "provider.stream" | "provider.complete":
                text = params["messages"][-1]["content"]
                if method == "provider.stream":
                    event = {"type": "text", "delta": text}
                    self.write({"method": "provider.stream.event", "params": {"event": event}})
                return {"content": [{"type": "text", "text": text}]}
            case "info.get":
                return {"build": {"backend": "cpu"}}
            case "shutdown":
                return None
            case _:
                unknown(method)


def decide(decision: str | None) -> Any:
    match decision:
        case "block":
            return {"action": "block", "reason": "blocked by the case"}
        case "modify":
            return {"action": "modify", "input": {}}
        case _:
            return {"action": "continue"}


SynapsExtension().run()
