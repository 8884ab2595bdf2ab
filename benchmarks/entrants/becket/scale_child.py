"""One of many extensions, or one with many tools: a native one with pings, or an MCP server whose list of tools
changes without end.

Of the standard library alone, so that two hundred of them start fast.
"""

import json
import os
import sys

KIND, COUNT = sys.argv[1], int(sys.argv[2])
SCHEMA = {"type": "object"}
MODEL = {"id": "greedy", "capabilities": {"tool_use": True}}
PROVIDER = {"id": "local", "display_name": "Local", "description": "d", "models": [MODEL]}


def read_frame(source):
    if KIND == "mcp":
        line = source.readline()
        return json.loads(line) if line else None
    length = 0
    while line := source.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(source.read(length)) if length else None


def write_frame(message):
    body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
    data = body + b"\n" if KIND == "mcp" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    while data:
        data = data[os.write(1, data) :]


def answer_native(message):
    tools = [{"name": f"tool{n}", "description": "d", "input_schema": SCHEMA} for n in range(COUNT)]
    match message["method"]:
        case "initialize":
            offered = {"tools": tools, "providers": [PROVIDER]}
            return {"protocol_version": 1, "capabilities": offered, "features": ["ping"]}
        case "provider.complete" if len(message["params"]["messages"]) == 1:
            return {"content": [{"type": "tool_use", "id": f"t{n}", "name": "one0_tool0"} for n in range(6_000)]}
        case "provider.complete":
            return {"content": [{"type": "text", "text": "enough"}]}
        case "tool.call":
            return "x" * 90_000
        case "shutdown":
            write_frame({"id": message["id"], "result": None})
            sys.exit()
    return {}


def answer_mcp(message):
    tools = [{"name": f"tool{n}", "inputSchema": SCHEMA} for n in range(COUNT)]
    match message["method"]:
        case "initialize":
            server = {"name": "many", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "serverInfo": server, "capabilities": capabilities}
        case "tools/list":
            return {"tools": tools}
    return {}


def main():
    source = sys.stdin.buffer
    while (message := read_frame(source)) is not None:
        if "id" in message:
            write_frame({"id": message["id"], "result": (answer_mcp if KIND == "mcp" else answer_native)(message)})
            if KIND == "mcp" and message["method"] == "tools/list":
                write_frame({"method": "notifications/tools/list_changed"})


try:
    main()
except BrokenPipeError:
    pass
