"""A host as nexo is one, in plain Python and very small: `python3 mini_host.py COMMAND...` drives any extension.

It sends what that host sends, byte for byte, responds to requests with ids that begin with `app:`, passes
over what it cannot read, and prints one line for each response.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from typing import IO, Any

Message = dict[str, Any]

ENDINGS = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD", "_PASSWD", "_PWD", "_CREDENTIAL", "_CREDENTIALS", "_PAT", "_AUTH")
EXTENSION = "served"
GRANTED = {"agents_crud"}
CAPABILITIES = {"nexo/admin/agents/list": "agents_crud", "nexo/admin/reload": "reload"}


class Host:
    """One process; many calls may be open at once."""

    def __init__(self, command: list[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.upper().endswith(ENDINGS)}
        environment |= {"AGENT_VERSION": "0.1.0", "AGENT_EXTENSION_ID": EXTENSION}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._ids = count(0)
        self._responses: dict[int, Message] = {}

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def write(self, line: bytes) -> None:
        """Sends a line, whatever it is."""
        self._input.write(line + b"\n")
        self._input.flush()

    def _send(self, message: Message) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False).encode())

    def send_request(self, method: str, params: Any) -> int:
        """Sends a request and returns its id."""
        id = next(self._ids)
        self._send({"method": method, "params": params, "id": id})
        return id

    def wait_for_response(self, id: int) -> Any:
        """Returns the result, and serves what comes before it."""
        while id not in self._responses:
            line = self._output.readline()
            if not line:
                raise SystemExit("child exited")
            self._handle(line)
        response = self._responses.pop(id)
        if response.get("result") is None and response.get("error") is not None:
            return {"failed": [response["error"]["code"], response["error"]["message"]]}
        return response.get("result")

    def _handle(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            id = message.get("id")
        except (ValueError, AttributeError):
            return show("passed over", line.decode(errors="replace").strip())
        if isinstance(id, str) and id.startswith("app:"):
            self._send({"id": id, **serve(message["method"])})
        elif isinstance(id, int) and id >= 0:
            self._responses[id] = message
        return None

    def call(self, method: str, params: Any) -> None:
        """Sends a request, and prints the response."""
        show(method, self.wait_for_response(self.send_request(method, params)))

    def shut_down(self) -> None:
        """Sends `shutdown` as that host does, under the id of the first request, and waits."""
        self._send({"method": "shutdown", "params": {"reason": "client shutdown"}, "id": 0})
        show("shutdown", self.wait_for_response(0))
        show("exit", self._process.wait(timeout=5))
        self._output.close()
        self._input.close()


def serve(method: str) -> Message:
    """Responds to a request of an extension."""
    capability = CAPABILITIES.get(method)
    if capability is None:
        return {"error": {"code": -32601, "message": f"unknown method {method}"}}
    if capability not in GRANTED:
        data = {"capability": capability, "microapp_id": EXTENSION, "method": method}
        return {"error": {"code": -32004, "message": "capability_not_granted", "data": data}}
    return {"result": {"agents": [{"id": "ana", "active": True}]}}


def show(what: str, value: Any) -> None:
    print(json.dumps([what, value]), flush=True)


def tick(city: str | None, cursor: str | None = None) -> Message:
    config = {} if city is None else {"city": city}
    now = "2026-05-04T10:00:00+00:00"
    return {"kind": "rain", "job_id": "j", "agent_id": "ana", "cursor": cursor, "config": config, "now": now}


def main() -> None:
    host = Host(sys.argv[1:])
    host.call("initialize", {"agent_version": "0.1.0", "extension_id": EXTENSION})
    host.call("tools/list", {})
    slow = host.send_request("tools/call", {"name": "slow", "arguments": {}})
    host.call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    host.call("tools/call", {"name": "hurry", "arguments": {}})
    show("slow", host.wait_for_response(slow))
    host.call("tools/call", {"name": "add", "arguments": {"a": 1}})
    meta = {"agent_id": "ana", "session_id": "s-1"}
    host.call("tools/call", {"name": "whoami", "arguments": {"_meta": meta}})
    host.call("tools/call", {"name": "agents", "arguments": {}})
    host.call("tools/call", {"name": "reload", "arguments": {}})
    event: Message = {"agent_id": "ana", "session_id": None}
    host.call("hooks/before_tool_call", {**event, "tool_name": "bash", "arguments": {"command": "rm -rf /"}})
    host.call("hooks/before_tool_call", {**event, "tool_name": "bash", "arguments": {"command": "ls"}})
    host.call("hooks/before_message", {**event, "text": "hello", "source": "telegram"})
    host.call("hooks/after_message", {**event, "text_in": "hello", "text_out": "hi"})
    host.call("poll_tick", tick("Bogotá"))
    host.call("poll_tick", tick("Bogotá", "MQ"))
    host.call("poll_tick", tick(None))
    host.call("poll_tick", tick("Atlantis"))
    host.call("poll_list_tools", {"kind": "rain"})
    host.call("poll_tool_call", {"kind": "rain", "tool_name": "rain_status", "args": {"id": "j"}})
    host.write(b"this is no message")
    host.write(b'{"jsonrpc":"2.0","method":"agents/updated","params":{}}')
    host.call("no/such/method", {})
    host.shut_down()


main()
