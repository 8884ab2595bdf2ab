"""Roder manifest and configuration types, their rules, and the manifest checksum.

Pure: takes tables and bytes. The checksum only shows that both peers have the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from becket.adapters.roder.messages.services import Service, ToolProvider, ToolSpec
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import strip_whitespace
from becket.errors import Problem

__all__ = [
    "API_VERSION",
    "FILE_NAME",
    "PROTOCOL_VERSION",
    "EventFilter",
    "LoadedManifest",
    "ProcessExtension",
    "RoderLaunch",
    "RoderManifest",
    "find_manifest_problems",
    "manifest_checksum",
]

FILE_NAME: Final = "roder-extension.toml"
PROTOCOL_VERSION: Final = "0.2.0"
API_VERSION: Final = "0.1.0"  # of the services; a manifest declares the required version

Milliseconds = Annotated[int, Meta(ge=0, le=2**53)]  # the largest integer of a double


class EventFilter(Struct, frozen=True):
    """Selects events for an extension: those whose kind begins with one of these prefixes; none without prefixes."""

    kinds: tuple[str, ...] = ()

    def matches(self, kind: str) -> bool:
        """Returns whether events of this kind are selected."""
        return kind.startswith(self.kinds)


class RoderLaunch(Struct, frozen=True, kw_only=True):
    """How an extension is started. Paths are relative to the folder of the manifest."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = {}
    startup_timeout_ms: Milliseconds | None = None
    event_filter_kinds: tuple[str, ...] = ()


class RoderManifest(Struct, frozen=True, kw_only=True):
    """Content of a manifest. `api_version` is a requirement: `^0.1`."""

    id: str
    name: str
    version: str
    api_version: str
    description: str | None = None
    provides: tuple[Service, ...]
    required_capabilities: tuple[str, ...] = ()
    launch: RoderLaunch | None = None


class ProcessExtension(Struct, frozen=True, kw_only=True):
    """One `[[process_extensions]]` of a host's configuration: an extension, and how it is started here.

    `env` are all variables that it gets besides `PATH`. Paths are relative to the host's folder."""

    id: str
    enabled: bool = True
    manifest: str
    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = {}
    startup_timeout_ms: Milliseconds = 10_000
    event_filter: EventFilter = EventFilter()


class LoadedManifest(Struct, frozen=True, kw_only=True):
    """A valid manifest, the checksum of its file, and additions of the host's configuration.

    `folder` is the folder of the file; `cwd` is sent to the extension as written in the configuration."""

    manifest: RoderManifest
    checksum: str
    event_filter: EventFilter = EventFilter()
    cwd: str | None = None
    folder: str | None = None

    @classmethod
    def from_bytes(cls, manifest: RoderManifest, data: bytes, **more: Any) -> LoadedManifest:
        """Returns the manifest with the checksum of its file."""
        return cls(manifest=manifest, checksum=manifest_checksum(data), **more)


FNV_OFFSET: Final = 0xCBF2_9CE4_8422_2325
FNV_PRIME: Final = 0x0000_0100_0000_01B3
UINT64_MAX: Final = 2**64 - 1


def manifest_checksum(data: bytes) -> str:
    """Returns the FNV-1a checksum of 64 bits of a file, as 16 hexadecimal digits."""
    number = FNV_OFFSET
    for byte in data:
        number = (number ^ byte) * FNV_PRIME & UINT64_MAX
    return f"{number:016x}"


# -- rules


def find_manifest_problems(manifest: RoderManifest) -> list[Problem]:
    """Returns all violations of Roder's rules, each with its JSON pointer; Roder itself reports only the first."""
    if not strip_whitespace(manifest.id):
        return [("/id", "process extension manifest is missing an id")]
    owner = f"process extension {manifest.id}"
    problems: list[Problem] = []
    if not manifest.provides:
        problems.append(("/provides", f"{owner} declares no provided services"))
    problems += find_version_problems(manifest.api_version, owner)
    for index, service in enumerate(manifest.provides):
        if isinstance(service, ToolProvider):
            problems += find_provider_problems(service, owner, f"/provides/{index}/tools")
    return problems


def find_version_problems(requirement: str, owner: str) -> Iterator[Problem]:
    from becket.adapters.roder.rust_debug import format_text
    from becket.adapters.roder.version_requirement import allows, parse_requirement

    shown = format_text(requirement)
    major, minor, patch = map(int, API_VERSION.split("."))
    try:
        if not allows(parse_requirement(requirement), (major, minor, patch)):
            needs = f"requires extension API {shown} but the host supports {API_VERSION}"
            yield "/api_version", f"{owner} {needs}"
    except ValueError as error:
        yield "/api_version", f"{owner} has invalid api_version {shown}: {error}"


def find_provider_problems(provider: ToolProvider, owner: str, pointer: str) -> Iterator[Problem]:
    from becket.adapters.roder.rust_debug import format_text

    of = f"{owner} tool provider {provider.id}"
    if not provider.tools:
        yield pointer, f"{of} declares no tools"
    seen: set[str] = set()
    for index, tool in enumerate(provider.tools):
        at = f"{pointer}/{index}"
        if not strip_whitespace(tool.name):
            yield f"{at}/name", f"{of} declares a tool with an empty name"
        elif tool.name in seen:
            yield f"{at}/name", f"{of} declares tool {format_text(tool.name)} more than once"
        seen.add(tool.name)
        yield from find_schema_problems(tool, owner, f"{at}/parameters")


def find_schema_problems(tool: ToolSpec, owner: str, pointer: str) -> Iterator[Problem]:
    from becket.adapters.roder.rust_debug import format_text

    schema = tool.parameters
    if not is_object(schema) or schema.get("type") != "object":
        must = 'must be a JSON schema object (declare `type = "object"`)'
        yield pointer, f"{owner} tool {format_text(tool.name)} parameters {must}"
    elif not is_json(schema):
        yield pointer, f"{owner} tool {format_text(tool.name)} parameters hold a date or a time, which JSON has not"


def is_json(value: object) -> bool:
    if is_object(value):
        return all(map(is_json, value.values()))
    if is_array(value):
        return all(map(is_json, value))
    return value is None or isinstance(value, str | int | float)
