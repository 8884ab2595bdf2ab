"""Plugins of that system for tests, written without becket."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, sys

def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()

def receive():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit()

def respond(request, result):
    send({"id": request["id"], "result": result})

def reject(request, message):
    send({"id": request["id"], "error": {"code": -32000, "message": message}})

def is_first(path):
    "Whether no copy of the plugin has come here before."
    try:
        open(path, "x").close()
    except FileExistsError:
        return False
    return True

def serve(handle, tools=()):
    while True:
        request = receive()
        if request["method"] == "initialize":
            respond(request, {"protocol_version": 1, "capabilities": {"tools": list(tools)}})
        elif request["method"] in ("info.get", "shutdown"):
            respond(request, {})
        else:
            handle(request)
"""
TOOL = {"name": "t", "description": "d", "input_schema": {"type": "object"}}


def write_plugin(root: Path, id: str, program: str, permissions: Sequence[str] = (), **more: Any) -> Path:
    """Makes a plugin whose program continues after `PROGRAM`, and returns its folder; `more` are members of its
    manifest's `extension`."""
    folder = root / id
    (folder / ".synaps-plugin").mkdir(parents=True)
    extension = {"runtime": "process", "command": sys.executable, "args": ["main.py"], "permissions": [*permissions]}
    manifest = {"name": id, "version": "1.0.0", "extension": {**extension, **more}}
    (folder / ".synaps-plugin" / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "main.py").write_text(PROGRAM + program, encoding="utf-8")
    return folder
