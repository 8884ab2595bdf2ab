"""The configuration of a host: a TOML file that says what `Host` is to be started with.

The classes say what `schemas/host-config.schema.json` says; a test holds the two together. A misspelt member is a
problem, and all problems are told at once. What an extension may do is decided by the gate, with what is said here
above what its manifest says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from becket.contract.shapes import is_object
from becket.errors import BadFile, Problem
from becket.host.audit_log import AuditMode
from becket.host.configuration import Value
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.discovery import Candidate, DiscoverySettings, OperatorSettings
from becket.host.hook_plan import HookSettings
from becket.host.manifest import (
    PERMISSION,
    AskedLimits,
    AskedRestart,
    Command,
    ConfigKey,
    Environment,
    Id,
    Manifest,
    Permission,
    Table,
    Variable,
    Word,
    find_permission_problems,
    find_twins,
    members_of,
    say_plainly,
    tables_of,
    texts_of,
)
from becket.host.places import default_data_folder
from becket.host.restart import RestartPolicy
from becket.host.supervisor import Care
from becket.limits import DEFAULT_LIMITS
from becket.methods.permissions import PERMISSIONS, RESERVED, Grants
from becket.typed.problems import cut, find_problems
from becket.typed.schema import SchemaMode
from becket.typed.small_files import read_small_file, show_path
from becket.typed.spelling import did_you_mean
from becket.typed.toml_files import parse_toml

__all__ = [
    "ExtensionConfig",
    "HookConfig",
    "HostConfig",
    "LogConfig",
    "load_host_config",
    "parse_host_config",
    "settle_candidates",
]

PATH = r"\A[^\x00]*\Z"

FolderPath = Annotated[str, Meta(min_length=1, max_length=4096, pattern=PATH)]
Asking = Annotated[float, Meta(gt=0)] | Literal[False]


class LogConfig(Table, frozen=True, kw_only=True):
    """What the host writes to its stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    form: Literal["text", "json"] = "text"


class HookConfig(Table, frozen=True, kw_only=True):
    """In which order extensions are consulted at hooks, and which of them must not be skipped."""

    order: tuple[Id, ...] = ()
    required: tuple[Id, ...] = ()

    def settings(self) -> HookSettings:
        """Returns the same for `Host`."""
        return HookSettings(order=self.order, required=self.required)


class ExtensionConfig(Table, frozen=True, kw_only=True):
    """What holds for one extension, above what its manifest says."""

    enabled: bool = True
    allow: tuple[Permission, ...] | UnsetType = UNSET
    deny: tuple[Permission, ...] | UnsetType = UNSET
    allow_variables: tuple[Variable, ...] = ()
    config: dict[ConfigKey, Value] = field(default_factory=dict[str, Value])
    command: Command | UnsetType = UNSET
    dialect: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    folder: FolderPath | UnsetType = UNSET
    in_place: bool = False
    environment: Environment = Environment()
    env: dict[Variable, Word] = field(default_factory=dict[str, str])
    restart: AskedRestart = AskedRestart()
    limits: AskedLimits = AskedLimits()

    def grants(self) -> Grants | None:
        """Returns what is granted and denied here, None where nothing is said of it."""
        if self.allow is UNSET and self.deny is UNSET:
            return None
        allow, deny = (() if one is UNSET else one for one in (self.allow, self.deny))
        return Grants(frozenset(allow), frozenset(deny))

    def over(self, candidate: Candidate) -> Candidate:
        """Returns the candidate with what is said here in the place of what its manifest says."""
        manifest = candidate.manifest
        changed = replace(
            manifest,
            command=manifest.command if self.command is UNSET else self.command,
            dialect=manifest.dialect if self.dialect is UNSET else self.dialect,
            restart=AskedRestart(**{**members_of(manifest.restart), **members_of(self.restart)}),
            limits=AskedLimits(**{**members_of(manifest.limits), **members_of(self.limits)}),
        )
        folder = candidate.folder if self.folder is UNSET else self.folder
        is_operators = candidate.is_operators or self.command is not UNSET
        operator = OperatorSettings(
            environment=replace(self.environment, set=self.environment.set | self.env),
            allow_variables=self.allow_variables,
            in_place=self.in_place,
        )
        return replace(candidate, manifest=changed, folder=folder, is_operators=is_operators, operator=operator)


