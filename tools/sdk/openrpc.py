"""Builds `schemas/openrpc.json`, an OpenRPC document of all methods, from the catalogue and the schema bundle."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from tools.sdk.bundle import build_bundle
from tools.sdk.model import is_stream
from tools.sdk.types import ENTRIES, Json

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import PROTOCOL_VERSION
from becket.contract.hooks import HOOKS
from becket.contract.json_narrowing import is_array, is_object
from becket.errors import ERROR_CODES, Meaning
from becket.methods.descriptors import Method, Notification

__all__ = ["FILE", "OWN_ERRORS", "build_document", "render_document"]

FILE: Final = Path(__file__).parents[2] / "schemas" / "openrpc.json"
NAMES: Final = {entry.type: entry.name for entry in ENTRIES if entry.type is not None}

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
"""The permission that an extension needs to receive a request. Its host checks it, so it is no error of the method."""
ALWAYS_READY = ("shutdown",)


def build_document() -> Json:
    """Returns the whole document. All of its references stay within it."""
    definitions = relocate(build_bundle()["$defs"])
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "The extension contract of becket",
            "version": str(PROTOCOL_VERSION),
            "description": (
                "The messages between a host and its extensions, as JSON-RPC 2.0 over stdin and stdout. `methods` are "
                "requests. `x-notifications` are notifications, listed apart since one name is used for both. "
                "`x-direction` is the peer that receives the message, `x-permission` the permission that the extension "
                "needs to send or to receive it (for hooks by their kind), `x-timeout` how many seconds the caller "
                "waits for the response, `x-idle-timeout` for the next event (null: the default of the link), "
                "`x-events` the notifications that belong to a request while it runs, and `x-params` describes all "
                "params as one object. Numbers of errors are those of the `native` dialect."
            ),
        },
        "methods": [build_method(method, definitions) for method in METHODS],
        "x-notifications": [build_notification(notification, definitions) for notification in NOTIFICATIONS],
        "components": {
            "schemas": definitions,
            "errors": {error_name(meaning): build_error(meaning) for meaning in used_meanings()},
        },
    }


def render_document() -> str:
    """Returns the text of the file."""
    return json.dumps(build_document(), indent=2) + "\n"


def relocate(part: Any) -> Any:
    """Returns a copy whose references lead to the components of the document."""
    if is_object(part):
        moved = {key: relocate(value) for key, value in part.items()}
        if isinstance(moved.get("$ref"), str):
            moved["$ref"] = moved["$ref"].replace("#/$defs/", "#/components/schemas/")
        return moved
    return [relocate(value) for value in part] if is_array(part) else part


def build_method(method: Method[Any, Any], definitions: Json) -> Json:
    made = {"name": method.name, **build_received(method, definitions), "x-timeout": method.timeout}
    if is_stream(method):
        params = {each.name: each.params for each in NOTIFICATIONS}
        made["x-idle-timeout"] = method.idle_timeout
        made["x-events"] = [{"name": name, **reference_to(NAMES[params[name]])} for name in method.events]
    anything = {"description": "Any value."}
    made["result"] = {
        "name": "result",
        "schema": reference_to(NAMES[method.result]) if method.result in NAMES else anything,
    }
    made["errors"] = [{"$ref": f"#/components/errors/{error_name(meaning)}"} for meaning in meanings_of(method)]
    results = definitions[NAMES[method.result]]["examples"] if method.result in NAMES else [None]
    made["examples"] = [
        {**example, "result": {"name": "result", "value": result}}
        for example, result in zip(build_examples(method, definitions), cycle(results), strict=False)
    ]
    return made


def build_notification(notification: Notification[Any], definitions: Json) -> Json:
    return {
        "name": notification.name,
        **build_received(notification, definitions),
        "examples": build_examples(notification, definitions),
    }


def build_received(message: Method[Any, Any] | Notification[Any], definitions: Json) -> Json:
    made: Json = {
        "summary": message.summary,
        "paramStructure": "by-name",
        "params": build_params(message, definitions),
        "x-direction": message.direction,
        "x-permission": OFFERED.get(message.name, message.requires),
    }
    if message.params is not None:
        made["x-params"] = reference_to(NAMES[message.params])
    return made


def build_params(message: Method[Any, Any] | Notification[Any], definitions: Json) -> list[Json]:
    """Returns one descriptor for each member of the params, the required ones first. Of a tagged union these are the
    members of all cases, and only the tag is required."""
    if message.params is None:
        return []
    name = NAMES[message.params]
    cases = [choice["$ref"].rpartition("/")[2] for choice in definitions[name].get("oneOf", ())] or [name]
    required = set[str].intersection(*(set[str](definitions[case].get("required", ())) for case in cases))
    owners = {member: case for case in reversed(cases) for member in definitions[case]["properties"]}
    members = [member for case in cases for member in definitions[case]["properties"] if owners[member] == case]
    params = [
        {
            "name": member,
            "required": member in required,
            "schema": reference_to(f"{owners[member]}/properties/{member}"),
        }
        for member in members
    ]
    return sorted(params, key=lambda param: not param["required"])


def build_examples(message: Method[Any, Any] | Notification[Any], definitions: Json) -> list[Json]:
    examples: list[Json] = [{}] if message.params is None else definitions[NAMES[message.params]]["examples"]
    return [
        {"name": f"example {number}", "params": [{"name": name, "value": value} for name, value in example.items()]}
        for number, example in enumerate(examples, 1)
    ]


def reference_to(definition: str) -> Json:
    return {"$ref": f"#/components/schemas/{definition}"}


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
