"""Values as the messages of Roder show them: what Rust's `{:?}` makes of them, cut where it would be a page."""

from __future__ import annotations

from typing import Any, Final

from becket.contract.shapes import is_array, is_object
from becket.dialects.roder.services import Service, ToolProvider

__all__ = ["show_services", "show_text"]

MOST: Final = 2_000  # characters: a list of services may be as long as a frame
ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def show_text(text: str) -> str:
    """Returns a text in quotes, with escapes for what cannot be printed."""
    return cut(quote(text[:MOST]))


def show_services(services: tuple[Service, ...]) -> str:
    """Returns a list of services."""
    return cut(f"[{', '.join(map(show_service, services))}]")


def show_service(service: Service) -> str:
    name = type(service).__name__
    if not isinstance(service, ToolProvider):
        return f"{name} {{ id: {quote(service.id)} }}"
    tools = ", ".join(
        f"ToolSpec {{ name: {quote(tool.name)}, description: {quote(tool.description)}, "
        f"parameters: {show_json(tool.parameters)} }}"
        for tool in service.tools
    )
    return f"{name} {{ id: {quote(service.id)}, tools: [{tools}] }}"


def show_json(value: Any) -> str:
    match value:
        case None:
            return "Null"
        case bool():
            return f"Bool({str(value).lower()})"
        case int() | float():
            return f"Number({value!r})"
        case str():
            return f"String({quote(value)})"
        case _ if is_array(value):
            return f"Array [{', '.join(map(show_json, value))}]"
        case _ if is_object(value):
            members = ", ".join(f"{quote(name)}: {show_json(member)}" for name, member in value.items())
            return f"Object {{{members}}}"
        case _:
            return str(value)


def quote(text: str) -> str:
    return f'"{"".join(map(escape, text))}"'


def escape(letter: str) -> str:
    return ESCAPES.get(letter) or (letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}")


def cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}..."
