"""`HostConfig`: the TOML configuration file of a host, parsed and validated.

The classes repeat `schemas/host-config.schema.json`; a test compares the two. A misspelt member is a problem, and all
problems are reported at once. These settings override an extension's manifest; the gate decides about permissions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from becket._text import quote_path, truncate
from becket.contract.argument_checks import check_list
from becket.contract.json_narrowing import is_object
from becket.conversion.files.reader import load_bytes
from becket.conversion.files.toml import parse_toml
from becket.conversion.problems import find_problems
from becket.conversion.suggestions import did_you_mean
from becket.errors import BadFile, Problem
from becket.host.audit_log import AuditMode
from becket.host.data_dir import default_data_dir
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.hook_plan import HookSettings
from becket.host.restart import RestartPolicy
from becket.host.starting.candidate import Candidate, OperatorSettings
from becket.host.starting.configuration import ConfigScalar
from becket.host.starting.discovery import DiscoverySettings
from becket.host.starting.environment import list_inheriting_dialects
from becket.host.starting.manifest import (
    PERMISSION,
    ArgumentText,
    Command,
    ConfigKey,
    Environment,
    Id,
    LimitOverrides,
    Manifest,
    ManifestTable,
    Permission,
    RestartOverrides,
    Variable,
    set_members,
)
from becket.host.starting.manifest_problems import (
    explain_patterns,
    find_duplicates,
    find_permission_problems,
    tables_of,
    texts_of,
)
from becket.host.supervision_policy import SupervisionPolicy
from becket.json_schema import SchemaMode
from becket.limits import DEFAULT_LIMITS
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

__all__ = [
    "ExtensionConfig",
    "HookConfig",
    "HostConfig",
    "LogConfig",
    "apply_extension_configs",
    "load_host_config",
    "parse_host_config",
]

PATH = r"\A[^\x00]*\Z"

FolderPath = Annotated[str, Meta(min_length=1, max_length=4096, pattern=PATH)]
PromptTimeout = Annotated[float, Meta(gt=0)] | Literal[False]


class LogConfig(ManifestTable, frozen=True, kw_only=True):
    """What the host writes to its stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    form: Literal["text", "json"] = "text"


class HookConfig(ManifestTable, frozen=True, kw_only=True):
    """In which order extensions are consulted at hooks, and which of them are required."""

    order: tuple[Id, ...] = ()
    required: tuple[Id, ...] = ()

    def settings(self) -> HookSettings:
        """Returns the same for `Host`."""
        return HookSettings(order=self.order, required=self.required)


class ExtensionConfig(ManifestTable, frozen=True, kw_only=True):
    """The settings of one extension, which override its manifest."""

    enabled: bool = True
    allow: tuple[Permission, ...] | UnsetType = UNSET
    deny: tuple[Permission, ...] | UnsetType = UNSET
    allow_variables: tuple[Variable, ...] = ()
    config: dict[ConfigKey, ConfigScalar] = field(default_factory=dict[str, ConfigScalar])
    command: Command | UnsetType = UNSET
    dialect: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    folder: FolderPath | UnsetType = UNSET
    in_place: bool = False
    environment: Environment = Environment()
    env: dict[Variable, ArgumentText] = field(default_factory=dict[str, str])
    restart: RestartOverrides = RestartOverrides()
    limits: LimitOverrides = LimitOverrides()

    def __post_init__(self) -> None:
        check_list(self.allow, "allow", "permissions")
        check_list(self.deny, "deny", "permissions")
        check_list(self.allow_variables, "allow_variables", "variables")
        check_list(self.command, "command", "a program and its arguments")

    def grants(self) -> Grants | None:
        """Returns the grants and denials of this file, None if it has none."""
        if self.allow is UNSET and self.deny is UNSET:
            return None
        allow, deny = (() if one is UNSET else one for one in (self.allow, self.deny))
        return Grants(frozenset(allow), frozenset(deny))

    def apply_to(self, candidate: Candidate) -> Candidate:
        """Returns the candidate with its manifest overridden by these settings."""
        manifest = candidate.manifest
        changed = replace(
            manifest,
            command=manifest.command if self.command is UNSET else self.command,
            dialect=manifest.dialect if self.dialect is UNSET else self.dialect,
            restart=RestartOverrides(**{**set_members(manifest.restart), **set_members(self.restart)}),
            limits=LimitOverrides(**{**set_members(manifest.limits), **set_members(self.limits)}),
        )
        folder = candidate.folder if self.folder is UNSET else self.folder
        is_operators = candidate.is_operator_defined or self.command is not UNSET
        operator = OperatorSettings(
            environment=replace(self.environment, set=self.environment.set | self.env),
            allow_variables=self.allow_variables,
            in_place=self.in_place,
        )
        return replace(candidate, manifest=changed, folder=folder, is_operator_defined=is_operators, operator=operator)


