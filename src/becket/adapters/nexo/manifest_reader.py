"""Reads a nexo `plugin.toml`, and the search folders of `config/extensions.yaml`.

Both are strict: unknown members are problems, and all problems are reported at once. As in nexo, the tools and hooks of
a manifest are not compared with what the running extension offers; but only hooks that the manifest names are called.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from becket import __version__
from becket._text import quote_path, truncate
from becket.adapters.nexo.admin import to_permission
from becket.adapters.nexo.hook_mapping import to_hook_kinds
from becket.adapters.nexo.host_config import parse_extensions_yaml, resolve_paths
from becket.adapters.nexo.manifest import NexoManifest
from becket.contract.hooks import HOOKS
from becket.contract.json_narrowing import is_array, is_object
from becket.conversion.files.yaml import parse_yaml
from becket.conversion.problems import find_problems
from becket.errors import BadFile, ManifestError, Problem
from becket.host.starting.becket_toml import parse_table
from becket.host.starting.environment import is_dangerous_name
from becket.host.starting.manifest import (
    ARGUMENT,
    PROGRAM,
    SERVER,
    VARIABLE,
    VERSION,
    Environment,
    Manifest,
    ManifestTable,
    Requirements,
)
from becket.host.starting.manifest_problems import explain_patterns, find_duplicates
from becket.host.starting.manifest_reader import (
    ExtensionList,
    FoundExtension,
    ManifestReader,
    ScopedFiles,
    SearchFolder,
)

__all__ = ["FILE_NAME", "READER", "RESERVED_IDS", "NexoManifestReader"]

FILE_NAME: Final = "plugin.toml"
LIST_NAME: Final = "config/extensions.yaml"
RESERVED_IDS: Final = frozenset({"agent", "browser", "core", "email", "heartbeat", "memory", "telegram", "whatsapp"})
CAPABILITY_LISTS: Final = ("tools", "hooks", "channels", "providers", "pollers")

ID = r"\A[a-z][a-z0-9_-]{0,63}\Z"
NAME = r"\A[a-z][a-z0-9_]{0,63}\Z"
URL = r"\Ahttps?://[^/\s:?#]+(:[0-9]+)?(/.*)?\Z"
TEXT = r"\S"
COMMAND = r"\A[^\x00]*[^\s\x00][^\x00]*\Z"

Name = Annotated[str, Meta(pattern=NAME)]
Word = Annotated[str, Meta(pattern=ARGUMENT)]
Version = Annotated[str, Meta(pattern=VERSION, max_length=64)]
Filled = Annotated[str, Meta(pattern=TEXT)]


# -- tables of the file


class NexoPluginTable(ManifestTable, frozen=True, kw_only=True):
    """Identity of the extension."""

    id: Annotated[str, Meta(pattern=ID)]
    version: Version
    name: str = ""
    description: Annotated[str, Meta(max_length=512)] = ""
    min_agent_version: Version | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-(2**31), lt=2**31)] = 0


class NexoAdminTable(ManifestTable, frozen=True, kw_only=True):
    """Required and optional admin capabilities."""

    required: tuple[Name, ...] = ()
    optional: tuple[Name, ...] = ()


class NexoCapabilitiesTable(ManifestTable, frozen=True, kw_only=True):
    """What the extension offers."""

    tools: tuple[Name, ...] = ()
    hooks: tuple[Name, ...] = ()
    channels: tuple[Name, ...] = ()
    providers: tuple[Name, ...] = ()
    pollers: tuple[Name, ...] = ()
    admin: NexoAdminTable = NexoAdminTable()


class NexoStdio(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="stdio"):
    """A program that the host starts."""

    command: Annotated[str, Meta(pattern=COMMAND)]
    args: tuple[Word, ...] = ()


class NexoNats(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="nats"):
    """A program that is reached through a NATS broker."""

    subject_prefix: Filled


class NexoHttp(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="http"):
    """A program that is reached over HTTP."""

    url: Annotated[str, Meta(pattern=URL)]


NexoTransport: TypeAlias = NexoStdio | NexoNats | NexoHttp


class NexoRequiresTable(ManifestTable, frozen=True, kw_only=True):
    """Programs and variables that the extension needs to start."""

    bins: tuple[Annotated[str, Meta(pattern=PROGRAM)], ...] = ()
    env: tuple[Filled, ...] = ()


class NexoContextTable(ManifestTable, frozen=True, kw_only=True):
    """Whether the session is sent to the extension with each call."""

    passthrough: bool = False


class NexoMetaTable(ManifestTable, frozen=True, kw_only=True):
    """Author and license."""

    author: str = ""
    license: str = ""


class NexoPluginToml(ManifestTable, frozen=True, kw_only=True):
    """The whole file."""

    plugin: NexoPluginTable
    transport: NexoTransport
    capabilities: NexoCapabilitiesTable = NexoCapabilitiesTable()
    requires: NexoRequiresTable = NexoRequiresTable()
    context: NexoContextTable = NexoContextTable()
    outbound_bindings: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    mcp_servers: dict[Annotated[str, Meta(pattern=SERVER)], dict[str, Any]] = field(
        default_factory=dict[str, dict[str, Any]]
    )
    meta: NexoMetaTable = NexoMetaTable()


# -- reading


class NexoManifestReader(ManifestReader):
    """The reader of `plugin.toml` and `config/extensions.yaml`.

    `agent_version` is the version of the host; if it is not a semantic version, no extension is too new. `reserved` are
    further reserved ids. `capabilities` are the admin capabilities of the host: an extension requests those that it
    declares as optional."""

    dialect = "nexo"
    file_names = (FILE_NAME,)
    list_names = (LIST_NAME,)

    def __init__(
        self,
        *,
        agent_version: str = __version__,
        reserved: Collection[str] = (),
        capabilities: Collection[str] = (),
    ) -> None:
        self._agent_version = agent_version
        self._reserved = RESERVED_IDS.union(reserved)
        self._capabilities = frozenset(capabilities)

    def read(self, data: bytes, path: str) -> FoundExtension:
        """Returns the extension of a `plugin.toml`.

        Raises:
            ManifestError: the file is invalid; lists all problems, each with its JSON pointer.
        """
        table = parse_table(data, path)
        try:
            plugin = msgspec.convert(table, NexoPluginToml)
        except msgspec.ValidationError as error:
            problems = [*explain_nexo_patterns(find_problems(table, NexoPluginToml)), *self._find_rule_problems(table)]
            raise ManifestError(quote_path(path), problems) from error
        problems = [*self._find_rule_problems(table)]
        if problems or not isinstance(plugin.transport, NexoStdio):
            raise ManifestError(quote_path(path), problems)
        return self._build_extension(plugin, plugin.transport)

    def _build_extension(self, plugin: NexoPluginToml, program: NexoStdio) -> FoundExtension:
        about, offers = plugin.plugin, plugin.capabilities
        needs = (*offers.admin.required, *(one for one in offers.admin.optional if one in self._capabilities))
        kinds, _ = to_hook_kinds(offers.hooks)
        permissions = ["tools.register", *(HOOKS[kind].permission for kind in kinds), *map(to_permission, needs)]
        manifest = Manifest(
            id=about.id,
            version=about.version,
            name=about.name.strip()[:64],
            description=about.description,
            authors=(plugin.meta.author,) if plugin.meta.author else (),
            license=plugin.meta.license,
            command=(program.command, *program.args),
            dialect=self.dialect,
            permissions=tuple(dict.fromkeys(permissions)),
            requires=Requirements(bins=plugin.requires.bins, env=plugin.requires.env),
            environment=Environment(passed=find_passed(plugin.requires.env)),
            mcp_servers=plugin.mcp_servers,
        )
        extra = NexoManifest(
            tools=offers.tools,
            hooks=offers.hooks,
            channels=offers.channels,
            providers=offers.providers,
            pollers=offers.pollers,
            priority=about.priority,
            passthrough=plugin.context.passthrough,
            min_agent_version=None if about.min_agent_version is UNSET else about.min_agent_version,
            outbound_bindings=plugin.outbound_bindings,
            required_capabilities=offers.admin.required,
            optional_capabilities=offers.admin.optional,
        )
        return FoundExtension(manifest=manifest, extra=extra)

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the search folders of a `config/extensions.yaml`; none for a file of another kind.

        Raises:
            ManifestError: the file is invalid; lists all problems, each with its JSON pointer.
        """
        try:
            whole = parse_yaml(data, path)
            if not is_object(whole) or "extensions" not in whole:
                return ExtensionList()
            config = parse_extensions_yaml(data, path)
        except BadFile as error:
            raise ManifestError(error.path, error.problems) from error
        folders = resolve_paths(config.search_paths, path) if config.enabled else ()
        return ExtensionList(
            search_folders=tuple(
                SearchFolder(folder=one, depth=config.discovery_depth, ignore=config.ignore_dirs) for one in folders
            ),
            disabled=config.disabled,
            only=config.allowed_ids,
        )

    def hint_for(self, problem: Problem) -> str:
        """Returns a hint for a problem of the file, or an empty string."""
        return HINTS.get(problem[0], "")

    # -- rules beyond types

    def _find_rule_problems(self, table: dict[str, Any]) -> Iterator[Problem]:
        plugin, capabilities = table.get("plugin"), table.get("capabilities", {})
        if is_object(plugin):
            yield from self._find_plugin_problems(plugin)
        if is_object(capabilities):
            yield from find_capability_problems(capabilities)
        transport = table.get("transport")
        kind = transport.get("kind") if is_object(transport) else None
        if kind in ("nats", "http"):
            yield "/transport/kind", f"unsupported transport `{kind}`: this host starts programs (`stdio`)"

    def _find_plugin_problems(self, plugin: dict[str, Any]) -> Iterator[Problem]:
        id, least = plugin.get("id"), plugin.get("min_agent_version")
        if isinstance(id, str) and id in self._reserved:
            yield "/plugin/id", f"`{id}` is reserved for native plugins"
        if isinstance(least, str) and is_newer(least, self._agent_version):
            yield "/plugin/min_agent_version", f"needs agent version {truncate(least)}, this is {self._agent_version}"


