"""Reads `.synaps-plugin/plugin.json` into a `Manifest`, with SynapsCLI's own error texts.

Rules are checked in SynapsCLI's order, so that its own error text comes first; all further problems follow. The id is
derived from the name of the folder. Members without a counterpart in `Manifest` stay in the `Plugin` beside it: setup
scripts and prebuilt programs, which are never run or fetched, commands that the host runs itself (`host_commands`),
colours and keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from becket._text import quote_path, truncate
from becket.adapters.synaps.manifest import (
    Plugin,
    PluginCategory,
    PluginCommand,
    PluginConfig,
    PluginExtension,
    PluginHook,
    PluginSidecar,
)
from becket.contract.config import find_key_problem
from becket.contract.hooks import HOOKS, HookKind
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import find_id_problem, strip_whitespace
from becket.conversion.problems import find_problems, to_problem
from becket.errors import JSON_ERRORS, ManifestError, Problem
from becket.host.starting.becket_toml import parse_manifest
from becket.host.starting.manifest import (
    VARIABLE,
    VERSION,
    CommandEntry,
    ConfigEntry,
    ConfigType,
    HookEntry,
    InputMatch,
    Manifest,
    SettingsCategory,
    SettingsField,
    SidecarEntry,
    build_id,
)
from becket.host.starting.manifest_reader import FoundExtension, ManifestReader
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

__all__ = ["FILE_NAME", "READER", "SynapsManifestReader", "find_plugin_roots"]

FILE_NAME: Final = ".synaps-plugin/plugin.json"
SUPPORTED_VERSION: Final = 1
SIDECAR_VERSION: Final = 2
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 512

REGISTRATION_PERMISSIONS: Final = frozenset(
    {
        "audio.input",
        "audio.output",
        "config.subscribe",
        "config.write",
        "memory.read",
        "memory.write",
        "providers.register",
        "tools.register",
    }
)
"""Permissions that an extension may request without a hook."""


class SynapsManifestReader(ManifestReader):
    """The reader of `.synaps-plugin/plugin.json`."""

    dialect = "synaps"
    file_names = (FILE_NAME,)

    def read(self, data: bytes, path: str) -> FoundExtension | None:
        """Returns the extension of a plugin, or None if it has none.

        Raises:
            ManifestError: the file is invalid; lists all problems, each with its JSON pointer.
        """
        folder = os.path.dirname(os.path.dirname(path))
        name = os.path.basename(folder)
        table = parse_json(data, path)
        if table.get("extension") is None:
            return None
        plugin = parse_plugin(table, name, path)
        id = build_id(name)
        problems = [*find_rule_problems(plugin.extension, name)]
        if not id:
            problems.append(("", f"the name of its folder cannot be an id: {quote_path(name)}"))
        if problems:
            raise ManifestError(quote_path(path), problems)
        manifest = build_manifest(plugin, id)
        check_manifest(manifest, path)
        return FoundExtension(manifest=manifest, extra=plugin, unused=tuple(find_skills(plugin, folder)))

    def hint_for(self, problem: Problem) -> str:
        """Returns a hint for a problem of the file."""
        pointer, message = problem
        for beginning, hint in HINTS_BY_TEXT.items():
            if beginning in message:
                return hint
        return next((hint for beginning, hint in HINTS_BY_POINTER.items() if pointer.startswith(beginning)), "")


READER: Final = SynapsManifestReader()


# -- reading


def parse_json(data: bytes, path: str) -> dict[str, Any]:
    try:
        table: Any = msgspec.json.decode(data)
    except JSON_ERRORS as error:
        raise ManifestError(quote_path(path), [("", f"is not JSON: {truncate(str(error))}")]) from error
    if not is_object(table):
        raise ManifestError(quote_path(path), [("", "is not a JSON object")])
    return table


def parse_plugin(table: dict[str, Any], name: str, path: str) -> Plugin:
    version = (
        table["extension"].get("protocol_version", SUPPORTED_VERSION)
        if is_object(table["extension"])
        else SUPPORTED_VERSION
    )
    if isinstance(version, int) and not isinstance(version, bool) and version != SUPPORTED_VERSION:
        # The rules of an unknown version are unknown.
        text = f"Extension '{name}' uses unsupported protocol_version {version} (supported: {SUPPORTED_VERSION})"
        raise ManifestError(quote_path(path), [("/extension/protocol_version", text)])
    known = {**resolve_aliases(table), "id": name}
    try:
        return msgspec.convert(known, Plugin)
    except msgspec.ValidationError as error:
        problems = find_problems(known, Plugin) or [to_problem(error)]
        raise ManifestError(quote_path(path), problems) from error


def resolve_aliases(table: dict[str, Any]) -> dict[str, Any]:
    """Returns the table with the aliases of two members replaced by their names, and without nulls."""
    known = {name: value for name, value in table.items() if value is not None}
    if "help_entries" not in known and "help" in known:
        known["help_entries"] = known["help"]
    settings = known.get("settings")
    if is_object(settings) and "categories" not in settings and "category" in settings:
        category = settings["category"]
        known["settings"] = {**settings, "categories": category if is_array(category) else [category]}
    return known


# -- rules


def find_rule_problems(extension: PluginExtension, name: str) -> Iterator[Problem]:
    """Yields violated rules in SynapsCLI's order."""
    if not strip_whitespace(extension.command):
        yield "/extension/command", f"Extension '{name}' has empty command"
    if not extension.hooks and not REGISTRATION_PERMISSIONS & set(extension.permissions):
        required = "must subscribe to at least one hook or request a registration permission"
        yield "/extension", f"Extension '{name}' {required}"
    for number, permission in enumerate(extension.permissions):
        where = f"/extension/permissions/{number}"
        if permission in RESERVED_PERMISSIONS:
            yield where, f"Reserved extension permission is not implemented yet: {permission}"
        elif permission not in PERMISSIONS:
            yield where, f"Unknown extension permission: {truncate(permission)}"
    for number, hook in enumerate(extension.hooks):
        yield from find_hook_problems(hook, extension, name, f"/extension/hooks/{number}")
    for number, entry in enumerate(extension.config):
        yield from find_config_problems(entry, name, f"/extension/config/{number}")