class HostConfig(ManifestTable, frozen=True, kw_only=True):
    """The configuration of a host: what its TOML file has, with the defaults for the rest; see `load_host_config`."""

    name: Id = "becket"
    roots: tuple[FolderPath, ...] = ()
    discovery: DiscoverySettings = DiscoverySettings()
    only: tuple[Id, ...] | UnsetType = UNSET
    disabled: tuple[Id, ...] = ()
    data: FolderPath | Literal[False] | UnsetType = UNSET
    development: bool = False
    ask: PromptTimeout = 60.0
    audit: AuditMode = AuditMode.USUAL
    audit_bytes: Annotated[int, Meta(ge=65536)] = 67108864
    check_tool_inputs: SchemaMode = SchemaMode.ENFORCE
    require_parent: bool = False
    watch: Literal["off", "report", "reload"] = "off"
    live_trace: bool = True
    environment: Environment = Environment()
    inherit_environment: tuple[str, ...] = ()
    restart: RestartOverrides = RestartOverrides()
    limits: LimitOverrides = LimitOverrides()
    most_limits: LimitOverrides = LimitOverrides()
    host_inbound_bytes: Annotated[int, Meta(ge=1048576)] = 268435456
    log: LogConfig = LogConfig()
    hooks: HookConfig = HookConfig()
    extensions: dict[Id, ExtensionConfig] = field(default_factory=dict[str, ExtensionConfig])
    x: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        check_list(self.roots, "roots", "folders")
        check_list(self.only, "only", "ids")
        check_list(self.disabled, "disabled", "ids")
        check_list(self.inherit_environment, "inherit_environment", "dialects")

    def data_folder(self) -> Path | None:
        """Returns the data directory of the host, None if it has none."""
        if self.data is False:
            return None
        return default_data_dir(self.name) if self.data is UNSET else Path(self.data)

    def arguments(self) -> dict[str, Any]:
        """Returns the values by the names of `Host` and `HostSettings`, except `ask`, `log` and `live_trace`, which
        `becket run` uses."""
        off = {id for id, extension in self.extensions.items() if not extension.enabled}
        granted = {id: extension.grants() for id, extension in self.extensions.items()}
        return {
            "roots": self.roots,
            "name": self.name,
            "data": self.data_folder(),
            "only": None if self.only is UNSET else self.only,
            "disabled": {*self.disabled, *off},
            "development": self.development,
            "discovery": self.discovery,
            "audit": self.audit,
            "watch": None if self.watch == "off" else self.watch,
            "supervision": SupervisionPolicy(restart=self.restart.apply_to(RestartPolicy())),
            "limits": self.limits.apply_to(DEFAULT_LIMITS).but(host_inbound_bytes=self.host_inbound_bytes),
            "grants": {id: grants for id, grants in granted.items() if grants is not None},
            "config": {id: extension.config for id, extension in self.extensions.items() if extension.config},
            "environment": self.environment,
            "inherit_environment": self.inherit_environment,
            "most_limits": self.most_limits,
            "schemas": self.check_tool_inputs,
            "audit_bytes": self.audit_bytes,
            "require_parent": self.require_parent,
            "extensions": self.extensions,
            "hooks": self.hooks.settings(),
        }


# -- application to candidates


def apply_extension_configs(
    extensions: Mapping[str, ExtensionConfig], found: list[Candidate], notes: list[Diagnostic]
) -> list[Candidate]:
    """Returns the candidates with their settings applied, and those without a manifest.

    Problems are added to `notes`."""
    settled = [extensions[one.id].apply_to(one) if one.id in extensions else one for one in found]
    for id in sorted(extensions.keys() - {one.id for one in found}):
        extension = extensions[id]
        if extension.command is not UNSET and extension.folder is not UNSET:
            settled.append(extension.apply_to(build_candidate(id, extension, extension.command, extension.folder)))
        elif extension.command is not UNSET:
            hint = "set `folder` to the folder of its files"
            notes.append(
                Diagnostic(
                    code=ProblemCode.SETTING_INVALID, extension=id, problem="has a command and no manifest", hint=hint
                )
            )
        elif extension.enabled:
            problem = "is in the configuration of the host, and was not found"
            hint = "check its spelling, and `roots`"
            notes.append(
                Diagnostic(
                    code=ProblemCode.NOT_FOUND, extension=id, problem=problem, hint=hint, severity=Severity.WARNING
                )
            )
    return settled


