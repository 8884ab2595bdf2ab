"""Checks an extension's handshake response against the contract. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from becket.contract.handshake import INITIALIZE, PROTOCOL_VERSION, DeclaredCapability, Initialized
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.models import Model, Provider
from becket.contract.names import find_id_problem, is_provider_id, provider_runtime_id, strip_whitespace
from becket.contract.tools import Tool
from becket.errors import JSON_ERRORS, BadCapabilities, Problem, VersionMismatch

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from becket.permissions.grants import Grants

__all__ = [
    "CapabilityChecker",
    "decode_initialized",
    "find_handshake_problems",
    "find_shape_problems",
    "parse_initialized",
]

MAX_HOOKS: Final = 64  # each may search the input of every tool call


def decode_initialized(raw: Raw) -> Initialized:
    """Decodes the handshake response; `find_handshake_problems` checks it.

    Raises:
        msgspec.ValidationError: it does not have the required shape.
    """
    return msgspec.json.decode(raw, type=Initialized)


def parse_initialized(
    extension: str,
    raw: Raw,
    *,
    grants: Grants,
    config: Mapping[str, object],
    known: AbstractSet[str] | None = None,
    reads_hooks: bool = True,
) -> Initialized:
    """Decodes and checks the handshake response; the arguments are those of `find_handshake_problems`. Without
    `reads_hooks` announced hooks are dropped: hosts of other systems ignore them.

    Raises:
        VersionMismatch: the extension uses another version of the contract.
        BadCapabilities: the response is malformed or violates the contract. Lists all problems.
    """
    check_version(extension, raw)
    try:
        initialized = decode_initialized(raw)
    except JSON_ERRORS as error:
        raise BadCapabilities(extension, find_shape_problems(extension, raw)) from error
    if not reads_hooks:
        initialized = replace(initialized, capabilities=replace(initialized.capabilities, hooks=()))
    if problems := find_handshake_problems(extension, initialized, grants=grants, config=config, known=known):
        raise BadCapabilities(extension, problems)
    return initialized


class HandshakeVersion(Struct):
    protocol_version: Any = None


def check_version(extension: str, raw: Raw) -> None:
    """Checks the version before decoding the rest: a response of another version may have any shape."""
    try:
        version = msgspec.json.decode(raw, type=HandshakeVersion).protocol_version
    except JSON_ERRORS:
        return  # reported when the whole response is decoded
    if isinstance(version, int) and not isinstance(version, bool) and version != PROTOCOL_VERSION:
        raise VersionMismatch(extension, format_version_problem(version), given=version, supported=PROTOCOL_VERSION)


def format_version_problem(version: int) -> str:
    return f"initialize returned unsupported protocol_version {version} (supported: {PROTOCOL_VERSION})"


# -- rules


def find_shape_problems(extension: str, raw: Raw) -> list[Problem]:
    """Returns all problems that prevent decoding the response, with pointers."""
    try:
        decode_initialized(raw)
    except JSON_ERRORS as error:
        return [
            (pointer, f"Invalid {INITIALIZE.name} response from extension '{extension}': {text}")
            for pointer, text in find_decode_problems(raw, error)
        ]
    return []


def find_decode_problems(raw: Raw, error: Exception) -> list[Problem]:
    from becket.conversion.problems import find_problems, to_problem  # slow to import, and rarely needed

    try:
        value: object = msgspec.json.decode(raw)
    except JSON_ERRORS:
        return [to_problem(error)]
    return find_problems(value, Initialized)


def find_handshake_problems(
    extension: str,
    initialized: Initialized,
    *,
    grants: Grants,
    config: Mapping[str, object],
    known: AbstractSet[str] | None = None,
) -> list[Problem]:
    """Returns all violations of the contract, with pointers into the response.

    The first text is the one shown by a host that stops at the first problem. `config` is what the extension was
    sent; `known` are the existing permissions, where the host has some of its own."""
    if initialized.protocol_version != PROTOCOL_VERSION:  # the rules below are those of our version alone
        return [("/protocol_version", format_version_problem(initialized.protocol_version))]
    declared = initialized.capabilities
    search = CapabilityChecker(extension)
    search.check_tools(declared.tools)
    search.check_providers(declared.providers)
    if declared.tools and not grants.allows("tools.register"):
        search.add("/tools", "registered tools but lacks permission 'tools.register'")
    if declared.providers and not grants.allows("providers.register"):
        search.add("/providers", "registered providers but lacks permission 'providers.register'")
    search.check_capabilities(declared.capabilities, grants.allows, build_permission_test(known))
    search.visit_hooks(declared.hooks, grants.allows)
    search.check_required_config(declared.providers, config)
    return search.problems


def build_permission_test(known: AbstractSet[str] | None) -> Callable[[str], bool]:
    from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

    names = (PERMISSIONS if known is None else known) | RESERVED_PERMISSIONS
    return names.__contains__


class CapabilityChecker:
    """Checks the declarations of an extension, in the order of the contract."""

    def __init__(self, extension: str) -> None:
        self.problems: list[Problem] = []
        self._extension = extension

    def add(self, pointer: str, text: str) -> None:
        self.problems.append((f"/capabilities{pointer}", text))

    def check_tools(self, tools: Sequence[Tool]) -> None:
        seen: set[str] = set()
        for index, tool in enumerate(tools):
            self._check_tool(tool, f"/tools/{index}", seen)

    def _check_tool(self, tool: Tool, at: str, seen: set[str]) -> None:
        name = strip_whitespace(tool.name)
        problem = find_id_problem(name)
        if not name:
            self.add(f"{at}/name", "registered a tool with an empty tool name")
        elif problem is not None:
            self.add(f"{at}/name", f"registered tool '{name}' with invalid tool name: {problem.brief}")
        elif name in seen:
            self.add(f"{at}/name", f"registered duplicate tool name '{name}'")
        seen.add(name)
        if not strip_whitespace(tool.description):
            self.add(f"{at}/description", f"registered tool '{name}' with an empty description")
        if not is_object(tool.input_schema):
            wrong = "invalid input_schema: input_schema must be a JSON object"
            self.add(f"{at}/input_schema", f"registered tool '{name}' with {wrong}")
        if tool.output_schema is not None and not is_object(tool.output_schema):
            wrong = "invalid output_schema: output_schema must be a JSON object or null"
            self.add(f"{at}/output_schema", f"registered tool '{name}' with {wrong}")

    def check_providers(self, providers: Sequence[Provider]) -> None:
        for index, provider in enumerate(providers):
            self._check_provider(provider, f"/providers/{index}")

    def _check_provider(self, provider: Provider, at: str) -> None:
        id = strip_whitespace(provider.id)
        self._check_provider_id(id, f"{at}/id")
        if not strip_whitespace(provider.display_name):
            self.add(f"{at}/display_name", f"registered provider '{id}' with empty display_name")
        if not strip_whitespace(provider.description):
            self.add(f"{at}/description", f"registered provider '{id}' with empty description")
        if not provider.models:
            self.add(f"{at}/models", f"registered provider '{id}' must declare at least one model")
        self._check_models(provider.models, id, f"{at}/models")
        if provider.config_schema is not None and not is_object(provider.config_schema):
            wrong = "invalid config_schema: config_schema must be a JSON object"
            self.add(f"{at}/config_schema", f"registered provider '{id}' with {wrong}")

    def _check_provider_id(self, id: str, at: str) -> None:
        problem = find_id_problem(id)
        if not id:
            self.add(at, "registered provider with empty provider id")
        elif problem is not None:
            self.add(at, f"registered provider '{id}' with invalid provider id: {problem.sentence}")
        elif not is_provider_id(id):
            self.add(at, f"registered provider '{id}' with invalid provider id")

    def _check_models(self, models: Sequence[Model], provider: str, at: str) -> None:
        seen: set[str] = set()
        for index, model in enumerate(models):
            id = strip_whitespace(model.id)
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

    def check_capabilities(
        self, declared: Sequence[DeclaredCapability], allows: Callable[[str], bool], exists: Callable[[str], bool]
    ) -> None:
        for index, capability in enumerate(declared):
            at = f"/capabilities/{index}"
            kind = capability.kind
            invalid = f"capability '{kind}' invalid: "
            if not strip_whitespace(kind):
                self.add(f"{at}/kind", f"{invalid}capability 'kind' must be non-empty")
            if not strip_whitespace(capability.name):
                self.add(f"{at}/name", f"{invalid}capability 'name' must be non-empty")
            for number, name in enumerate(capability.permissions):
                where = f"{at}/permissions/{number}"
                if not exists(name):
                    self.add(where, f"{invalid}capability '{kind}' declares unknown permission '{name}'")
                elif not allows(name):
                    self.add(where, f"{invalid}capability '{kind}' requires permission '{name}' but it is not granted")

    def visit_hooks(self, hooks: Sequence[object], allows: Callable[[str], bool]) -> None:
        if not hooks:
            return
        from becket.contract.hooks import HOOKS, HookSubscription, find_hook_problem
        from becket.conversion.problems import find_problems  # slow to import, and rarely needed

        if len(hooks) > MAX_HOOKS:
            self.add("/hooks", f"announced {len(hooks)} hooks, the limit is {MAX_HOOKS}")
            return
        for index, announced in enumerate(hooks):
            at = f"/hooks/{index}"
            if not isinstance(announced, HookSubscription):
                for pointer, text in find_problems(announced, HookSubscription):
                    self.add(f"{at}{pointer}", f"announced an invalid hook: {text}")
                continue
            kind, permission = announced.hook, HOOKS[announced.hook].permission
            problem = find_hook_problem(kind, announced.match)
            if problem is not None:
                self.add(f"{at}/match/tool", f"announced an invalid hook: {problem}")
            if not allows(permission):
                remedy = "request it in `permissions` of the manifest, and grant it"
                self.add(at, f"announced hook '{kind}' but lacks permission '{permission}' ({remedy})")

    def check_required_config(self, providers: Sequence[Provider], config: Mapping[str, object]) -> None:
        seen: set[str] = set()
        for index, provider in enumerate(providers):
            at = f"/providers/{index}"
            self._check_required_keys(provider, f"{at}/config_schema/required", config)
            if provider.id in seen:
                runtime_id = provider_runtime_id(self._extension, provider.id)
                self.problems.append((f"/capabilities{at}/id", f"provider '{runtime_id}' is already registered"))
            seen.add(provider.id)

    def _check_required_keys(self, provider: Provider, at: str, config: Mapping[str, object]) -> None:
        schema = provider.config_schema
        required = schema.get("required") if is_object(schema) else None
        for number, key in enumerate(required if is_array(required) else ()):
            if not isinstance(key, str):
                wrong = "config_schema.required must contain only strings"
                self.add(f"{at}/{number}", f"provider '{provider.id}' {wrong}")
            elif key not in config:
                self.add(f"{at}/{number}", f"provider '{provider.id}' missing required provider config '{key}'")
