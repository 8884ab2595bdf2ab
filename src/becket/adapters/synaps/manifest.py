"""Types of a SynapsCLI `plugin.json`.

`manifest_reader` reads and checks the file. Members that the host does not use are available to programs.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from becket.contract.settings import EditorKind

__all__ = [
    "Plugin",
    "PluginCategory",
    "PluginCommand",
    "PluginConfig",
    "PluginExtension",
    "PluginField",
    "PluginHook",
    "PluginHookMatch",
    "PluginProvides",
    "PluginSettings",
    "PluginSidecar",
    "PluginSidecarLifecycle",
]


MAX_IMPORTANCE = 100  # the minimum is -100


class PluginHookMatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions on the input of a tool; all must hold."""

    input_contains: str | None = None
    input_equals: Any = None


class PluginHook(Struct, frozen=True):
    """A hook that the extension subscribes to."""

    hook: str
    tool: str | None = None
    match: PluginHookMatch | None = None


class PluginConfig(Struct, frozen=True):
    """One key of the configuration. The type is informational: values are not checked against it."""

    key: str
    type: Literal["string", "bool", "number"] | None = None
    description: str | None = None
    required: bool = False
    default: Any = None
    secret_env: str | None = None


class PluginExtension(Struct, frozen=True, kw_only=True):
    """Command, permissions, hooks and configuration of the extension."""

    protocol_version: int = 1
    runtime: Literal["process"]
    command: str
    args: tuple[str, ...] = ()
    setup: str | None = None
    prebuilt: Any = None
    permissions: tuple[str, ...] = ()
    hooks: tuple[PluginHook, ...] = ()
    config: tuple[PluginConfig, ...] = ()
    theme_tokens: dict[str, str] = {}
    deferred: Any = None


class PluginCommand(Struct, frozen=True):
    """A command: of the extension, or one that the host runs as a program, a tool or a prompt."""

    name: str
    description: str | None = None
    interactive: bool = False
    subcommands: tuple[str, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    tool: str | None = None
    input: Any = None
    skill: str | None = None
    prompt: str | None = None

    @property
    def is_extension_command(self) -> bool:
        """Whether the extension runs it."""
        return self.command is None and self.tool is None and self.skill is None

    def find_skill(self, folder: str) -> str | None:
        """Returns the file of its skill in the folder of the plugin, or None."""
        root = os.path.normpath(folder)
        path = os.path.normpath(os.path.join(root, "skills", (self.skill or "").rpartition(":")[2], "SKILL.md"))
        is_inside = path.startswith(os.path.join(root, "")) and "\0" not in path
        return path if is_inside and os.path.isfile(path) else None


class PluginField(Struct, frozen=True):
    """A field of the settings for one key of the configuration."""

    key: str
    label: str
    editor: EditorKind = "text"
    options: tuple[str, ...] = ()
    default: Any = None
    help: str | None = None
    numeric: bool = False


class PluginCategory(Struct, frozen=True):
    """A page of the host's settings."""

    id: str
    label: str
    fields: tuple[PluginField, ...] = ()


class PluginSettings(Struct, frozen=True):
    """The pages of the host's settings."""

    categories: tuple[PluginCategory, ...] = ()


class PluginSidecarLifecycle(Struct, frozen=True):
    """Where the sidecar is shown, and its importance, clamped to -100 to 100."""

    command: str | None = None
    settings_category: str | None = None
    display_name: str | None = None
    importance: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "importance", max(-MAX_IMPORTANCE, min(self.importance, MAX_IMPORTANCE)))


class PluginSidecar(Struct, frozen=True):
    """A long-running program beside the extension."""

    command: str
    protocol_version: int = 1
    setup: str | None = None
    model: Any = None
    lifecycle: PluginSidecarLifecycle | None = None


class PluginProvides(Struct, frozen=True):
    """What the plugin provides besides its extension."""

    sidecar: PluginSidecar | None = None


class Plugin(Struct, frozen=True, kw_only=True):
    """The whole file; `id` is the name of its folder, which SynapsCLI uses as the id."""

    id: str = ""
    name: str = ""
    version: str | None = None
    description: str | None = None
    compatibility: Any = None
    extension: PluginExtension
    commands: tuple[PluginCommand, ...] = ()
    settings: PluginSettings = PluginSettings()
    provides: PluginProvides | None = None
    keybinds: Any = None
    help_entries: Any = None

    @property
    def setup(self) -> str | None:
        """The script of the plugin that gets or builds its program."""
        return self.extension.setup

    @property
    def host_commands(self) -> tuple[PluginCommand, ...]:
        """The commands that a host runs itself: programs, tools and skills."""
        return tuple(command for command in self.commands if not command.is_extension_command)
