"""The generated tables of the contract: methods, hooks, permissions, features, schemas and exit codes."""

from __future__ import annotations

import ast
import shlex
import sys
from collections.abc import Callable
from typing import Any

from examples.extensions.notes.notes import Notes
from tests.contract.shapes import NOTIFIED, REQUESTS
from tests.docs.pages import ROOT

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import FEATURES
from becket.contract.hooks import HOOKS, HookEvent
from becket.extension.runner import (
    EXIT_PROTOCOL_ERROR,
    EXIT_REFUSED,
    EXIT_STOP_TIMEOUT,
    EXIT_STOPPED,
    EXIT_USAGE,
    usage_text,
)
from becket.json_schema.compiler import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ENUM_VALUES,
    MAX_NODES,
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
)
from becket.json_schema.files import load_schema, schema_names
from becket.methods.descriptors import Method
from becket.methods.streams import Stream
from becket.permissions.names import PERMISSIONS

__all__ = ["PARTS"]


def render(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def code(text: object) -> str:
    return "" if text is None else f"`{text}`"


# -- methods


def render_extension_methods() -> str:
    served = [method for method in METHODS if method.direction == "to-extension"]
    return render(
        ["method", "in `schemas/`", "response within", "what for"],
        [[code(it.name), where(REQUESTS[it.name]), patience_of(it), it.summary] for it in served],
    )


def render_host_methods() -> str:
    served = [method for method in METHODS if method.direction == "to-host"]
    return render(
        ["method", "in `schemas/`", "needs", "what for"],
        [[code(it.name), where(REQUESTS[it.name]), code(it.requires), it.summary] for it in served],
    )


def render_notifications() -> str:
    return render(
        ["notification", "in `schemas/`", "sent to the", "what for"],
        [
            [code(it.name), where(NOTIFIED[it.name]), it.direction.removeprefix("to-"), it.summary]
            for it in NOTIFICATIONS
        ],
    )


def where(shape: Any) -> str:
    """Returns in which file and under which names params and result are described."""
    if not shape.schema:
        return ""
    names = [f"`{name}`" for name in (shape.params, shape.result) if name]
    return f"[{shape.schema}](../schemas/{shape.schema}.schema.json): {', '.join(names)}"


def patience_of(method: Method[Any, Any]) -> str:
    if isinstance(method, Stream):
        return f"{method.idle_timeout:g} s without an event"
    return f"{method.timeout:g} s"


# -- hooks and permissions


EVENTS = {
    event.kind: event
    for event in (
        HookEvent.before_tool_call("bash", {}),
        HookEvent.after_tool_call("bash", {}, "done"),
        HookEvent.before_message("hello"),
        HookEvent.on_message_complete("hello", content_block_count=1, has_tool_use=False),
        HookEvent.on_compaction("short", old_session_id="1", new_session_id="2", message_count=9, source="user"),
        HookEvent.on_session_start("1"),
        HookEvent.on_session_end("1", ({"role": "user", "content": "hello"},)),
    )
}


def members_of(event: HookEvent) -> list[str]:
    """Returns the members that an event of this kind fills, its kind excepted."""
    filled = [name for name in event.__struct_fields__[1:] if getattr(event, name) is not None]
    members = ", ".join(event.data or ())
    return [f"{name} {{{members}}}" if name == "data" else name for name in filled]


def render_hooks() -> str:
    return render(
        ["hook", "needs", "may name a tool", "members", "results besides `continue`"],
        [
            [
                code(kind),
                code(rule.permission),
                "yes" if rule.takes_tool_filter else "no",
                ", ".join(code(name) for name in members_of(EVENTS[kind])),
                ", ".join(code(action.__struct_config__.tag) for action in rule.actions[1:]),
            ]
            for kind, rule in HOOKS.items()
        ],
    )


MEANINGS = {
    "audio.input": "to record audio; a name for capabilities, the contract itself has no method for it",
    "audio.output": "to play audio; a name for capabilities, as above",
    "config.subscribe": "to subscribe to changes of its own configuration",
    "config.write": "to change its own configuration; reading needs no permission",
    "context_providers.register": "to add to the context of models; a name for capabilities, as above",
    "memory.read": "to query its own records",
    "memory.write": "to store records",
    "privacy.llm_content": "to get the messages to and from models",
    "providers.register": "to offer models, and to be called for them",
    "session.drive": "to act in the place of the user; a name for capabilities, as above",
    "session.lifecycle": "to get the start, the end and the transcript of sessions",
    "tools.intercept": "to get, block or change each call of a tool of any extension",
    "tools.register": "to offer tools, and to be called for them",
    "tools.transform_output": "in addition to `tools.intercept`: to change the output of a tool",
}


def render_permissions() -> str:
    assert MEANINGS.keys() == PERMISSIONS
    return render(
        ["permission", "methods and hooks", "allows an extension"],
        [[code(name), ", ".join(code(it) for it in opened_by(name)), MEANINGS[name]] for name in sorted(PERMISSIONS)],
    )


def opened_by(permission: str) -> list[str]:
    """Returns the methods and hooks of the contract that need a permission."""
    if permission == "tools.register":
        return ["tool.call"]
    if permission == "providers.register":
        return ["provider.complete", "provider.stream"]
    methods = [method.name for method in METHODS if method.requires == permission]
    return methods + [kind.value for kind, rule in HOOKS.items() if rule.permission == permission]


# -- features


MEANT = {
    "cancel": "`$/cancelRequest {id}`: cancels a request, which still gets a response",
    "progress": "`$/progress {token, value}`: progress of a request, whose id is the token",
    "deadline": "`_meta.becket` with `timeout_ms`, `parent` and `depth` in params: see below",
    "credit": "`credit` beside them and `$/credit {id, n}`: how many events may be sent ahead",
    "ping": "`$/ping`: a request to which the reader responds with null at once",
    "log": "`$/log {level, logger, message}`: a line for the host's log",
    "no_params": "`no_params` beside them: distinguishes absent params from an empty object",
}


def render_features() -> str:
    assert tuple(MEANT) == FEATURES
    return render(["feature", "what may be sent"], [[code(name), MEANT[name]] for name in FEATURES])


# -- schemas


def render_schemas() -> str:
    schemas = [load_schema(name) for name in schema_names()]
    rows = [[file_of(schema), first_sentence(schema["description"]), definitions_of(schema)] for schema in schemas]
    return render(["file", "what it describes", "`$defs`"], rows)


def render_bounds() -> str:
    return (
        f"A schema has at most {MAX_DEPTH} levels, {MAX_NODES:,} values, {MAX_CHARACTERS // 1024} Ki characters,\n"
        f"{MAX_PATTERNS} patterns of at most {MAX_PATTERN_LENGTH:,} characters, and {MAX_ENUM_VALUES:,} choices in\n"
        "one `enum`.\n"
    )


def file_of(schema: Any) -> str:
    name = schema["$id"].rpartition("/")[2]
    return f"[{name.removesuffix('.schema.json')}](../schemas/{name})"


def first_sentence(text: str) -> str:
    return text.split(". ")[0].removesuffix(".") + "."


def definitions_of(schema: Any) -> str:
    if schema["$id"].endswith("/becket.schema.json"):
        return f"all {len(schema['$defs'])}, each under the name of its class in Python"
    return ", ".join(code(name) for name in schema.get("$defs", {}))


# -- programs


CODES = {
    EXIT_STOPPED: "its host ended it: by `shutdown`, the end of stdin, SIGTERM or SIGINT, or because the host is gone",
    1: "an uncaught exception, which Python has written to stderr",
    EXIT_USAGE: "there is no host: it was started by hand in a terminal, or has no stdout",
    EXIT_PROTOCOL_ERROR: "the input on stdin was not a message of the protocol",
    EXIT_STOP_TIMEOUT: "its shutdown took longer than five seconds, or 1.5 seconds after the host was gone",
    EXIT_REFUSED: "it cannot serve this host; stderr has the reason",
}


def render_exit_codes() -> str:
    return render(["exit code", "when"], [[str(number), output] for number, output in CODES.items()])


def render_notes() -> str:
    """Returns the notes extension without the docstring of its file."""
    source = (ROOT / "examples" / "extensions" / "notes" / "notes.py").read_text(encoding="utf-8")
    first = ast.parse(source).body[1]
    code = "\n".join(source.splitlines()[first.lineno - 1 :])
    return f"```python\n# notes.py\n{code}\n```\n"


def render_explanation() -> str:
    """Returns the output of the notes extension when it is started by hand."""
    command = shlex.join([sys.executable, *sys.argv])
    return f"```text\n{usage_text(Notes()).replace(command, 'python notes.py')}\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "methods of extensions": render_extension_methods,
    "methods of hosts": render_host_methods,
    "notifications": render_notifications,
    "hooks": render_hooks,
    "permissions": render_permissions,
    "features": render_features,
    "schemas": render_schemas,
    "bounds of schemas": render_bounds,
    "exit codes": render_exit_codes,
    "notes": render_notes,
    "explanation": render_explanation,
}
