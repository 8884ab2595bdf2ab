"""Registry of all tools in a host: the names that models see, and the extension of each. Pure.

A name that a model has seen stays the same over restarts, so a conversation can go on. What cannot be registered is
reported, and the other tools are registered.

No extension can use a name of another: names that begin with the id of an extension are reserved for it, whether it
runs or not. Of two ids that both fit, the longer one counts; if they are equally long, no tool has the name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Set as AbstractSet
from functools import partial
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from becket._text import truncate_bytes
from becket.contract.names import (
    NameMap,
    model_facing_name,
    model_facing_schema,
    restore_input,
    strip_whitespace,
    tool_runtime_name,
)
from becket.contract.tools import Tool
from becket.errors import NotDeclared
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity

__all__ = [
    "MAX_TOOLS",
    "PLAIN_NAMING",
    "PREFIXED_NAMING",
    "RegisteredTool",
    "ToolNaming",
    "ToolRegistry",
    "prefixed_tool_name",
]

MAX_TOOLS: Final = 256  # of one extension: models get fewer, and if all their names clash it takes 20 ms
MAX_PREFIXED_BYTES: Final = 64  # bytes
PREFIX: Final = "ext_"
HASH_DIGITS: Final = 6


# -- names


class ToolNaming(Struct, frozen=True):
    """How tools are named and described to a model.

    `name` takes the extension and the tool. All names of an extension begin with its `prefix`, unless that makes them
    too long. `other_name` also takes a function that returns whether a name is free; None if there is none."""

    name: Callable[[str, str], str]
    prefix: Callable[[str], str]
    describe: Callable[[str, str], str]
    other_name: Callable[[str, str, Callable[[str], bool]], str | None] = lambda extension, tool, is_free: None


def plain_name(extension: str, tool: str) -> str:
    return model_facing_name(tool_runtime_name(extension, tool))


def digested_name(extension: str, tool: str, is_free: Callable[[str], bool]) -> str | None:
    """Returns a name with a part of a digest after the id; a longer part if that one is in use too."""
    names = (
        model_facing_name(tool_runtime_name(f"{extension}-{short_digest(extension, tool, size)}", tool))
        for size in (HASH_DIGITS, 2 * HASH_DIGITS, 4 * HASH_DIGITS)
    )
    return next((name for name in names if is_free(name)), None)


def prefixed_tool_name(extension: str, tool: str) -> str:
    """Returns `ext_<extension>_<tool>`, with a part of a digest at its end if that is longer than 64 bytes."""
    name = f"{PREFIX}{extension}_{tool}"
    if len(name.encode()) <= MAX_PREFIXED_BYTES:
        return name
    end = f"_{short_digest(extension, tool)}"
    room = MAX_PREFIXED_BYTES - len(f"{PREFIX}{extension}_{end}".encode())
    if room >= 0:
        return f"{PREFIX}{extension}_{truncate_bytes(tool, room)}{end}"
    return f"{PREFIX}{truncate_bytes(extension, MAX_PREFIXED_BYTES - len(PREFIX) - len(end))}{end}"


def short_digest(extension: str, tool: str, size: int = HASH_DIGITS) -> str:
    return sha256(f"{extension}\0{tool}".encode()).hexdigest()[:size]


PLAIN_NAMING: Final = ToolNaming(
    plain_name,
    lambda extension: plain_name(extension, ""),
    lambda extension, description: description,
    digested_name,
)
"""`extension_tool` in the characters that models allow; if it is in use, or reserved for another, with a part of a
digest."""

PREFIXED_NAMING: Final = ToolNaming(
    prefixed_tool_name,
    lambda extension: f"{PREFIX}{extension}_",
    lambda extension, description: f"[ext:{extension}] {description}",
)
"""`ext_<extension>_<tool>`, described with its extension; one that is in use, or reserved for another, is left out."""


# -- what is registered


class RegisteredTool(Struct, frozen=True):
    """A tool as a model sees it, and its extension. `tool` is what its extension declared."""

    extension: str
    tool: Tool
    runtime_name: str
    name: str
    description: str
    input_schema: Any
    names: NameMap = NameMap()

    def for_model(self) -> dict[str, Any]:
        """Returns its description for a model."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def decode_input(self, written: Any) -> Any:
        """Returns the input of a model with the tool's own names of properties, as hooks see it."""
        return restore_input(written, self.names)