def find_hook_problems(hook: PluginHook, extension: PluginExtension, name: str, pointer: str) -> Iterator[Problem]:
    if hook.hook not in HOOKS:
        yield f"{pointer}/hook", f"Unknown hook kind: '{truncate(hook.hook)}' in extension '{name}'"
        return
    rule = HOOKS[HookKind(hook.hook)]
    if rule.permission not in extension.permissions:
        lacks = f"lacks permission '{rule.permission}' required for hook '{hook.hook}'"
        yield f"{pointer}/hook", f"Extension '{name}' {lacks}"
    if hook.tool is not None and not rule.takes_tool_filter:
        yield f"{pointer}/tool", f"Extension '{name}' hook '{hook.hook}' does not allow a tool filter"


def find_config_problems(entry: PluginConfig, name: str, pointer: str) -> Iterator[Problem]:
    key = strip_whitespace(entry.key)
    if not key:
        yield f"{pointer}/key", f"Extension '{name}' declares config with empty key"
    elif any(letter in key for letter in "./ "):
        yield (
            f"{pointer}/key",
            f"Extension '{name}' config key '{truncate(key)}' must not contain dots, slashes, or spaces",
        )
    elif (problem := find_key_problem(key)) is not None:
        yield f"{pointer}/key", f"Extension '{name}' {problem}"


# -- unsupported commands


def find_skills(plugin: Plugin, folder: str) -> Iterator[Problem]:
    """Yields the commands that are skills, each with its file."""
    for number, command in enumerate(plugin.commands):
        if command.command is None and command.tool is None and command.skill is not None:
            file = command.find_skill(folder)
            where = (
                f": {quote_path(file)}" if file else f" (`{quote_path(truncate(command.skill))}`, which has no file)"
            )
            name = quote_path(truncate(command.name))
            yield f"/commands/{number}", f"the command `{name}` is not supported: it is a skill{where}"


# -- conversion


def build_manifest(plugin: Plugin, id: str) -> Manifest:
    extension = plugin.extension
    sidecar = None if plugin.provides is None else plugin.provides.sidecar
    return Manifest(
        id=id,
        version=parse_version(plugin.version),
        name=plugin.name[:MAX_NAME_LENGTH],
        description=truncate_description(plugin.description),
        command=(strip_whitespace(extension.command), *extension.args),
        dialect="synaps",
        permissions=tuple(dict.fromkeys(extension.permissions)),
        commands=tuple(build_command(command) for command in plugin.commands if is_runnable(command)),
        hooks=tuple(build_hook(hook) for hook in extension.hooks),
        config={strip_whitespace(entry.key): build_config(entry) for entry in extension.config},
        settings=tuple(build_category(category) for category in plugin.settings.categories),
        sidecar=UNSET if sidecar is None else build_sidecar(sidecar),
    )


def check_manifest(manifest: Manifest, path: str) -> None:
    """Raises `ManifestError` for values that native manifests do not allow either, such as a name with line breaks.

    Defaults are not checked against their types, as in SynapsCLI."""
    table: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(manifest))
    for entry in table.get("config", {}).values():
        entry.pop("default", None)
    parse_manifest(table, path)


