"""An extension for nexo in plain Python, as its authors write them: tools, hooks, a poller, and a call to its host.

It uses JSON-RPC 2.0, one message a line, and nothing of becket.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

Message = dict[str, Any]

TOOLS = [
    {
        "name": "forecast",
        "description": "Tells the weather of a city.",
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    {"name": "whoami", "description": "Tells whose session this is, and what this program knows of itself."},
    {"name": "agents", "description": "Tells which agents its host has.", "input_schema": {"type": "object"}},
]


class Wrong(Exception):
    """The response is an error with this number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def send(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask_host(method: str, params: Message) -> Any:
    """Calls the host. Messages that come in the meantime wait for their turn."""
    id = f"app:{os.getpid()}-{method}"
    send({"id": id, "method": method, "params": params})
    while line := sys.stdin.readline():
        message = json.loads(line)
        if message.get("id") != id:
            WAITING.append(message)
            continue
        if message.get("error"):
            raise Wrong(message["error"]["code"], f"my host says: {message['error']['message']}")
        return message.get("result")
    raise SystemExit(0)


WAITING: list[Message] = []


# -- what it does


def call_tool(name: str, arguments: Any) -> Any:
    if name == "forecast":
        city = arguments.get("city")
        if not isinstance(city, str):
            raise Wrong(-32602, "missing required field 'city'")
        if city == "Atlantis":
            os._exit(3)  # under water
        return {"city": city, "sky": "grey", "temperature": 17}
    if name == "whoami":
        return {
            "session": arguments.get("_meta"),
            "id": os.environ.get("AGENT_EXTENSION_ID"),
            "version": os.environ.get("AGENT_VERSION"),
            "has_state": os.path.isdir(os.environ.get("NEXO_EXTENSION_STATE_ROOT", "")),
            "folder": os.path.basename(os.getcwd()),
            "secrets": sorted(name for name in os.environ if name.startswith("WEATHER_")),
        }
    if name == "agents":
        return ask_host("nexo/admin/agents/list", {"active_only": True})
    raise Wrong(-32601, f"unknown tool: {name}")


def handle_hook(name: str, event: Message) -> Message | None:
    if name == "before_message" and "storm" in event["text"]:
        return {"abort": False, "override": {"text": "A storm is coming."}}
    if name == "before_tool_call":
        command = event["arguments"].get("command", "")
        if "umbrella" in command:
            return {"abort": True, "reason": "never open one indoors"}
        if "sun" in command:
            return {"abort": False, "override": {"arguments": {"command": command.replace("sun", "rain")}}}
    if name == "after_tool_call":
        return {"abort": True, "reason": "too late"}
    return None


def tick(params: Message) -> Message:
    config: Message = params.get("config") or {}
    city = config.get("city")
    if city is None:
        raise Wrong(-32602, "no city to watch")
    if city == "Atlantis":
        raise Wrong(-32002, "it has sunk")
    if city == "Avalon":
        raise Wrong(-32001, "too much mist")
    cursor = params.get("cursor")
    seen = int(base64.urlsafe_b64decode(cursor + "==")) if cursor else 0
    seen += 1
    return {
        "items_seen": seen,
        "items_dispatched": 1,
        "deliver": [{"channel": "telegram", "recipient": "42", "payload": {"text": f"rain in {city}, #{seen}"}}],
        "next_cursor": base64.urlsafe_b64encode(str(seen).encode()).rstrip(b"=").decode(),
        "next_interval_secs": None,
    }


POLLER_TOOLS = [{"name": "rain_status", "description": "Tells how it goes.", "parameters": {"type": "object"}}]


# -- the loop


def handle_request(method: str, params: Message) -> Any:
    if method == "initialize":
        hooks = ["before_message", "before_tool_call", "after_tool_call", "on_sunrise"]
        return {"server_version": "weather-0.1.0", "tools": TOOLS, "hooks": hooks}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call_tool(params.get("name", ""), params.get("arguments") or {})
    if method.startswith("hooks/"):
        return handle_hook(method.removeprefix("hooks/"), params)
    if method == "poll_tick":
        return tick(params)
    if method == "poll_list_tools":
        return POLLER_TOOLS if params.get("kind") == "rain" else []
    if method == "poll_tool_call":
        return {"kind": params["kind"], "tool": params["tool_name"], "args": params["args"]}
    raise Wrong(-32601, f"method not found: {method}")


def parse(line: str) -> Message:
    try:
        message: Message = json.loads(line)
    except ValueError:
        return {}  # lines that are not messages are skipped
    return message


def main() -> None:
    print("weather is up", flush=True)  # a slip that hosts have to live with
    while True:
        line = "" if WAITING else sys.stdin.readline()
        if not WAITING and not line:
            return
        message = WAITING.pop(0) if WAITING else parse(line)
        id, method = message.get("id"), message.get("method", "")
        if id is None or not method:
            continue  # a notification, or a response that nothing waits for
        params: Message = message.get("params") or {}
        if method == "shutdown":
            print(f"weather ends: {params.get('reason')}", file=sys.stderr, flush=True)
            send({"id": id, "result": {"ok": True}})
            return
        try:
            send({"id": id, "result": handle_request(method, params), "error": None})
        except Wrong as error:
            send({"id": id, "error": {"code": error.code, "message": str(error)}})


main()