class HostConfig(Table, frozen=True, kw_only=True):
    """The whole file."""

    name: Id = "becket"
    roots: tuple[FolderPath, ...] = ()
    discovery: DiscoverySettings = DiscoverySettings()
    only: tuple[Id, ...] | UnsetType = UNSET
    disabled: tuple[Id, ...] = ()
    data: FolderPath | Literal[False] | UnsetType = UNSET
    development: bool = False
    ask: Asking = 60.0
    audit: AuditMode = AuditMode.USUAL
    audit_bytes: Annotated[int, Meta(ge=65536)] = 67108864
    check_tool_inputs: SchemaMode = SchemaMode.ENFORCE
    require_parent: bool = False
    watch: Literal["off", "report", "reload"] = "off"
    environment: Environment = Environment()
    inherit_environment: tuple[Literal["cigen", "morphir", "nexo"], ...] = ()
    restart: AskedRestart = AskedRestart()
    limits: AskedLimits = AskedLimits()
    most_limits: AskedLimits = AskedLimits()
    host_inbound_bytes: Annotated[int, Meta(ge=1048576)] = 268435456
    log: LogConfig = LogConfig()
    hooks: HookConfig = HookConfig()
    extensions: dict[Id, ExtensionConfig] = field(default_factory=dict[str, ExtensionConfig])
    x: dict[str, Any] = field(default_factory=dict[str, Any])

    def data_folder(self) -> Path | None:
        """Returns where the host keeps its files, None where it keeps none."""
        if self.data is False:
            return None
        return default_data_folder(self.name) if self.data is UNSET else Path(self.data)

    def arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments for `Host`. Whom to ask, and where logs go, is for whoever starts it."""
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
            "care": Care(restart=self.restart.over(RestartPolicy())),
            "limits": self.limits.over(DEFAULT_LIMITS).but(host_inbound_bytes=self.host_inbound_bytes),
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


# -- what it makes of those that were found


def settle_candidates(
    extensions: Mapping[str, ExtensionConfig], found: list[Candidate], notes: list[Diagnostic]
) -> list[Candidate]:
    """Returns the candidates with what is said of them, and those that need no manifest.

    What is wrong is added to `notes`."""
    settled = [extensions[one.id].over(one) if one.id in extensions else one for one in found]
    for id in sorted(extensions.keys() - {one.id for one in found}):
        extension = extensions[id]
        if extension.command is not UNSET and extension.folder is not UNSET:
            settled.append(extension.over(build_candidate(id, extension, extension.command, extension.folder)))
        elif extension.command is not UNSET:
            hint = "say in which `folder` its files are"
            notes.append(
                Diagnostic(
                    code=ProblemCode.SETTING_INVALID, extension=id, problem="has a command and no manifest", hint=hint
                )
            )
        elif extension.enabled:
            problem = "is in the configuration of the host, and was not found"
            hint = "look at its spelling, and at `roots`"
            notes.append(
                Diagnostic(
                    code=ProblemCode.NOT_FOUND, extension=id, problem=problem, hint=hint, severity=Severity.WARNING
                )
            )
    return settled


def build_candidate(id: str, extension: ExtensionConfig, command: tuple[str, ...], folder: str) -> Candidate:
    """Returns an extension without a manifest: it asks for what it is given."""
    permissions = () if extension.allow is UNSET else extension.allow
    manifest = Manifest(id=id, version="0.0.0", command=command, permissions=permissions)
    return Candidate(manifest, folder, folder, root=0)


# -- reading


def load_host_config(path: str | os.PathLike[str], *, known: AbstractSet[str] = PERMISSIONS) -> HostConfig:
    """Returns what the configuration file of a host says, with absolute paths. `known` are the permissions that exist.

    Raises:
        BadFile: it cannot be read or used; all problems, each with its JSON pointer.
    """
    config = parse_host_config(parse_toml(read_small_file(path), path), path, known)
    base = os.path.dirname(os.path.abspath(path))
    extensions = {
        id: extension if extension.folder is UNSET else replace(extension, folder=absolute(base, extension.folder))
        for id, extension in config.extensions.items()
    }
    return replace(
        config,
        roots=tuple(absolute(base, root) for root in config.roots),
        data=absolute(base, config.data) if isinstance(config.data, str) else config.data,
        extensions=extensions,
    )


def absolute(base: str, path: str) -> str:
    return os.path.realpath(os.path.join(base, path))


def parse_host_config(
    table: dict[str, Any], path: str | os.PathLike[str], known: AbstractSet[str] | None = None
) -> HostConfig:
    """Returns the configuration that a table holds; `path` is for the message. Without `known` any permission may be.

    Raises:
        BadFile: it breaks rules; all problems, each with its JSON pointer.
    """
    try:
        config = msgspec.convert(table, HostConfig)
    except msgspec.ValidationError as error:
        found = [*say_plainly(find_problems(table, HostConfig)), *find_rule_problems(table, known)]
        problems = [*map(suggest_name, found)]
        raise BadFile(show_path(path), problems) from error
    problems = [*find_rule_problems(table, known)]
    if problems:
        raise BadFile(show_path(path), problems)
    return config


TABLES: Final = (HostConfig, ExtensionConfig, LogConfig, HookConfig)


def suggest_name(problem: Problem) -> Problem:
    """Returns a problem with the name that was probably meant, where one is unknown."""
    pointer, message = problem
    names = {name for table in TABLES for name in table.__struct_encode_fields__}
    meant = did_you_mean(pointer.rpartition("/")[2], names) if message == "is unknown" else ""
    return (pointer, f"{message}: {meant}") if meant else problem


def find_rule_problems(table: dict[str, Any], known: AbstractSet[str] | None) -> Iterator[Problem]:
    """Yields what is wrong in a table of any shape; what is of another shape than it should be is passed over."""
    yield from find_twins(table.get("only"), "/only")
    yield from find_twins(table.get("disabled"), "/disabled")
    if is_object(hooks := table.get("hooks")):
        for name in ("order", "required"):
            yield from find_twins(hooks.get(name), f"/hooks/{name}")
    yield from find_twins(table.get("inherit_environment"), "/inherit_environment")
    for pointer, entry in tables_of(table.get("extensions"), "/extensions"):
        for name in ("allow", "deny"):
            yield from find_permission_problems(entry.get(name), f"{pointer}/{name}")
            for place, permission in texts_of(entry.get(name), f"{pointer}/{name}"):
                is_one = known is None or permission in known or permission in RESERVED
                if not is_one and re.match(PERMISSION, permission):  # else its shape is wrong, which is told already
                    yield place, f"is no permission: {cut(permission)}"
