"""Finds the definition and the schema file of the params and the result of a method."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """Where params and result are described. Without a name there are no params, and the result may be anything."""

    schema: str
    params: str
    result: str = ""


REQUESTS = {
    "initialize": Shape("initialize", "params", "result"),
    "shutdown": Shape("", "", ""),
    "tool.call": Shape("tools", "call", "result"),
    "provider.complete": Shape("providers", "request", "completed"),
    "provider.stream": Shape("providers", "request", "result"),
    "command.invoke": Shape("commands", "params", "result"),
    "hook.handle": Shape("hooks", "event", "result"),
    "info.get": Shape("info", "", "info"),
    "sidecar.spawn_args": Shape("info", "", "sidecar_args"),
    "settings.editor.open": Shape("settings-editor", "open", "result"),
    "settings.editor.key": Shape("settings-editor", "key", "result"),
    "settings.editor.commit": Shape("settings-editor", "commit", "result"),
    "memory.append": Shape("memory", "append", "appended"),
    "memory.query": Shape("memory", "query", "records"),
    "config.get": Shape("config", "get", "value"),
    "config.set": Shape("config", "set", "saved"),
    "config.subscribe": Shape("config", "subscribe", "subscribed"),
}
NOTIFIED = {
    "provider.stream.event": Shape("provider-events", "params"),
    "command.output": Shape("command-output", "params"),
    "task.start": Shape("tasks", "start"),
    "task.update": Shape("tasks", "update"),
    "task.log": Shape("tasks", "log"),
    "task.done": Shape("tasks", "done"),
    "settings.editor.render": Shape("settings-editor", "render"),
    "settings.editor.commit": Shape("settings-editor", "committed"),
    "settings.editor.close": Shape("settings-editor", "close"),
    "widget.upsert": Shape("widgets", "upsert"),
    "widget.dismiss": Shape("widgets", "dismiss"),
    "$/log": Shape("log", "record"),
    "config.changed": Shape("config", "changed"),
}
