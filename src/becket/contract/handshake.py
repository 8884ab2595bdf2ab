"""The first exchange: what the host says of itself, what the extension declares, and every rule that the host holds
against it. Pure; sending, waiting and refusing are the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import force_setattr

from becket.contract.names import find_id_problem, is_provider_id, provider_runtime_id, trim
from becket.contract.providers import Model, Provider
from becket.contract.shapes import REFUSED, is_array, is_object
from becket.contract.tools import Tool
from becket.errors import BadCapabilities, Problem, VersionMismatch
from becket.methods.descriptors import Direction, Method

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from becket.methods.permissions import Grants

__all__ = [
    "FEATURES",
    "INITIALIZE",
    "PROTOCOL_VERSION",
    "SHUTDOWN",
    "Capabilities",
    "DeclaredCapability",
    "HostInfo",
    "Initialize",
    "Initialized",
    "find_handshake_problems",
    "find_shape_problems",
    "parse_initialized",
    "read_initialized",
]

PROTOCOL_VERSION: Final = 1
FEATURES: Final = ("cancel", "progress", "deadline", "credit", "ping", "log")
"""What a link may use beyond the contract of old, each only where both sides have announced it."""

Version = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- what travels


class HostInfo(Struct, frozen=True):
    """Which program the host is."""

    name: str
    version: str


class Initialize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host's first words. `plugin_root` is the folder of the extension, null where it has none."""

    synaps_version: str | None = None
    extension_protocol_version: Version
    plugin_id: str
    plugin_root: str | None
    config: dict[str, Any]
    host: HostInfo | None = None
    features: tuple[str, ...] = ()


class DeclaredCapability(Struct, frozen=True, omit_defaults=True):
    """Something that the extension can do, in words of its own: nobody but its user understands `kind` and `params`."""

    kind: str
    name: str
    permissions: tuple[str, ...] = ()
    params: Any = None


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """All that an extension declares."""

    tools: tuple[Tool, ...] = ()
    providers: tuple[Provider, ...] = ()
    capabilities: tuple[DeclaredCapability, ...] = ()


NOTHING: Final = Capabilities()

if TYPE_CHECKING:
    Declared = Capabilities
    Features = tuple[str, ...]
else:
    Declared = Capabilities | tuple[()]  # many an old extension sends an empty array for an empty object
    Features = Any


class Initialized(Struct, frozen=True, omit_defaults=True):
    """The extension's answer. Features that are no array of strings count as none: old hosts have never read them."""

    protocol_version: Version
    capabilities: Declared = NOTHING
    features: Features = ()

    def __post_init__(self) -> None:
        force_setattr(self, "capabilities", read_declared(self.capabilities))
        force_setattr(self, "features", read_features(self.features))


def read_declared(value: object) -> object:
    return NOTHING if value == () else value


def read_features(value: object) -> object:
    if isinstance(value, tuple):  # as our own code gives them
        return cast("object", value)
    return tuple(value) if is_array(value) and all(isinstance(name, str) for name in value) else ()


INITIALIZE: Final = Method(
    "initialize",
    Initialize,
    Initialized,
    timeout=10.0,
    direction=Direction.TO_EXTENSION,
    summary="Opens the conversation: who the host is, and what the extension declares.",
)
SHUTDOWN: Final[Method[None, Any]] = Method(
    "shutdown", None, Any, timeout=0.5, direction=Direction.TO_EXTENSION, summary="Asks the extension to end."
)

UNREADABLE: Final = (*REFUSED, msgspec.DecodeError)


def read_initialized(raw: Raw) -> Initialized:
    """Returns the extension's answer; whether it keeps the rules is for `find_handshake_problems`.

    Raises:
        msgspec.ValidationError: it is not of this shape.
    """
    return msgspec.json.decode(raw, type=Initialized)


def parse_initialized(
    extension: str,
    raw: Raw,
    *,
    grants: Grants,
    config: Mapping[str, object],
    known: AbstractSet[str] | None = None,
) -> Initialized:
    """Returns the extension's answer once it has passed every rule; the arguments are as for `find_handshake_problems`.

    Raises:
        VersionMismatch: it speaks another version of the contract.
        BadCapabilities: it cannot be read, or breaks rules. All problems.
    """
    check_version(extension, raw)
    if problems := find_shape_problems(extension, raw):
        raise BadCapabilities(extension, problems)
    initialized = read_initialized(raw)
    if problems := find_handshake_problems(extension, initialized, grants=grants, config=config, known=known):
        raise BadCapabilities(extension, problems)
    return initialized


