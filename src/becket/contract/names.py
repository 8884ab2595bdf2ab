"""Rules for names and ids, and the tool names that a model API accepts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from becket._deprecated import keep_renamed
from becket.contract.json_narrowing import is_array, is_object

__all__ = [
    "MAX_ID_LENGTH",
    "MAX_PROPERTY_NAME_LENGTH",
    "MAX_TOOL_NAME_LENGTH",
    "IdProblem",
    "NameMap",
    "check_id_segment",
    "find_id_problem",
    "is_provider_id",
    "model_facing_name",
    "model_facing_names",
    "model_facing_schema",
    "model_runtime_id",
    "parse_model_id",
    "property_name",
    "provider_runtime_id",
    "restore_input",
    "snake_case",
    "strip_whitespace",
    "tool_runtime_name",
]

MAX_ID_LENGTH: Final = 64  # bytes of UTF-8, after trimming
MAX_TOOL_NAME_LENGTH: Final = 128  # as model APIs allow
MAX_PROPERTY_NAME_LENGTH: Final = 64
SEPARATOR: Final = ":"

# Unicode's White_Space property. `str.isspace` includes four more control characters.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
LOWERCASE: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
DIGITS: Final = frozenset("0123456789")
API_CHARACTERS: Final = LOWERCASE | {letter.upper() for letter in LOWERCASE} | DIGITS | {"_", "-"}


# -- segments of ids


class IdProblem(Struct, frozen=True, gc=False):
    """A problem of an id: as a sentence, and in brief to follow the id."""

    sentence: str
    brief: str


EMPTY: Final = IdProblem("must not be empty", "must not be empty")
HAS_WHITE_SPACE: Final = IdProblem("must not contain whitespace", "must not contain whitespace")
HAS_SEPARATOR: Final = IdProblem(f"must not contain reserved character '{SEPARATOR}'", f"'{SEPARATOR}' is reserved")


def strip_whitespace(text: str) -> str:
    """Returns the text without surrounding white space."""
    return text.strip(WHITE_SPACE)


def find_id_problem(text: str) -> IdProblem | None:
    """Returns why a trimmed text is not a valid tool name, provider id or model id, or None."""
    if not text:
        return EMPTY
    # Fast path: nearly all ids, and there may be thousands.
    if len(text) <= MAX_ID_LENGTH and API_CHARACTERS.issuperset(text):
        return None
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_ID_LENGTH:
        too_long = f"must be at most {MAX_ID_LENGTH} chars (got {size})"
        return IdProblem(too_long, too_long)
    for character in text:
        if is_control(character) and character not in WHITE_SPACE:
            name = f"control character U+{ord(character):04X}"
            return IdProblem(f"must not contain {name}", f"contains {name}")
    if SEPARATOR in text:
        return HAS_SEPARATOR
    if any(character in WHITE_SPACE for character in text):
        return HAS_WHITE_SPACE
    return None


def is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def check_id_segment(what: str, text: str) -> None:
    """Raises ValueError for an invalid id; `what` names it in the message."""
    problem = find_id_problem(strip_whitespace(text))
    if problem is not None:
        raise ValueError(f"invalid {what} '{strip_whitespace(text)}': {problem.sentence}")


def is_provider_id(text: str) -> bool:
    """Returns whether all characters are among `a-z 0-9 _ -`, as a provider's id requires."""
    return bool(text) and all(character in LOWERCASE or character in DIGITS or character in "-_" for character in text)


# -- qualified names


def tool_runtime_name(plugin: str, tool: str) -> str:
    """Returns the name of a tool that is unique among all extensions."""
    return f"{plugin}{SEPARATOR}{tool}"


def provider_runtime_id(plugin: str, provider: str) -> str:
    """Returns the id of a provider that is unique among all extensions."""
    return f"{plugin}{SEPARATOR}{provider}"


def model_runtime_id(plugin: str, provider: str, model: str) -> str:
    """Returns the id of a model that is unique among all extensions."""
    return SEPARATOR.join((plugin, provider, model))


