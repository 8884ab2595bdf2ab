"""The tools of all extensions of a host: under which names a model sees them, and whose each one is.

Pure: calling a tool is the handle's. A name that a model has seen stays the same over restarts, so a conversation can
go on. What cannot be registered is told, and the other tools are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

from msgspec import Struct

from becket.contract.names import (
    NameMap,
    model_facing_name,
    model_facing_schema,
    original_input,
    tool_runtime_name,
    trim,
)
from becket.contract.tools import Tool
from becket.errors import NotDeclared
from becket.host.diagnostics import Diagnostic, Severity

__all__ = [
    "MOST_TOOLS",
    "PLAIN_NAMING",
    "PREFIXED_NAMING",
    "RegisteredTool",
    "ToolNaming",
    "Tools",
    "prefixed_tool_name",
]

MOST_TOOLS: Final = 256  # of one extension: models are shown fewer, and if all their names clash it takes 20 ms
LONGEST_PREFIXED: Final = 64  # bytes
PREFIX: Final = "ext_"
HASH_DIGITS: Final = 6


# -- names


class ToolNaming(Struct, frozen=True):
    """How tools are named and described to a model.

    `name` takes the extension, the tool and the names that are taken, and returns None where there is no free one."""

    name: Callable[[str, str, AbstractSet[str]], str | None]
    describe: Callable[[str, str], str]


def plain_name(extension: str, tool: str, taken: AbstractSet[str]) -> str:
    runtime_name = tool_runtime_name(extension, tool)
    name = model_facing_name(runtime_name)
    return model_facing_name(runtime_name, taken) if name in taken else name


def prefixed_tool_name(extension: str, tool: str) -> str:
    """Returns `ext_<extension>_<tool>`, with a piece of a digest at its end where that is longer than 64 bytes."""
    name = f"{PREFIX}{extension}_{tool}"
    if len(name.encode()) <= LONGEST_PREFIXED:
        return name
    end = f"_{short_digest(extension, tool)}"
    room = LONGEST_PREFIXED - len(f"{PREFIX}{extension}_{end}".encode())
    if room >= 0:
        return f"{PREFIX}{extension}_{cut(tool, room)}{end}"
    return f"{PREFIX}{cut(extension, LONGEST_PREFIXED - len(PREFIX) - len(end))}{end}"


def short_digest(extension: str, tool: str) -> str:
    from hashlib import sha256

    return sha256(f"{extension}\0{tool}".encode()).hexdigest()[:HASH_DIGITS]


def cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def free_prefixed_name(extension: str, tool: str, taken: AbstractSet[str]) -> str | None:
    name = prefixed_tool_name(extension, tool)
    return None if name in taken else name


PLAIN_NAMING: Final = ToolNaming(plain_name, lambda extension, description: description)
"""`extension_tool` in the characters that models allow; of two that clash the later one gets a number."""

PREFIXED_NAMING: Final = ToolNaming(
    free_prefixed_name, lambda extension, description: f"[ext:{extension}] {description}"
)
"""`ext_<extension>_<tool>`, described with whose it is; of two that clash the later one is left out."""


# -- what is registered


class RegisteredTool(Struct, frozen=True):
    """A tool as a model sees it, and whose it is. `tool` is what its extension declared."""

    extension: str
    tool: Tool
    runtime_name: str
    name: str
    description: str
    input_schema: Any
    names: NameMap = NameMap()

    def for_model(self) -> dict[str, Any]:
        """Returns what a model is told of it."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def input_of(self, written: Any) -> Any:
        """Returns the input that a model has written with the tool's own names of properties, as hooks see it."""
        return original_input(written, self.names)


class Tools:
    """The tools of all extensions. `reserved` are names of the host's own, which no extension can take."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._by_name: dict[str, RegisteredTool] = {}
        self._by_runtime_name: dict[str, RegisteredTool] = {}
        # For each extension, also one that is away for a moment: the names that a model knows its tools by.
        self._remembered: dict[str, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(tuple(self._by_name.values()))

    def add(self, extension: str, tools: Collection[Tool], *, naming: ToolNaming = PLAIN_NAMING) -> list[Diagnostic]:
        """Registers the tools of an extension in place of those that it had. Returns why some were left out."""
        self.remove(extension)
        known = self._remembered.get(extension, {})
        taken = {name for names in self._remembered.values() for name in names.values()} | self._reserved
        names: dict[str, str] = {}
        diagnostics: list[Diagnostic] = []
        for tool in [*tools][:MOST_TOOLS]:
            own = trim(tool.name)
            runtime_name = tool_runtime_name(extension, own)
            if runtime_name in names:
                diagnostics.append(left_out(extension, f"declares the tool `{own}` twice"))
                continue
            name = known.get(runtime_name) or naming.name(extension, own, taken)
            if name is None:
                diagnostics.append(left_out(extension, f"the name of its tool `{own}` is taken already"))
                continue
            taken.add(name)
            names[runtime_name] = name
            self._register(extension, tool, runtime_name, name, naming)
        if len(tools) > MOST_TOOLS:
            diagnostics.append(left_out(extension, f"declares {len(tools)} tools, the limit is {MOST_TOOLS}"))
        self._remembered[extension] = names
        return diagnostics

    def _register(self, extension: str, tool: Tool, runtime_name: str, name: str, naming: ToolNaming) -> None:
        schema, names = model_facing_schema(tool.input_schema)
        description = naming.describe(extension, tool.description)
        registered = RegisteredTool(extension, tool, runtime_name, name, description, schema, names)
        self._by_name[name] = self._by_runtime_name[runtime_name] = registered

    def remove(self, extension: str) -> None:
        """Takes the tools of an extension away. Their names are kept for it, in case it comes back."""
        for runtime_name, name in self._remembered.get(extension, {}).items():
            self._by_name.pop(name, None)
            self._by_runtime_name.pop(runtime_name, None)

    def forget(self, extension: str) -> None:
        """Takes the tools of an extension away for good: others may have their names."""
        self.remove(extension)
        self._remembered.pop(extension, None)

    def find(self, name: str) -> RegisteredTool | None:
        """Returns the tool that a model, or an extension with its runtime name, means; None if there is none."""
        return self._by_name.get(name) or self._by_runtime_name.get(name)

    def get(self, name: str) -> RegisteredTool:
        """Returns the tool that is meant.

        Raises:
            NotDeclared: there is none.
        """
        found = self.find(name)
        if found is None:
            raise NotDeclared("this host", "tool", name, [*self._by_name])
        return found

    def for_model(self) -> tuple[dict[str, Any], ...]:
        """Returns what a model is told of all tools, in an order that does not depend on who started first."""
        return tuple(self._by_name[name].for_model() for name in sorted(self._by_name))


def left_out(extension: str, problem: str) -> Diagnostic:
    hint = "the other tools are there; give it another name"
    return Diagnostic(extension=extension, problem=problem, hint=hint, severity=Severity.WARNING)
