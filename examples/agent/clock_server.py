"""An MCP server as its authors write them: standard library only, nothing of becket. It knows the time in some cities.

Any other server could be used instead: `"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

OFFSETS = {"london": 0, "berlin": 1, "delhi": 5.5, "tokyo": 9}
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


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "clock", "version": "1.0.0"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return tell_time(params["arguments"]["city"])
        case "ping":
            return {}
        case _:
            return None


def tell_time(city: str) -> dict[str, Any]:
    offset = OFFSETS.get(city.casefold())
    if offset is None:
        return {"content": [{"type": "text", "text": f"I have no clock in {city}."}], "isError": True}
    hours, minutes = divmod(round((NOON + offset) * 60), 60)
    return {"content": [{"type": "text", "text": f"It is {hours:02}:{minutes:02} in {city}."}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
