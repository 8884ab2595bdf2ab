"""Formats values like Rust's `{:?}`, truncated, for Roder's error messages."""

from __future__ import annotations

from typing import Any, Final

from becket._text import truncate
from becket.adapters.roder.messages.services import Service, ToolProvider
from becket.contract.json_narrowing import is_array, is_object

__all__ = ["format_character", "format_services", "format_text"]

MAX_LENGTH: Final = 2_000  # characters; a list of services may be as large as a frame
ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
CHARACTER_ESCAPES: Final = {'"': '"', "'": "\\'"}


def format_text(text: str) -> str:
    """Returns a text in quotes, with unprintable characters escaped."""
    return truncate(quote_text(text[:MAX_LENGTH]), MAX_LENGTH)


def format_character(letter: str) -> str:
    """Returns a character in single quotes, in which double quotes need no escape."""
    return f"'{CHARACTER_ESCAPES.get(letter) or escape_letter(letter)}'"


def format_services(services: tuple[Service, ...]) -> str:
    """Returns a list of services."""
    return truncate(f"[{', '.join(map(format_service, services))}]", MAX_LENGTH)


def format_service(service: Service) -> str:
    name = type(service).__name__
    if not isinstance(service, ToolProvider):
        return f"{name} {{ id: {quote_text(service.id)} }}"
    tools = ", ".join(
        f"ToolSpec {{ name: {quote_text(tool.name)}, description: {quote_text(tool.description)}, "
        f"parameters: {format_json(tool.parameters)} }}"
        for tool in service.tools
    )
    return f"{name} {{ id: {quote_text(service.id)}, tools: [{tools}] }}"


def format_json(value: Any) -> str:
    match value:
        case None:
            return "Null"
        case bool():
            return f"Bool({str(value).lower()})"
        case int() | float():
            return f"Number({value!r})"
        case str():
            return f"String({quote_text(value)})"
        case _ if is_array(value):
            return f"Array [{', '.join(map(format_json, value))}]"
        case _ if is_object(value):
            members = ", ".join(f"{quote_text(name)}: {format_json(member)}" for name, member in value.items())
            return f"Object {{{members}}}"
        case _:
            return str(value)


def quote_text(text: str) -> str:
    return f'"{"".join(map(escape_letter, text))}"'


def escape_letter(letter: str) -> str:
    """Returns a letter, or Rust's escape of it."""
    return ESCAPES.get(letter) or (letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}")
