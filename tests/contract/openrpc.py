"""Makes `schemas/openrpc.json` of the catalogue and the schema files: `python -m tests.contract.openrpc` writes it."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import PROTOCOL_VERSION
from becket.contract.hooks import HOOKS
from becket.errors import ERROR_CODES, Meaning
from becket.json_schema.files import load_schema
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream

FILE = Path(__file__).parents[2] / "schemas" / "openrpc.json"
Json = Any


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
TOLD = {
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

USUAL_ERRORS = (Meaning.INTERNAL, Meaning.CANCELLED, Meaning.BUSY, Meaning.TOO_LARGE)
OWN_ERRORS = {
    "initialize": (Meaning.INCOMPATIBLE,),
    "memory.append": (Meaning.QUOTA, Meaning.DISK_FULL),
    "config.set": (Meaning.QUOTA, Meaning.DISK_FULL),
}
OFFERED = {
    "tool.call": "tools.register",
    "provider.complete": "providers.register",
    "provider.stream": "providers.register",
    "hook.handle": {kind.value: rule.permission for kind, rule in HOOKS.items()},
}
"""What an extension must hold to be asked at all; its host looks at that, so it is no error of the method."""
ALWAYS_READY = ("shutdown",)


def build_document() -> Json:
    """Returns the whole document."""
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "The extension contract of becket",
            "version": str(PROTOCOL_VERSION),
            "description": (
                "What a host and its extensions say to each other as JSON-RPC 2.0 over stdin and stdout. `methods` are "
                "requests, and `x-notifications` are told without an answer: one name is used in both, so they stand "
                "apart. `x-direction` says who serves a method or is told, `x-permission` what the extension must "
                "hold to ask or to be asked (for hooks by their kind), `x-timeout` how many seconds its caller waits "
                "for the whole, `x-idle-timeout` for the next event (null: as the link does), `x-events` which "
                "notifications belong to it while it runs, and `x-params` describes all params as one object. "
                "Numbers of errors are those of the `native` dialect."
            ),
        },
        "methods": [build_method(method) for method in METHODS],
        "x-notifications": [build_notification(notification) for notification in NOTIFICATIONS],
        "components": {"errors": {error_name(meaning): build_error(meaning) for meaning in used_meanings()}},
    }


def build_method(method: Method[Any, Any]) -> Json:
    shape = REQUESTS[method.name]
    made: Json = {
        "name": method.name,
        **build_asked(method, shape),
        "x-timeout": method.timeout,
    }
    if isinstance(method, Stream):
        made["x-idle-timeout"] = method.idle_timeout
        made["x-events"] = [
            {"name": name, **reference_to(TOLD[name].schema, TOLD[name].params)} for name in method.events
        ]
    schema = reference_to(shape.schema, shape.result) if shape.result else {"description": "Anything; it is ignored."}
    made["result"] = {"name": "result", "schema": schema}
    made["errors"] = [{"$ref": f"#/components/errors/{error_name(meaning)}"} for meaning in meanings_of(method)]
    results = definition_of(shape.schema, shape.result)["examples"] if shape.result else [None]
    made["examples"] = [
        {**example, "result": {"name": "result", "value": result}}
        for example, result in zip(build_examples(shape), cycle(results), strict=False)
    ]
    return made


def build_notification(notification: Notification[Any]) -> Json:
    shape = TOLD[notification.name]
    return {"name": notification.name, **build_asked(notification, shape), "examples": build_examples(shape)}


def build_asked(descriptor: Method[Any, Any] | Notification[Any], shape: Shape) -> Json:
    made: Json = {
        "summary": descriptor.summary,
        "paramStructure": "by-name",
        "params": build_params(shape),
        "x-direction": descriptor.direction,
        "x-permission": OFFERED.get(descriptor.name, descriptor.requires),
    }
    if shape.params:
        made["x-params"] = reference_to(shape.schema, shape.params)
    return made


def build_params(shape: Shape) -> list[Json]:
    """Returns one descriptor for each member of the params, the required ones first."""
    if not shape.params:
        return []
    definition = definition_of(shape.schema, shape.params)
    # Where one form is usual and another is understood as well, the usual one stands under `then`.
    usual = definition.get("then", {}).get("properties", {})
    needed = {*definition.get("required", ()), *usual}
    places = {name: f"properties/{name}" for name in definition.get("properties", {})}
    places |= {name: f"then/properties/{name}" for name in usual}
    params = [
        {
            "name": name,
            "required": name in needed,
            "schema": reference_to(shape.schema, f"{shape.params}/{place}"),
        }
        for name, place in places.items()
    ]
    return sorted(params, key=lambda param: not param["required"])


def build_examples(shape: Shape) -> list[Json]:
    """Returns the examples of the params that have the usual form."""
    names = {param["name"] for param in build_params(shape)}
    examples = definition_of(shape.schema, shape.params)["examples"] if shape.params else [{}]
    usual = [example for example in examples if example.keys() <= names]
    return [
        {"name": f"example {number}", "params": [{"name": name, "value": value} for name, value in example.items()]}
        for number, example in enumerate(usual, 1)
    ]


def definition_of(schema: str, definition: str) -> Json:
    return load_schema(schema)["$defs"][definition]


def reference_to(schema: str, definition: str) -> Json:
    return {"$ref": f"{schema}.schema.json#/$defs/{definition}"}


# -- errors


def meanings_of(method: Method[Any, Any]) -> list[Meaning]:
    meanings = [] if method.params is None else [Meaning.INVALID_PARAMS]
    if method.requires is not None:
        meanings.append(Meaning.PERMISSION_DENIED)
    if method.direction == "to-extension" and method.name not in ALWAYS_READY:
        meanings.append(Meaning.NOT_READY)
    return [*meanings, *OWN_ERRORS.get(method.name, ()), *USUAL_ERRORS]


def used_meanings() -> list[Meaning]:
    used = {meaning for method in METHODS for meaning in meanings_of(method)}
    return [meaning for meaning in Meaning if meaning in used]


def error_name(meaning: Meaning) -> str:
    return meaning.name.lower().replace("_", "-")


def build_error(meaning: Meaning) -> Json:
    return {"code": ERROR_CODES[meaning], "message": meaning.value}


# -- the file


def render() -> str:
    return json.dumps(build_document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
    print(f"written: {FILE.name}")
