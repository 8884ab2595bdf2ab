"""A host as Roder is one, in plain Python and small: `python3 mini_host.py MANIFEST COMMAND...` drives an extension.

It checks the first response as that host does, uses every service that the manifest lists, and prints one line for each
response and each event.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from itertools import count
from pathlib import Path
from typing import IO, Any

Message = dict[str, Any]

PROTOCOL = "0.2.0"
MAX_LINE = 4 * 1024 * 1024


class Refused(Exception):
    """The extension is not what its manifest says."""


def fnv1a(data: bytes) -> str:
    number = 0xCBF29CE484222325
    for byte in data:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"


class Host:
    """One extension: requests go to its stdin, responses and notifications come from its stdout."""

    def __init__(self, manifest: Path, command: list[str]) -> None:
        self.data = manifest.read_bytes()
        self.manifest: Message = tomllib.loads(self.data.decode())
        variables = {"PATH": os.environ["PATH"], "RODER_EXTENSION_MANIFEST": str(manifest)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, cwd=manifest.parent
        )
        self.ids = count(1)

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def write(self, message: Message) -> None:
        self.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.stdin.flush()

    def read(self) -> Message:
        while True:
            line = self.stdout.readline(MAX_LINE)
            if not line:
                raise Refused("process extension exited")
            if line.strip():
                message: Message = json.loads(line)
                return message

    def request(self, method: str, params: Message) -> Any:
        """Returns the result of a request; notifications meanwhile are printed."""
        id = next(self.ids)
        self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == id:
                if "error" in message:
                    return {"error": message["error"]["message"]}
                return message["result"]
            show(message["method"], message["params"])

    def follow(self, method: str, params: Message, key: str, name: str) -> None:
        """Calls what takes long: its acknowledgement, then its events up to the last one."""
        acknowledged = self.request(method, params)
        if acknowledged != {key: params[key]}:
            raise Refused(f"acknowledged {acknowledged}")
        while True:
            message = self.read()
            event = message["params"]["event"]
            show(message["method"], event)
            if message["method"] == name and is_last(event):
                return

    # -- what a host of Roder does

    def initialize(self) -> None:
        params = {
            "protocolVersion": PROTOCOL,
            "apiVersion": "0.1.0",
            "extensionId": self.manifest["id"],
            "cwd": ".",
            "grantedCapabilities": self.manifest.get("required_capabilities", []),
            "config": {},
            "eventFilter": {"kinds": ["turn."]},
        }
        result = self.request("extension/initialize", params)
        if "error" in result:
            raise Refused(result["error"])
        wanted = {
            "protocolVersion": PROTOCOL,
            "extensionId": self.manifest["id"],
            "services": self.manifest["provides"],
            "manifestChecksum": fnv1a(self.data),
        }
        for name, value in wanted.items():
            if result[name] != value:
                raise Refused(f"echoed {name} {result[name]!r} but the manifest declares {value!r}")
        show("initialized", result["extensionId"])

    def use(self, service: Message) -> None:
        match service["type"]:
            case "tool_provider":
                for tool in service["tools"]:
                    for text in ("quiet", ""):
                        show(tool["name"], self.call(service["id"], tool["name"], {"text": text}))
                show("unknown", self.call(service["id"], "no such tool", {}))
            case "inference_engine":
                models = self.request("inference/listModels", {"engineId": service["id"]})["models"]
                show("models", models)
                for prompt in ("hi", "whole", "fail"):
                    self.turn(service["id"], models[0]["id"], prompt)
            case "task_executor":
                show("spec", self.request("tasks/spec", {"executorId": service["id"]})["spec"])
                self.execute(service["id"], "e1", {"args": ["desk", "shelf"]})
                self.cancel(service["id"])
            case "subagent_dispatcher":
                show("agents", self.request("subagents/definitions", {"dispatcherId": service["id"]}))
                self.dispatch(service["id"])
                cancelled = {"dispatcherId": service["id"], "dispatchId": "d1", "reason": "dispatch timed out"}
                show("cancelled", self.request("subagents/cancel", cancelled))
            case _:
                self.send_turn_event()

    def call(self, provider: str, tool: str, arguments: Message) -> Message:
        params = {
            "providerId": provider,
            "toolName": tool,
            "callId": "c1",
            "threadId": "t1",
            "turnId": "u1",
            "arguments": arguments,
        }
        result: Message = self.request("tools/call", params)
        return result

    def turn(self, engine: str, model: str, prompt: str) -> None:
        request = {
            "model": {"provider": engine, "model": model},
            "instructions": {"system": "be brief", "developer": None, "developer_context": None},
            "transcript": [{"UserMessage": {"text": prompt}}],
            "tools": [],
            "tool_choice": "Auto",
            "reasoning": {"enabled": False, "level": None},
            "output": {"max_tokens": 64, "temperature": None, "top_p": None, "response_format": None},
            "runtime": {"trace_id": None, "prompt_cache_key": None, "auto_compact_token_limit": None},
            "metadata": {},
        }
        params = {"engineId": engine, "streamId": f"s-{prompt}", "threadId": "t1", "turnId": "u1", "request": request}
        self.follow("inference/streamTurn", params, "streamId", "inference/event")

    def execute(self, executor: str, execution: str, given: Message) -> None:
        params = {"executorId": executor, "executionId": execution, "taskId": "task-1", "input": given}
        self.follow("tasks/execute", params, "executionId", "tasks/event")

    def cancel(self, executor: str) -> None:
        """Begins a call that never ends, and cancels it when it has begun."""
        params = {"executorId": executor, "executionId": "e2", "taskId": "task-2", "input": {"args": ["forever"]}}
        self.request("tasks/execute", params)
        show("tasks/event", self.read()["params"]["event"])
        given_up = {"executorId": executor, "executionId": "e2", "reason": "task cancelled by host"}
        id = next(self.ids)
        self.write({"jsonrpc": "2.0", "id": id, "method": "tasks/cancel", "params": given_up})
        responses = [self.read(), self.read()]  # its response and the last event, in either order
        for message in sorted(responses, key=lambda message: "id" not in message):
            show("tasks/cancel", message.get("result", message.get("params", {}).get("event")))

    def dispatch(self, dispatcher: str) -> None:
        request = {
            "description": "Help",
            "prompt": "sweep",
            "subagent_type": None,
            "model": None,
            "tools": None,
            "timeout_seconds": 5,
        }
        params = {
            "dispatcherId": dispatcher,
            "dispatchId": "d1",
            "parentThreadId": "t1",
            "parentTurnId": "u1",
            "request": request,
        }
        self.follow("subagents/dispatch", params, "dispatchId", "subagents/event")

    def send_turn_event(self) -> None:
        envelope: Message = {
            "event_id": "v1",
            "seq": 1,
            "timestamp": "2026-01-01T00:00:00Z",
            "source": "Core",
            "kind": "turn.started",
            "thread_id": "t1",
            "turn_id": "u1",
            "event": {"TurnStarted": {}},
        }
        self.write({"jsonrpc": "2.0", "method": "events/handle", "params": {"envelope": envelope}})
        received = self.read()
        show(received["method"], received["params"])

    def shut_down(self) -> int:
        show("shutdown", self.request("extension/shutdown", {}))
        self.stdin.close()
        return self.process.wait(10)


def is_last(event: Message) -> bool:
    return event.get("type") in ("completed", "failed") or "Completed" in event or "Failed" in event


def show(what: str, value: Any) -> None:
    print(what, json.dumps(value, sort_keys=True), flush=True)


def main(manifest: str, *command: str) -> int:
    host = Host(Path(manifest).resolve(), list(command))
    with host.process:
        try:
            host.initialize()
            for service in host.manifest["provides"]:
                host.use(service)
            return host.shut_down()
        except Refused as refused:
            show("refused", str(refused))
            host.stdin.close()
            return host.process.wait(10) or 1
        finally:
            host.process.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