class Spoken(Struct):
    protocol_version: Any = None


def check_version(extension: str, raw: Raw) -> None:
    """Looks at the version before all else: an answer of another version may have any shape."""
    try:
        given = msgspec.json.decode(raw, type=Spoken).protocol_version
    except UNREADABLE:
        return  # what it is instead is told by whoever reads the whole
    if isinstance(given, int) and not isinstance(given, bool) and given != PROTOCOL_VERSION:
        because = f"Extension '{extension}' {unsupported(given)}"
        raise VersionMismatch(extension, because, given=given, supported=PROTOCOL_VERSION)


def unsupported(version: int) -> str:
    return f"initialize returned unsupported protocol_version {version} (supported: {PROTOCOL_VERSION})"


# -- the rules


def find_shape_problems(extension: str, raw: Raw) -> list[Problem]:
    """Returns all for which the extension's answer cannot be read at all, with pointers; none when it can."""
    try:
        read_initialized(raw)
    except UNREADABLE as error:
        return [
            (pointer, f"Invalid {INITIALIZE.name} response from extension '{extension}': {text}")
            for pointer, text in explain(raw, error)
        ]
    return []


def explain(raw: Raw, error: Exception) -> list[Problem]:
    from becket.typed.problems import find_problems, problem_of  # dear, and needed only now

    try:
        value: object = msgspec.json.decode(raw)
    except UNREADABLE:
        return [problem_of(error)]
    return find_problems(value, Initialized)


def find_handshake_problems(
    extension: str,
    initialized: Initialized,
    *,
    grants: Grants,
    config: Mapping[str, object],
    known: AbstractSet[str] | None = None,
) -> list[Problem]:
    """Returns all for which the contract refuses an extension, with pointers into its answer.

    The first text is the one that a host which stops at the first problem shows. `config` is what the extension was
    given; `known` are the permissions that exist, where the host has some of its own.
    """
    if initialized.protocol_version != PROTOCOL_VERSION:  # the rules below are those of our version alone
        return [("/protocol_version", f"Extension '{extension}' {unsupported(initialized.protocol_version)}")]
    declared = initialized.capabilities
    search = Search(extension)
    search.visit_tools(declared.tools)
    search.visit_providers(declared.providers)
    if declared.tools and not grants.allows("tools.register"):
        search.add("/tools", "registered tools but lacks permission 'tools.register'")
    if declared.providers and not grants.allows("providers.register"):
        search.add("/providers", "registered providers but lacks permission 'providers.register'")
    search.visit_capabilities(declared.capabilities, grants.allows, exists(known))
    search.visit_requirements(declared.providers, config)
    return search.problems


def exists(known: AbstractSet[str] | None) -> Callable[[str], bool]:
    from becket.methods.permissions import PERMISSIONS, RESERVED  # the host's alone; an extension starts without it

    names = (PERMISSIONS if known is None else known) | RESERVED
    return names.__contains__