def find_passed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the required variables that an extension gets after consent."""
    return tuple(name for name in names if re.match(VARIABLE, name) and not is_dangerous_name(name))


def find_capability_problems(capabilities: dict[str, Any]) -> Iterator[Problem]:
    lists = {name: capabilities.get(name) for name in CAPABILITY_LISTS}
    if not any(is_array(names) and names for names in lists.values()):
        yield "/capabilities", "must name at least one tool, hook, channel, provider or poller"
    for name, names in lists.items():
        yield from find_duplicates(names, f"/capabilities/{name}")


READER: Final = NexoManifestReader()


# -- versions


def is_newer(version: str, other: str) -> bool:
    """Returns whether a version is newer than another; False if one is not a semantic version."""
    return version_sort_key(version) > version_sort_key(other) if re.match(VERSION, other) else False


def version_sort_key(version: str) -> tuple[Any, ...]:
    """Returns a sort key for versions: a release is above its previews, and numbers are below words."""
    if not re.match(VERSION, version):
        return ()
    core, _, preview = version.partition("+")[0].partition("-")
    words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in preview.split(".") if preview)
    return (*map(int, core.split(".")), not preview, words)


# -- messages


def explain_nexo_patterns(problems: list[Problem]) -> list[Problem]:
    """Returns the problems with a sentence in place of each regular expression."""
    return [(pointer, PATTERN_MESSAGES.get(message, message)) for pointer, message in explain_patterns(problems)]


PATTERN_MESSAGES: Final = {
    truncate(f"expected `str` matching regex {pattern!r}"): sentence
    for pattern, sentence in {
        ID: "is not an id: 1 to 64 of `a-z 0-9 _ -`, the first a letter",
        NAME: "is not a name: 1 to 64 of `a-z 0-9 _`, the first a letter",
        URL: "is not a URL such as `https://host:port/path`",
        TEXT: "must not be blank",
        COMMAND: "must not be blank or contain a zero byte",
    }.items()
}
HINTS: Final = {
    "/transport": 'write `kind = "stdio"` (not `type`) and a `command`',
    "/transport/kind": 'write `kind = "stdio"` and a `command`',
    "/plugin/id": "use an id such as `weather`",
    "/plugin/version": 'add a version: `version = "0.1.0"`',
    "/plugin/min_agent_version": "install compatible versions of the extension and the host",
    "/capabilities": 'list what it offers: `tools = ["get"]`',
}