def build_candidate(id: str, extension: ExtensionConfig, command: tuple[str, ...], folder: str) -> Candidate:
    """Returns an extension without a manifest: it requests what it is granted."""
    permissions = () if extension.allow is UNSET else extension.allow
    manifest = Manifest(id=id, version="0.0.0", command=command, permissions=permissions)
    return Candidate(manifest, folder, folder, root=0)


# -- reading


def load_host_config(path: str | os.PathLike[str], *, known: AbstractSet[str] = PERMISSIONS) -> HostConfig:
    """Returns the configuration file of a host, with absolute paths. `known` are the permissions that exist.

    Raises:
        BadFile: it cannot be read or used; all problems, each with its JSON pointer.
    """
    config = parse_host_config(parse_toml(load_bytes(path), path), path, known)
    base = os.path.dirname(os.path.abspath(path))
    extensions = {
        id: extension if extension.folder is UNSET else replace(extension, folder=resolve_path(base, extension.folder))
        for id, extension in config.extensions.items()
    }
    return replace(
        config,
        roots=tuple(resolve_path(base, root) for root in config.roots),
        data=resolve_path(base, config.data) if isinstance(config.data, str) else config.data,
        extensions=extensions,
    )


def resolve_path(base: str, path: str) -> str:
    return os.path.realpath(os.path.join(base, path))


def parse_host_config(
    table: dict[str, Any], path: str | os.PathLike[str], known: AbstractSet[str] | None = None
) -> HostConfig:
    """Returns the configuration in a table; `path` is for the message. Without `known` any permission is allowed.

    Raises:
        BadFile: it breaks rules; all problems, each with its JSON pointer.
    """
    try:
        config = msgspec.convert(table, HostConfig)
    except msgspec.ValidationError as error:
        found = [*explain_patterns(find_problems(table, HostConfig)), *find_rule_problems(table, known)]
        problems = [*map(suggest_name, found)]
        raise BadFile(quote_path(path), problems) from error
    problems = [*find_rule_problems(table, known)]
    if problems:
        raise BadFile(quote_path(path), problems)
    return config


TABLES: Final = (HostConfig, ExtensionConfig, LogConfig, HookConfig)


def suggest_name(problem: Problem) -> Problem:
    """Returns a problem with a suggestion for an unknown name."""
    pointer, message = problem
    names = {name for table in TABLES for name in table.__struct_encode_fields__}
    meant = did_you_mean(pointer.rpartition("/")[2], names) if message == "is unknown" else ""
    return (pointer, f"{message}: {meant}") if meant else problem


def find_rule_problems(table: dict[str, Any], known: AbstractSet[str] | None) -> Iterator[Problem]:
    """Yields the rule violations of a table of any shape; members of a wrong type are skipped."""
    yield from find_duplicates(table.get("only"), "/only")
    yield from find_duplicates(table.get("disabled"), "/disabled")
    if is_object(hooks := table.get("hooks")):
        for name in ("order", "required"):
            yield from find_duplicates(hooks.get(name), f"/hooks/{name}")
    yield from find_inheriting_problems(table.get("inherit_environment"), "/inherit_environment")
    for pointer, entry in tables_of(table.get("extensions"), "/extensions"):
        for name in ("allow", "deny"):
            yield from find_permission_problems(entry.get(name), f"{pointer}/{name}")
            for place, permission in texts_of(entry.get(name), f"{pointer}/{name}"):
                is_one = known is None or permission in known or permission in RESERVED_PERMISSIONS
                if not is_one and re.match(PERMISSION, permission):  # else its type is wrong, which is reported already
                    yield place, f"is no permission: {truncate(permission)}"


def find_inheriting_problems(value: Any, pointer: str) -> Iterator[Problem]:
    """Yields a problem for each dialect that `Host` would refuse, and for duplicates."""
    yield from find_duplicates(value, pointer)
    for place, name in texts_of(value, pointer):
        if name not in (possible := list_inheriting_dialects()):  # imports all adapters, which most files do not need
            yield place, f"must be one of {', '.join(possible)}: {truncate(name)}"