class Search:
    """One walk through what an extension has declared, in the order in which the contract checks it."""

    def __init__(self, extension: str) -> None:
        self.problems: list[Problem] = []
        self._extension = extension

    def add(self, pointer: str, text: str) -> None:
        self.problems.append((f"/capabilities{pointer}", f"Extension '{self._extension}' {text}"))

    def visit_tools(self, tools: Sequence[Tool]) -> None:
        seen: set[str] = set()
        for index, tool in enumerate(tools):
            self._visit_tool(tool, f"/tools/{index}", seen)

    def _visit_tool(self, tool: Tool, at: str, seen: set[str]) -> None:
        name = trim(tool.name)
        problem = find_id_problem(name)
        if not name:
            self.add(f"{at}/name", "registered a tool with an empty tool name")
        elif problem is not None:
            self.add(f"{at}/name", f"registered tool '{name}' with invalid tool name: {problem.brief}")
        elif name in seen:
            self.add(f"{at}/name", f"registered duplicate tool name '{name}'")
        seen.add(name)
        if not trim(tool.description):
            self.add(f"{at}/description", f"registered tool '{name}' with an empty description")
        if not is_object(tool.input_schema):
            wrong = "invalid input_schema: input_schema must be a JSON object"
            self.add(f"{at}/input_schema", f"registered tool '{name}' with {wrong}")

    def visit_providers(self, providers: Sequence[Provider]) -> None:
        for index, provider in enumerate(providers):
            self._visit_provider(provider, f"/providers/{index}")

    def _visit_provider(self, provider: Provider, at: str) -> None:
        id = trim(provider.id)
        self._visit_provider_id(id, f"{at}/id")
        if not trim(provider.display_name):
            self.add(f"{at}/display_name", f"registered provider '{id}' with empty display_name")
        if not trim(provider.description):
            self.add(f"{at}/description", f"registered provider '{id}' with empty description")
        if not provider.models:
            self.add(f"{at}/models", f"registered provider '{id}' must declare at least one model")
        self._visit_models(provider.models, id, f"{at}/models")
        if provider.config_schema is not None and not is_object(provider.config_schema):
            wrong = "invalid config_schema: config_schema must be a JSON object"
            self.add(f"{at}/config_schema", f"registered provider '{id}' with {wrong}")

    def _visit_provider_id(self, id: str, at: str) -> None:
        problem = find_id_problem(id)
        if not id:
            self.add(at, "registered provider with empty provider id")
        elif problem is not None:
            self.add(at, f"registered provider '{id}' with invalid provider id: {problem.sentence}")
        elif not is_provider_id(id):
            self.add(at, f"registered provider '{id}' with invalid provider id")

    def _visit_models(self, models: Sequence[Model], provider: str, at: str) -> None:
        seen: set[str] = set()
        for index, model in enumerate(models):
            id = trim(model.id)
            problem = find_id_problem(id)
            wrong = None
            if not id:
                wrong = "empty model id"
            elif problem is not None:
                wrong = f"invalid model id '{id}': {problem.brief}"
            elif id in seen:
                wrong = f"duplicate model id '{id}'"
            if wrong is not None:
                self.add(f"{at}/{index}/id", f"registered provider '{provider}' with {wrong}")
            seen.add(id)

    def visit_capabilities(
        self, declared: Sequence[DeclaredCapability], allows: Callable[[str], bool], exists: Callable[[str], bool]
    ) -> None:
        for index, capability in enumerate(declared):
            at = f"/capabilities/{index}"
            kind = capability.kind
            invalid = f"capability '{kind}' invalid: "
            if not trim(kind):
                self.add(f"{at}/kind", f"{invalid}capability 'kind' must be non-empty")
            if not trim(capability.name):
                self.add(f"{at}/name", f"{invalid}capability 'name' must be non-empty")
            for number, name in enumerate(capability.permissions):
                where = f"{at}/permissions/{number}"
                if not exists(name):
                    self.add(where, f"{invalid}capability '{kind}' declares unknown permission '{name}'")
                elif not allows(name):
                    self.add(where, f"{invalid}capability '{kind}' requires permission '{name}' but it is not granted")

    def visit_requirements(self, providers: Sequence[Provider], config: Mapping[str, object]) -> None:
        seen: set[str] = set()
        for index, provider in enumerate(providers):
            at = f"/providers/{index}"
            self._visit_required(provider, f"{at}/config_schema/required", config)
            if provider.id in seen:
                runtime_id = provider_runtime_id(self._extension, provider.id)
                self.problems.append((f"/capabilities{at}/id", f"provider '{runtime_id}' is already registered"))
            seen.add(provider.id)

    def _visit_required(self, provider: Provider, at: str, config: Mapping[str, object]) -> None:
        schema = provider.config_schema
        required = schema.get("required") if is_object(schema) else None
        for number, key in enumerate(required if is_array(required) else ()):
            if not isinstance(key, str):
                wrong = "config_schema.required must contain only strings"
                self.add(f"{at}/{number}", f"provider '{provider.id}' {wrong}")
            elif key not in config:
                self.add(f"{at}/{number}", f"provider '{provider.id}' missing required provider config '{key}'")
