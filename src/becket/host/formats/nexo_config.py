"""`config/extensions.yaml`: how a host of nexo is told where its extensions are and which of them it may start.

The same is said of a `Host` by `arguments`. That a host logs changed manifests, and only that, is its `watch`; what the
file says of other transports and of the timeouts of a check-up is read and not used.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from becket.contract.hooks import HOOKS
from becket.dialects.nexo.administration import permission_of
from becket.dialects.nexo.words import HOOK_METHODS
from becket.errors import BadFile
from becket.host.discovery import MOST_LEVELS, DiscoverySettings
from becket.host.manifest import Table
from becket.methods.permissions import Grants
from becket.typed.problems import find_problems
from becket.typed.small_files import read_small_file, show_path
from becket.typed.yaml_files import parse_yaml

__all__ = ["NexoHostConfig", "load_extensions_yaml", "parse_extensions_yaml"]

CONFIG_FOLDER: Final = "config"
USUAL: Final = frozenset({"tools.register", *(HOOKS[kind].permission for kind in HOOK_METHODS)})

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class Watch(Table, frozen=True, kw_only=True):
    """Whether the host tells of manifests that have changed."""

    enabled: bool = False
    debounce_ms: Count = 500


class Doctor(Table, frozen=True, kw_only=True):
    """How long a check-up waits."""

    stdio_timeout_ms: Count = 5_000
    nats_timeout_ms: Count = 5_000
    http_timeout_ms: Count = 3_000
    concurrency: Count = 4


class Entry(Struct, frozen=True, kw_only=True):
    """What is said of one extension; what else a version of that system has there is passed over."""

    capabilities_grant: tuple[Text, ...] = ()


class NexoHostConfig(Table, frozen=True, kw_only=True):
    """All that stands under `extensions`. Paths are absolute once it was loaded."""

    enabled: bool = True
    search_paths: tuple[Text, ...] = ("./extensions",)
    disabled: tuple[Text, ...] = ()
    allowlist: tuple[Text, ...] = ()
    ignore_dirs: tuple[Text, ...] = ("target", ".git", "node_modules", "dist", ".build")
    max_depth: Count = 3
    follow_links: bool = False
    watch: Watch = Watch()
    doctor: Doctor = Doctor()
    transport_defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])

    @property
    def depth(self) -> int:
        """The last level of folders that is looked into. That system counts the manifest itself as a level."""
        return min(max(self.max_depth, 1) - 1, MOST_LEVELS)

    @property
    def only(self) -> tuple[str, ...] | None:
        """The ids that may be there, None where all may; an empty list allows all, as in that system."""
        if not self.enabled:
            return ()
        return self.allowlist or None

    def arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments for `Host`.

        Whoever is granted a capability of administration is granted what every extension of that system may do as
        well."""
        return {
            "roots": self.search_paths if self.enabled else (),
            "discovery": DiscoverySettings(depth=self.depth, ignore=self.ignore_dirs, follow_links=self.follow_links),
            "only": self.only,
            "disabled": self.disabled,
            "watch": "report" if self.watch.enabled else None,
            "grants": {
                id: Grants(USUAL.union(map(permission_of, entry.capabilities_grant)))
                for id, entry in self.entries.items()
                if entry.capabilities_grant
            },
        }


class File(Table, frozen=True, kw_only=True):
    """The whole file."""

    extensions: NexoHostConfig


def load_extensions_yaml(path: str | os.PathLike[str]) -> NexoHostConfig:
    """Returns what a `config/extensions.yaml` says, with absolute paths.

    Raises:
        BadFile: it cannot be read or used; all problems, each with its JSON pointer.
    """
    config = parse_extensions_yaml(read_small_file(path), path)
    return replace(config, search_paths=absolute_paths(config.search_paths, path))


def absolute_paths(paths: tuple[str, ...], file: str | os.PathLike[str]) -> tuple[str, ...]:
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
        return msgspec.convert(value, File).extensions
    except msgspec.ValidationError as error:
        raise BadFile(show_path(path), find_problems(value, File)) from error
