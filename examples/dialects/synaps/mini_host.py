"""A host as SynapsCLI is one, in plain Python and very small: `python3 mini_host.py COMMAND...` drives any extension.

It sends what that host sends, in its order and byte for byte, serves memory and configuration, and prints one line for
each response and each event.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count as numbers_from
from pathlib import Path
from typing import IO, Any

Message = dict[str, Any]

PASSED = ("PATH", "HOME", "LANG", "TERM", "XDG_RUNTIME_DIR")
MAX_LINE = 1024
LARGEST_BODY = 4 * 1024 * 1024
EXTENSION = "served"


class Refused(Exception):
    """A request of the extension gets an error with this number and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Services:
    """The memory and the configuration of one extension, and what it may do with them."""

    def __init__(self, permissions: set[str]) -> None:
        self._permissions = permissions
        self._records: list[Message] = []
        self._config: dict[str, str] = {}

    def serve(self, method: str, params: Any) -> Message:
        match method:
            case "memory.append":
                self._require("memory.write")
                self._check_namespace(params)
                return self._append(text_of(params, "content"), params.get("tags") or [])
            case "memory.query":
                self._require("memory.read")
                self._check_namespace(params)
                wanted = str(params.get("content_contains") or "").lower()
                found = [record for record in reversed(self._records) if wanted in record["content"].lower()]
                return {"records": found[: params.get("limit") or 50]}
            case "config.get":
                return {"value": self._config.get(text_of(params, "key"))}
            case "config.set":
                self._require("config.write")
                self._config[text_of(params, "key")] = text_of(params, "value")
                return {"ok": True}
            case "config.subscribe":
                self._require("config.subscribe")
                return {"ok": True}
            case _:
                raise Refused(-32601, f"method not found: {method}")

    def _append(self, content: str, tags: list[str]) -> Message:
        now = len(self._records) + 1
        self._records.append({"namespace": EXTENSION, "timestamp_ms": now, "content": content, "tags": tags})
        return {"ok": True, "timestamp_ms": now}

    def _require(self, permission: str) -> None:
        if permission not in self._permissions:
            raise Refused(-32602, f"permission denied: {permission} required")

    def _check_namespace(self, params: Any) -> None:
        namespace = text_of(params, "namespace")
        if namespace != EXTENSION:
            raise Refused(-32602, f"namespace must equal extension id '{EXTENSION}' (got '{namespace}')")


def text_of(params: Any, name: str) -> str:
    given: Message = params or {}
    value: object = given.get(name)
    if not isinstance(value, str):
        raise Refused(-32602, f"missing or invalid '{name}' parameter")
    return value


class Host:
    """One process, called once at a time."""

    def __init__(self, command: list[str], services: Services) -> None:
        environment = {name: os.environ[name] for name in PASSED if name in os.environ}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._services = services
        self._ids = numbers_from(1)

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _send(self, message: Message) -> None:
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._input.flush()

    def _receive(self) -> Message:
        length = None
        while line := self._output.readline(MAX_LINE + 1).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if length is None or length > LARGEST_BODY:
            raise SystemExit("transport closed")
        message: Message = json.loads(self._output.read(length))
        return message

    def call(self, method: str, params: Any) -> Any:
        """Returns the result, after everything that came before it was served and printed."""
        id = next(self._ids)
        self._send({"jsonrpc": "2.0", "method": method, "params": params, "id": id})
        while True:
            message = self._receive()
            if "method" in message:
                self._take(message)
            elif message.get("id") == id:
                if "error" in message:
                    return show(method, {"failed": message["error"]["message"]})
                return show(method, message.get("result"))

    def _take(self, message: Message) -> None:
        if message.get("id") is None:
            show(message["method"], message["params"])
            return
        response: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            response["result"] = self._services.serve(message["method"], message.get("params"))
        except Refused as error:
            response["error"] = {"code": error.code, "message": str(error)}
        self._send(response)

    def shut_down(self) -> None:
        """Sends `shutdown`, and waits for the end with or without a response."""
        self._send({"jsonrpc": "2.0", "method": "shutdown", "params": None, "id": next(self._ids)})
        show("exit", self._process.wait(timeout=5))
        self._output.close()
        self._input.close()


def show(what: str, value: Any) -> Any:
    print(json.dumps([what, value]), flush=True)
    return value


def ask_model(host: Host, method: str) -> None:
    request = {
        "provider_id": "local",
        "model_id": "small",
        "model": f"{EXTENSION}:local:small",
        "messages": [{"role": "user", "content": "hi"}],
        "system_prompt": None,
        "tools": [],
        "temperature": None,
        "max_tokens": None,
        "thinking_budget": 0,
    }
    host.call(method, request)


def main() -> None:
    host = Host(sys.argv[1:], Services({"memory.read", "memory.write", "config.subscribe"}))
    host.call(
        "initialize",
        {
            "synaps_version": "0.1.0",
            "extension_protocol_version": 1,
            "plugin_id": EXTENSION,
            "plugin_root": str(Path.cwd()),
            "config": {"endpoint": "http://127.0.0.1:1"},
        },
    )
    host.call("info.get", None)
    host.call("tool.call", {"name": "note", "input": {"text": "milk"}})
    host.call("tool.call", {"name": "note", "input": {}})
    ask_model(host, "provider.complete")
    ask_model(host, "provider.stream")
    host.call("command.invoke", {"command": "tidy", "args": ["all"], "request_id": "r1"})
    host.call(
        "hook.handle",
        {
            "kind": "before_tool_call",
            "tool_name": "bash",
            "tool_runtime_name": "bash",
            "tool_input": {"command": "rm -rf /"},
            "tool_output": None,
            "message": None,
            "session_id": None,
            "transcript": None,
            "data": None,
        },
    )
    host.call("sidecar.spawn_args", None)
    host.call("settings.editor.open", {"category": "c", "field": "f"})
    host.call("no.such.method", {})
    host.shut_down()


main()
