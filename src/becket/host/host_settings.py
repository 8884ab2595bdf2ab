"""`HostSettings`: what few programs set about a host, and the defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, TypedDict, Unpack
from warnings import warn

from msgspec import Struct, field
from msgspec.structs import replace

from becket.contract.argument_checks import check_list
from becket.conversion.suggestions import did_you_mean
from becket.host.audit_log import ROTATE_AT, AuditMode
from becket.host.command_lines import CommandLines
from becket.host.extension_set import WatchMode
from becket.host.hook_plan import HookSettings
from becket.host.hooks import ConfirmHook
from becket.host.host_config import ExtensionConfig, HostConfig
from becket.host.starting.discovery import DEFAULT_SETTINGS, DiscoverySettings
from becket.host.starting.environment import list_inheriting_dialects
from becket.host.starting.launch import WrapCommand
from becket.host.starting.manifest import Environment, LimitOverrides
from becket.host.supervision_policy import SupervisionPolicy
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.json_schema import SchemaMode
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.policies import Policy

__all__ = ["HostKeywords", "HostSettings", "SettingChanges", "add_keywords", "group_arguments"]

MAX_LISTED: Final = 3  # keywords that a warning lists; the rest is counted


class SettingChanges(TypedDict, total=False):
    """Some members of `HostSettings`, for type checkers."""

    name: str
    config: Mapping[str, Mapping[str, object]]
    confirm: ConfirmHook | None
    policy: Policy | None
    only: Collection[str] | None
    disabled: Collection[str]
    watch: WatchMode | None
    development: bool
    audit: AuditMode | str
    supervision: SupervisionPolicy
    limits: Limits
    timeouts: Timeouts
    discovery: DiscoverySettings
    variables: Mapping[str, str] | None
    environment: Environment
    inherit_environment: Collection[str]
    most_limits: LimitOverrides
    schemas: SchemaMode | str
    audit_bytes: int
    require_parent: bool
    extensions: Mapping[str, ExtensionConfig]
    dialects: Mapping[str, object]
    wrap: WrapCommand | None
    hooks: HookSettings | None
    live_trace: bool
    command_lines: CommandLines | None


class HostKeywords(SettingChanges, total=False):
    """Keyword arguments of `Host` in 0.1 that are settings now, for type checkers."""

    care: SupervisionPolicy
    mcp: object


class HostSettings(Struct, frozen=True, kw_only=True):
    """Settings of a host that few programs need: `Host(["extensions"], settings=HostSettings(watch="reload"))`.

    `name` is that of the host, and of its data directory. `config` has values by extension and key. `only` and
    `disabled` select among the discovered extensions, and `extensions` overrides the manifest of one. `confirm` prompts
    for a hook's confirmation, and `policy` must confirm every call. `watch` reports changed files, or reloads their
    extensions; with `development` these need no new consent. `variables` are those that can be passed on, by default
    those of this program. `environment` is for all extensions, besides what each requests; those of the dialects in
    `inherit_environment` get the variables that hosts of their own system pass on. `most_limits` is the maximum that an
    extension may request. `dialects` has the settings of adapters, by dialect. `wrap` puts another program in front of
    each command: a tracer, or a sandbox. `hooks` sets the order in which extensions are consulted, and which of them
    are required. `require_parent` refuses calls of an extension that name no parent request while it handles one of
    another extension. With `live_trace` programs of the same user may follow its traffic (`becket trace --follow`).
    `command_lines` builds the `becket` commands in hints; by default with the roots and the data directory of the host.

    Raises:
        ValueError: a value is none of those that are allowed.
        TypeError: a list is a single str.
    """

    name: str = "becket"
    config: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    confirm: ConfirmHook | None = None
    policy: Policy | None = None
    only: Collection[str] | None = None
    disabled: Collection[str] = ()
    watch: WatchMode | None = None
    development: bool = False
    audit: AuditMode | str = AuditMode.USUAL
    supervision: SupervisionPolicy = SupervisionPolicy()
    limits: Limits = DEFAULT_LIMITS
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    discovery: DiscoverySettings = DEFAULT_SETTINGS
    variables: Mapping[str, str] | None = None
    environment: Environment = Environment()
    inherit_environment: Collection[str] = ()
    most_limits: LimitOverrides = LimitOverrides()
    schemas: SchemaMode | str = SchemaMode.ENFORCE
    audit_bytes: int = ROTATE_AT
    require_parent: bool = False
    extensions: Mapping[str, ExtensionConfig] = field(default_factory=dict[str, ExtensionConfig])
    dialects: Mapping[str, object] = field(default_factory=dict[str, object])
    wrap: WrapCommand | None = None
    hooks: HookSettings | None = None
    live_trace: bool = False
    command_lines: CommandLines | None = None

    def __post_init__(self) -> None:
        AuditMode(self.audit)
        SchemaMode(self.schemas)
        check_list(self.only, "only", "ids")
        check_list(self.disabled, "disabled", "ids")
        check_list(self.inherit_environment, "inherit_environment", "dialects")
        check_inheriting(self.inherit_environment)

    @classmethod
    def from_config(cls, config: HostConfig, /, **changes: Unpack[SettingChanges]) -> HostSettings:
        """Returns the settings of a configuration file, in which each of the changes replaces the value of the file:
        `Host(config, settings=HostSettings.from_config(config, watch="report"))`.

        Raises:
            TypeError: there is no such setting.
        """
        settings: HostSettings = group_arguments(config.arguments())["settings"]
        return replace(settings, **changes)


def group_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `Host` for these values by name: those that are settings become `settings`."""
    settings = {name: value for name, value in values.items() if name in HostSettings.__struct_fields__}
    others = {name: value for name, value in values.items() if name not in settings}
    return {**others, "settings": HostSettings(**settings)}


