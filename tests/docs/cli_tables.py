"""The tables of the page about operating, made from the code: commands, cases of `check`, exit codes, and the keys of a
host's configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.docs.manifest_tables import default_of, kind_of, resolve

from becket.cli.main import COMMANDS
from becket.cli.support.check_cases import NATIVE_CASES, Case, CloseStdin, SendCancel, SendNotification, SendRequest
from becket.cli.support.exit_codes import MEANINGS
from becket.cli.support.templates import TEMPLATES
from becket.json_schema.files import load_schema

__all__ = ["PARTS", "render_cases", "render_commands", "render_config", "render_exits"]

TABLES = {
    "host": "host keys",
    "discovery": "discovery keys",
    "hooks": "host hooks keys",
    "log": "log keys",
    "extension": "extensions keys",
}
"""Which definition of the schema stands in which generated part."""


def render_commands() -> str:
    rows = [f"| `becket {name}` | {summary} |" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def render_exits() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows, ""])


def render_templates() -> str:
    rows = [f"| `{name}` | {template.about} |" for name, template in TEMPLATES.items()]
    return "\n".join(["| template | what it does |", "|---|---|", *rows, ""])


def render_cases() -> str:
    rows = [f"| `{case.id}` | {case.title} | {render_steps(case)} |" for case in NATIVE_CASES]
    return "\n".join(["| case | what must hold | what is sent |", "|---|---|---|", *rows, ""])


def render_steps(case: Case) -> str:
    names = {SendCancel: "the cancellation", CloseStdin: "the end of stdin"}
    parts = [
        f"`{step.method}`" if isinstance(step, SendRequest | SendNotification) else names[type(step)]
        for step in case.sends
    ]
    return ", ".join(parts)


def render_config(definition: str) -> str:
    """Returns a row for each key of a table in the configuration of a host."""
    schema = load_schema("host-config")
    rows: list[str] = []
    for name, part in schema["$defs"][definition]["properties"].items():
        meaning = (resolve(part, schema) | part).get("description", "")
        rows.append(f"| `{name}` | {describe(part, schema)} | {default_of(part)} | {meaning} |")
    return "\n".join(["| key | kind | default | meaning |", "|---|---|---|---|", *rows, ""])


def describe(part: dict[str, Any], schema: dict[str, Any]) -> str:
    return " or ".join(kind_of(one, schema) for one in part.get("oneOf", [part]))


PARTS: dict[str, Callable[[], str]] = {
    "commands": render_commands,
    "cases of check": render_cases,
    "templates": render_templates,
    "exit codes of the command": render_exits,
    **{part: partial(render_config, name) for name, part in TABLES.items()},
}
