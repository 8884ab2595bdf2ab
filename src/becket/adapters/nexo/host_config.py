"""Loads `config/extensions.yaml` into the keyword arguments of `Host`.

The same is said of a `Host` by `arguments`. That a host logs changed manifests, and only that, is its `watch`; what the
file says of other transports and of the timeouts of a check-up is read and not used.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from becket._text import quote_path
from becket.adapters.nexo.admin import to_permission
from becket.adapters.nexo.messages import HOOK_METHODS
from becket.contract.hooks import HOOKS
from becket.conversion.files.reader import load_bytes
from becket.conversion.files.yaml import parse_yaml
from becket.conversion.problems import find_problems
from becket.errors import BadFile
from becket.host.starting.discovery import MAX_DEPTH, DiscoverySettings
from becket.host.starting.manifest import ManifestTable
from becket.permissions.grants import Grants

__all__ = ["NexoHostConfig", "load_extensions_yaml", "parse_extensions_yaml"]

CONFIG_FOLDER: Final = "config"
DEFAULT_PERMISSIONS: Final = frozenset({"tools.register", *(HOOKS[kind].permission for kind in HOOK_METHODS)})

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class NexoWatchTable(ManifestTable, frozen=True, kw_only=True):
    """Whether the host tells of manifests that have changed."""

    enabled: bool = False
    debounce_ms: Count = 500


class NexoDoctorTable(ManifestTable, frozen=True, kw_only=True):
    """How long a check-up waits."""

    stdio_timeout_ms: Count = 5_000
    nats_timeout_ms: Count = 5_000
    http_timeout_ms: Count = 3_000
    concurrency: Count = 4


class NexoExtensionTable(Struct, frozen=True, kw_only=True):
    """What is said of one extension; what else a version of that system has there is passed over."""

    capabilities_grant: tuple[Text, ...] = ()


class NexoHostConfig(ManifestTable, frozen=True, kw_only=True):
    """All that stands under `extensions`. Paths are absolute once it was loaded."""

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
        """The last level of folders that is looked into. That system counts the manifest itself as a level."""
        return min(max(self.max_depth, 1) - 1, MAX_DEPTH)

    @property
    def allowed_ids(self) -> tuple[str, ...] | None:
        """The ids that may be there, None where all may; an empty list allows all, as in that system."""
        if not self.enabled:
            return ()
        return self.allowlist or None

    def host_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments for `Host`.

        Whoever is granted a capability of administration is granted what every extension of that system may do as
        well."""
        return {
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


class NexoConfigFile(ManifestTable, frozen=True, kw_only=True):
    """The whole file."""

    extensions: NexoHostConfig


def load_extensions_yaml(path: str | os.PathLike[str]) -> NexoHostConfig:
    """Returns what a `config/extensions.yaml` says, with absolute paths.

    Raises:
        BadFile: it cannot be read or used; all problems, each with its JSON pointer.
    """
    config = parse_extensions_yaml(load_bytes(path), path)
    return replace(config, search_paths=resolve_paths(config.search_paths, path))


def resolve_paths(paths: tuple[str, ...], file: str | os.PathLike[str]) -> tuple[str, ...]:
    """Returns search paths of a file: they start from the folder of the host, in which `config` lies."""
    folder = os.path.dirname(os.path.abspath(file))
    base = os.path.dirname(folder) if os.path.basename(folder) == CONFIG_FOLDER else folder
    return tuple(os.path.normpath(os.path.join(base, one)) for one in paths)


def parse_extensions_yaml(data: bytes, path: str | os.PathLike[str]) -> NexoHostConfig:
    """Returns what the bytes of the file say; `path` is for the message.

    Raises:
        BadFile: they break rules; all problems, each with its JSON pointer.
    """
    value = parse_yaml(data, path)
    try:
        return msgspec.convert(value, NexoConfigFile).extensions
    except msgspec.ValidationError as error:
        raise BadFile(quote_path(path), find_problems(value, NexoConfigFile)) from error
