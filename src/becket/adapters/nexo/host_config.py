"""Loads `config/extensions.yaml` into the keyword arguments of `Host`.

`watch` only reports changed manifests. Settings of other transports and of the doctor's timeouts are read but not used.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from becket._deprecated import RenamedMember
from becket._text import quote_path
from becket.adapters.nexo.admin import to_permission
from becket.adapters.nexo.messages import HOOK_METHODS
from becket.contract.hooks import HOOKS
from becket.conversion.files.reader import load_bytes
from becket.conversion.files.yaml import parse_yaml
from becket.conversion.problems import find_problems
from becket.errors import BadFile
from becket.host.host_settings import group_arguments
from becket.host.starting.discovery import MAX_DEPTH, DiscoverySettings
from becket.host.starting.manifest import ManifestTable
from becket.permissions.grants import Grants

__all__ = ["NexoHostConfig", "load_extensions_yaml", "parse_extensions_yaml"]

CONFIG_FOLDER: Final = "config"
DEFAULT_PERMISSIONS: Final = frozenset({"tools.register", *(HOOKS[kind].permission for kind in HOOK_METHODS)})

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class NexoWatchTable(ManifestTable, frozen=True, kw_only=True):
    """Whether the host reports changed manifests."""

    enabled: bool = False
    debounce_ms: Count = 500


class NexoDoctorTable(ManifestTable, frozen=True, kw_only=True):
    """Timeouts of nexo's doctor."""

    stdio_timeout_ms: Count = 5_000
    nats_timeout_ms: Count = 5_000
    http_timeout_ms: Count = 3_000
    concurrency: Count = 4


class NexoExtensionTable(Struct, frozen=True, kw_only=True):
    """Settings of one extension; unknown members are ignored."""

    capabilities_grant: tuple[Text, ...] = ()


class NexoHostConfig(ManifestTable, frozen=True, kw_only=True):
    """The table `extensions`. `load_extensions_yaml` makes its paths absolute."""

    enabled: bool = True
    search_paths: tuple[Text, ...] = ("./extensions",)
    disabled: tuple[Text, ...] = ()
    allowlist: tuple[Text, ...] = ()
    ignore_dirs: tuple[Text, ...] = ("target", ".git", "node_modules", "dist", ".build")
    max_depth: Count = 3
    follow_links: bool = False
    watch: NexoWatchTable = NexoWatchTable()
    doctor: NexoDoctorTable = NexoDoctorTable()
    transport_defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: dict[str, NexoExtensionTable] = field(default_factory=dict[str, NexoExtensionTable])

    @property
    def discovery_depth(self) -> int:
        """The depth of the search for manifests. nexo counts the manifest itself as a level."""
        return min(max(self.max_depth, 1) - 1, MAX_DEPTH)

    @property
    def allowed_ids(self) -> tuple[str, ...] | None:
        """The allowed ids, or None if all are allowed; an empty list allows all, as in nexo."""
        if not self.enabled:
            return ()
        return self.allowlist or None

    def host_arguments(self) -> dict[str, Any]:
        """Returns the arguments of `Host`.

        An extension with admin capabilities is also granted the default permissions of nexo extensions."""
        values: dict[str, Any] = {
            "roots": self.search_paths if self.enabled else (),
            "discovery": DiscoverySettings(
                depth=self.discovery_depth, ignore=self.ignore_dirs, follow_links=self.follow_links
            ),
            "only": self.allowed_ids,
            "disabled": self.disabled,
            "watch": "report" if self.watch.enabled else None,
            "grants": {
                id: Grants(DEFAULT_PERMISSIONS.union(map(to_permission, entry.capabilities_grant)))
                for id, entry in self.entries.items()
                if entry.capabilities_grant
            },
        }
        return group_arguments(values)

    arguments = RenamedMember("host_arguments")
    only = RenamedMember("allowed_ids")
    depth = RenamedMember("discovery_depth")


class NexoConfigFile(ManifestTable, frozen=True, kw_only=True):
    """The whole file."""

    extensions: NexoHostConfig


def load_extensions_yaml(path: str | os.PathLike[str]) -> NexoHostConfig:
    """Returns the content of a `config/extensions.yaml`, with absolute paths.

    Raises:
        BadFile: it cannot be read or is invalid; lists all problems, each with its JSON pointer.
    """
    config = parse_extensions_yaml(load_bytes(path), path)
    return replace(config, search_paths=resolve_paths(config.search_paths, path))


def resolve_paths(paths: tuple[str, ...], file: str | os.PathLike[str]) -> tuple[str, ...]:
    """Returns absolute search paths; relative ones start from the folder of the host, which contains `config`."""
    folder = os.path.dirname(os.path.abspath(file))
    base = os.path.dirname(folder) if os.path.basename(folder) == CONFIG_FOLDER else folder
    return tuple(os.path.normpath(os.path.join(base, one)) for one in paths)


def parse_extensions_yaml(data: bytes, path: str | os.PathLike[str]) -> NexoHostConfig:
    """Returns the content of the file; `path` is for error messages.

    Raises:
        BadFile: the file is invalid; lists all problems, each with its JSON pointer.
    """
    value = parse_yaml(data, path)
    try:
        return msgspec.convert(value, NexoConfigFile).extensions
    except msgspec.ValidationError as error:
        raise BadFile(quote_path(path), find_problems(value, NexoConfigFile)) from error