def parse_model_id(text: str) -> tuple[str, str, str]:
    """Splits a runtime id into extension, provider and model.

    Raises:
        ValueError: it does not have exactly three non-empty parts.
    """
    parts = text.split(SEPARATOR)
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"'{text}' is not a model id: it must be `plugin:provider:model`")
    plugin, provider, model = parts
    return plugin, provider, model


# -- model-facing names


def model_facing_name(runtime_name: str, taken: Iterable[str] = ()) -> str:
    """Returns a tool name that model APIs accept and that is not in `taken`."""
    return build_safe_name(runtime_name, frozenset(taken), MAX_TOOL_NAME_LENGTH, API_CHARACTERS)


def model_facing_names(runtime_names: Iterable[str]) -> dict[str, str]:
    """Returns the runtime name for each model-facing name. Which of two clashing names gets the suffix does not
    depend on their order, so that names are stable during a conversation."""
    names: dict[str, str] = {}
    for runtime_name in sorted(set(runtime_names)):
        names[model_facing_name(runtime_name, names)] = runtime_name
    return names


def property_name(name: str, taken: Iterable[str] = ()) -> str:
    """Returns a property name that model APIs accept and that is not in `taken`."""
    return build_safe_name(name, frozenset(taken), MAX_PROPERTY_NAME_LENGTH, API_CHARACTERS | {"."})


def build_safe_name(name: str, taken: frozenset[str], longest: int, allowed: frozenset[str]) -> str:
    safe = "".join(character if character in allowed else "_" for character in name) or "field"
    found = safe = safe[:longest]
    number = 2
    while found in taken:
        suffix = f"_{number}"
        found = safe[: longest - len(suffix)] + suffix
        number += 1
    return found


class NameMap(Struct, frozen=True):
    """Maps model-facing property names back to the original ones, at each level of a schema."""

    names: Mapping[str, str] = {}
    nested: Mapping[str, NameMap] = {}
    items: NameMap | None = None

    def __bool__(self) -> bool:
        """Returns whether any name differs."""
        return bool(self.names or self.nested or self.items)


UNCHANGED: Final = NameMap()
"""Shared by all schemas in which no name differs, which are most."""


def model_facing_schema(schema: Any) -> tuple[Any, NameMap]:
    """Returns the schema with property names that model APIs accept, and the map back to the original names."""
    if not is_object(schema):
        return schema, UNCHANGED
    facing = dict(schema)
    names: dict[str, str] = {}
    below: dict[str, NameMap] = {}
    items = None
    if is_object(properties := facing.get("properties")):
        facing["properties"] = rename_properties(properties, names, below)
    if is_array(required := facing.get("required")):
        new_names = {original: name for name, original in names.items()}
        facing["required"] = [new_names.get(name, name) if isinstance(name, str) else name for name in required]
    if "items" in facing:
        facing["items"], items = model_facing_schema(facing["items"])
    if not (names or below or items):
        return schema, UNCHANGED
    return facing, NameMap(names, below, items or None)


def rename_properties(properties: dict[str, Any], names: dict[str, str], below: dict[str, NameMap]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for original, part in properties.items():
        name = property_name(original, renamed)
        renamed[name], inner = model_facing_schema(part)
        if name != original:
            names[name] = original
        if inner:
            below[name] = inner
    return renamed


def restore_input(value: Any, names: NameMap) -> Any:
    """Returns a model's input with the original property names of the tool's schema."""
    if is_object(value):
        return {
            names.names.get(name, name): restore_input(member, names.nested[name]) if name in names.nested else member
            for name, member in value.items()
        }
    if is_array(value) and names.items is not None:
        return [restore_input(element, names.items) for element in value]
    return value


# -- classes


def snake_case(name: str) -> str:
    """Converts a class name to snake case: `TextDelta` to `text_delta`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "LONGEST_ID": "MAX_ID_LENGTH",
            "LONGEST_PROPERTY_NAME": "MAX_PROPERTY_NAME_LENGTH",
            "LONGEST_TOOL_NAME": "MAX_TOOL_NAME_LENGTH",
            "original_input": "restore_input",
            "trim": "strip_whitespace",
        },
    )