RENAMED_KEYWORDS = {"care": "supervision", "mcp": "dialects"}  # `dialects` has the settings of MCP under its name


def add_keywords(settings: HostSettings, keywords: Mapping[str, Any], *, has_config: bool) -> HostSettings:
    """Returns the settings with these, which were keyword arguments of `Host` in 0.1.

    With `has_config` the settings are those of a configuration file, which the advice of the warning must not drop.

    Raises:
        TypeError: `Host` never had such a keyword.
    """
    changes: dict[str, Any] = {}
    for old, value in keywords.items():
        name = RENAMED_KEYWORDS.get(old, old)
        if name not in HostSettings.__struct_fields__:
            meant = did_you_mean(old, HostSettings.__struct_fields__)
            raise TypeError(f"`Host` has no keyword `{old}`" + (f", and no setting: {meant}" if meant else ""))
        if old == "mcp":
            changes[name] = {**settings.dialects, old: value}
        elif value is not None:  # which meant the default
            changes[name] = value
    if keywords:
        warn(describe_keywords(keywords, has_config=has_config), DeprecationWarning, stacklevel=3)
    return replace(settings, **changes)


def describe_keywords(keywords: Collection[str], *, has_config: bool) -> str:
    """Returns the text of the warning about keywords of 0.1; of many it lists some, first those that were renamed."""
    listed = sorted(keywords, key=lambda name: name not in RENAMED_KEYWORDS)[:MAX_LISTED]
    more = ["..."] if len(keywords) > len(listed) else []
    old = ", ".join([*(f"{name}=..." for name in listed), *more])
    new = ", ".join([*(f"{RENAMED_KEYWORDS.get(name, name)}=..." for name in listed), *more])
    if has_config:
        old, new = f"config, {old}", f"config, settings=HostSettings.from_config(config, {new})"
    else:
        new = f"settings=HostSettings({new})"
    message = f"`Host({old})` is `Host({new})` since becket 0.2"
    if more and not has_config:
        message += "; with a configuration file it is `Host(load_host_config(...))`"
    return message


def check_inheriting(dialects: Collection[str]) -> None:
    """Checks that programs of these dialects can get the host's variables.

    Raises:
        ValueError: hosts of one of these systems pass no variables on, or there is no such dialect.
    """
    possible = list_inheriting_dialects() if dialects else []  # it imports all adapters
    for name in dialects:
        if name not in possible:
            raise ValueError(f"`inherit_environment` must name dialects of {', '.join(possible)}, got {name}")