class ToolRegistry:
    """The tools of all extensions. `reserved` are names of the host's own, which no extension can use."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._by_name: dict[str, RegisteredTool] = {}
        self._by_runtime_name: dict[str, RegisteredTool] = {}
        self._prefixes: dict[str, str] = {}
        # For each extension, also one that is away for a moment: the names that a model knows its tools by.
        self._remembered: dict[str, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(tuple(self._by_name.values()))

    def reserve(self, extension: str, naming: ToolNaming = PLAIN_NAMING) -> None:
        """Reserves the names that begin with the id of an extension for its tools."""
        self._prefixes[extension] = naming.prefix(extension)

    def add(self, extension: str, tools: Collection[Tool], *, naming: ToolNaming = PLAIN_NAMING) -> list[Diagnostic]:
        """Registers the tools of an extension in place of its previous ones. Returns why some were left out, and which
        have another name than usual."""
        self.remove(extension)
        self.reserve(extension, naming)
        rivals = self._find_rivals(extension)
        known = self._remembered.get(extension, {})
        taken = {name for names in self._remembered.values() for name in names.values()} | self._reserved
        names: dict[str, str] = {}
        diagnostics: list[Diagnostic] = []
        for tool in [*tools][:MAX_TOOLS]:
            own = strip_whitespace(tool.name)
            runtime_name = tool_runtime_name(extension, own)
            if runtime_name in names:
                diagnostics.append(build_skip_diagnostic(extension, f"declares the tool `{own}` twice"))
                continue
            usual = naming.name(extension, own)
            rival = next((other for other, prefix in rivals.items() if usual.startswith(prefix)), None)
            name = known.get(runtime_name)
            if name is None and rival is None and usual not in taken:
                name = usual
            if name is None:
                name = naming.other_name(extension, own, partial(self._is_free, extension, taken))
            if name is None:
                diagnostics.append(
                    build_skip_diagnostic(extension, f"the name `{usual}` of its tool `{own}` {why_not(rival)}")
                )
                continue
            if name != usual:
                diagnostics.append(renamed(extension, f"its tool `{own}` is `{name}`: `{usual}` {why_not(rival)}"))
            taken.add(name)
            names[runtime_name] = name
            self._register(extension, tool, runtime_name, name, naming)
        if len(tools) > MAX_TOOLS:
            diagnostics.append(
                build_skip_diagnostic(extension, f"declares {len(tools)} tools, the limit is {MAX_TOOLS}")
            )
        self._remembered[extension] = names
        return diagnostics

    def _find_rivals(self, extension: str) -> dict[str, str]:
        """Returns the others whose prefixes names of this extension may begin with, and whose prefix counts then."""
        own = self._prefixes[extension]
        return {
            other: prefix for other, prefix in self._prefixes.items() if other != extension and prefix.startswith(own)
        }

    def _is_free(self, extension: str, taken: AbstractSet[str], name: str) -> bool:
        own = self._prefixes[extension]
        # A shorter prefix of its own prefix does not count, or it would have no name at all.
        prefixes = [prefix for prefix in self._prefixes.values() if not own.startswith(prefix)]
        return name not in taken and not any(name.startswith(prefix) for prefix in prefixes)

    def _register(self, extension: str, tool: Tool, runtime_name: str, name: str, naming: ToolNaming) -> None:
        schema, names = model_facing_schema(tool.input_schema)
        description = naming.describe(extension, tool.description)
        registered = RegisteredTool(extension, tool, runtime_name, name, description, schema, names)
        self._by_name[name] = self._by_runtime_name[runtime_name] = registered

    def remove(self, extension: str) -> None:
        """Removes the tools of an extension. Their names stay reserved, in case it comes back."""
        for runtime_name, name in self._remembered.get(extension, {}).items():
            self._by_name.pop(name, None)
            self._by_runtime_name.pop(runtime_name, None)

    def forget(self, extension: str) -> None:
        """Removes the tools of an extension for good: others may use their names."""
        self.remove(extension)
        self._remembered.pop(extension, None)
        self._prefixes.pop(extension, None)

    def find(self, name: str) -> RegisteredTool | None:
        """Returns the tool of a model's name or of a runtime name; None if there is none."""
        return self._by_name.get(name) or self._by_runtime_name.get(name)

    def get(self, name: str) -> RegisteredTool:
        """Returns the tool of a name.

        Raises:
            NotDeclared: there is none.
        """
        found = self.find(name)
        if found is None:
            raise NotDeclared("this host", "tool", name, [*self._by_name])
        return found

    def for_model(self) -> tuple[dict[str, Any], ...]:
        """Returns the descriptions of all tools for a model, in an order that does not depend on which extension
        started first."""
        return tuple(self._by_name[name].for_model() for name in sorted(self._by_name))


def why_not(rival: str | None) -> str:
    return "is taken already" if rival is None else f"could also mean a tool of {rival}"


def renamed(extension: str, problem: str) -> Diagnostic:
    hint = "give the tool or the extension another name"
    return Diagnostic(
        code=ProblemCode.TOOL_RENAMED, extension=extension, problem=problem, hint=hint, severity=Severity.WARNING
    )


def build_skip_diagnostic(extension: str, problem: str) -> Diagnostic:
    hint = "the other tools are available; give it another name"
    return Diagnostic(
        code=ProblemCode.TOOL_LEFT_OUT, extension=extension, problem=problem, hint=hint, severity=Severity.WARNING
    )
