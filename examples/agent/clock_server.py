"""An MCP server as its authors write them: standard library only, nothing of becket. It knows the time in some cities.

Any other server could be used instead: `"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

OFFSETS = {"london": 0, "berlin": 1, "delhi": 5.5, "tokyo": 9}
VERSIONS = ["2025-06-18", "2025-03-26", "2024-11-05"]
NOON = 12  # a fixed time, so that the example always prints the same
TOOL = {
    "name": "time_in",
    "description": "Returns the time in a city when it is noon in London.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


class Rejected(Exception):
    """The request gets this error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle_request(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            version = params["protocolVersion"]
            return {
                "protocolVersion": version if version in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "clock", "version": "1.0.0"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            if params["name"] != TOOL["name"]:
                raise Rejected(-32602, f"there is no tool {params['name']}")
            return tell_time(params["arguments"]["city"])
        case "ping":
            return {}
        case _:
            raise Rejected(-32601, "unknown method")


def tell_time(city: str) -> dict[str, Any]:
    offset = OFFSETS.get(city.casefold())
    if offset is None:
        return {"content": [{"type": "text", "text": f"I have no clock in {city}."}], "isError": True}
    hours, minutes = divmod(round((NOON + offset) * 60), 60)
    return {"content": [{"type": "text", "text": f"It is {hours:02}:{minutes:02} in {city}."}]}


def respond(message: dict[str, Any] | list[Any] | str | float | None) -> dict[str, Any] | None:
    """Returns the response to a message; notifications and responses have none."""
    if not isinstance(message, dict) or isinstance(message.get("id"), bool | list | dict):
        return {"id": None, "error": {"code": -32600, "message": "not a request"}}
    if "id" not in message or "method" not in message:
        return None
    try:
        return {"id": message["id"], "result": handle_request(message["method"], message.get("params", {}))}
    except Rejected as error:
        return {"id": message["id"], "error": {"code": error.code, "message": str(error)}}
    except (KeyError, TypeError) as problem:
        return {"id": message["id"], "error": {"code": -32602, "message": f"invalid params: {problem}"}}


for line in sys.stdin:
    if not line.strip():
        continue
    try:
        response = respond(json.loads(line))
    except (ValueError, RecursionError):
        response = {"id": None, "error": {"code": -32700, "message": "not JSON"}}
    if response is not None:
        print(json.dumps({"jsonrpc": "2.0", **response}), flush=True)