def truncate_description(text: str | None) -> str:
    return (text or "")[:MAX_DESCRIPTION_LENGTH]


def is_runnable(command: PluginCommand) -> bool:
    """Returns whether a command can be run: by the extension, or by the host as a program or tool."""
    if command.is_extension_command:
        return True
    is_of_host = command.command is not None or command.tool is not None
    return is_of_host and find_id_problem(strip_whitespace(command.name)) is None


def build_command(command: PluginCommand) -> CommandEntry:
    return CommandEntry(
        name=command.name, description=truncate_description(command.description), subcommands=command.subcommands
    )


def build_category(category: PluginCategory) -> SettingsCategory:
    fields = tuple(
        SettingsField(
            key=field.key,
            label=field.label,
            editor=field.editor,
            options=field.options,
            help=field.help or "",
            numeric=field.numeric,
        )
        for field in category.fields
    )
    return SettingsCategory(id=category.id, label=category.label, fields=fields)


def parse_version(version: str | None) -> str:
    """Returns a semantic version; `0.0.0` for any other, because it cannot be compared."""
    return (
        version if version is not None and len(version) <= MAX_NAME_LENGTH and re.match(VERSION, version) else "0.0.0"
    )


def build_hook(hook: PluginHook) -> HookEntry:
    match = InputMatch()
    if hook.match is not None:
        contains, equals = hook.match.input_contains, hook.match.input_equals
        match = InputMatch(
            input_contains=UNSET if contains is None else contains, input_equals=UNSET if equals is None else equals
        )
    return HookEntry(hook=HookKind(hook.hook), tool=hook.tool or "", match=match)


TYPES: Final = {"string": ConfigType.STRING, "bool": ConfigType.BOOLEAN, "number": ConfigType.NUMBER}


def build_config(entry: PluginConfig) -> ConfigEntry:
    name = entry.secret_env or ""
    return ConfigEntry(
        type=TYPES[entry.type or "string"],
        description=truncate_description(entry.description),
        default=UNSET if entry.default is None else entry.default,
        required=entry.required,
        secret=bool(name),
        env=name if re.match(VARIABLE, name) else "",
    )


def build_sidecar(sidecar: PluginSidecar) -> SidecarEntry | msgspec.UnsetType:
    """Returns the sidecar for a manifest; `UNSET` for a version that hosts no longer support."""
    if sidecar.protocol_version < SIDECAR_VERSION or not strip_whitespace(sidecar.command):
        return UNSET
    label = "" if sidecar.lifecycle is None else sidecar.lifecycle.display_name or ""
    return SidecarEntry(command=(strip_whitespace(sidecar.command),), protocol=sidecar.protocol_version, label=label)


# -- hints

HINTS_BY_TEXT: Final = {
    "holds no extension": "skills and commands of a plugin without `extension` are for SynapsCLI itself",
    "it is a skill": "run it with SynapsCLI: a skill is a prompt for its agent",
    "is not JSON": "look for a superfluous comma or quotation mark",
    "unsupported protocol_version": "install compatible versions of the plugin and the host",
    "cannot be an id": "rename the folder, using only `a-z 0-9 . _ -`",
    "at least one hook": 'add a hook, or request a permission such as `"tools.register"`',
    "Unknown extension permission": f"permissions: {', '.join(sorted(PERMISSIONS))}",
    "Reserved extension permission": "remove it: no host can grant it",
    "Unknown hook kind": f"hooks: {', '.join(HOOKS)}",
    "required for hook": "add it to `permissions`, or remove the hook",
    "does not allow a tool filter": "remove `tool`: only tool hooks have a filter",
}
HINTS_BY_POINTER: Final = {
    "/extension/runtime": 'write `"runtime": "process"`: there is no other',
    "/extension/command": 'set the command: `"command": "python3", "args": ["main.py"]`',
    "/extension/config": 'use a key of one word: `"key": "endpoint"`',
    "/extension/hooks": "`match` can have only `input_contains` and `input_equals`",
}


# -- plugin folders

TRUE_VALUES: Final = frozenset({"1", "on", "true", "yes"})


def find_plugin_roots(variables: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """Returns the folders in which SynapsCLI searches for plugins; later folders take precedence.

    `variables` is the environment, which can disable the folder of the project."""
    home = variables.get("SYNAPS_BASE_DIR") or os.path.join(variables.get("HOME", "/"), ".synaps-cli")
    roots = [os.path.join(home, "plugins")]
    if variables.get("SYNAPS_DISABLE_PROJECT_PLUGINS", "").strip().lower() not in TRUE_VALUES:
        roots.append(os.path.join(cwd, ".synaps", "plugins"))
    return tuple(roots)
