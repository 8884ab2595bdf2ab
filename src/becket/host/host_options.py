"""The keyword arguments of `Host` that few programs need, and their defaults."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, TypedDict, cast
from warnings import warn

from becket.conversion.suggestions import did_you_mean
from becket.dialects import DIALECTS
from becket.host.audit_log import ROTATE_AT, AuditMode
from becket.host.command_lines import CommandLines
from becket.host.extension_set import WatchMode
from becket.host.hook_plan import HookSettings
from becket.host.hooks import ConfirmHook
from becket.host.host_config import ExtensionConfig
from becket.host.starting.discovery import DEFAULT_SETTINGS, DiscoverySettings
from becket.host.starting.environment import prefer_own_python
from becket.host.starting.launch import WrapCommand
from becket.host.starting.manifest import Environment, LimitOverrides
from becket.host.supervision_policy import SupervisionPolicy
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.json_schema.validator import SchemaMode
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.policies import Policy

__all__ = ["HostKeywords", "OptionValues"]


class HostKeywords(TypedDict, total=False):
    """Keyword arguments of a host that few programs need. Those that a configuration file has are better set there.

    `name` is that of the host, and of its data directory. `config` has values by extension and key. `only` and
    `disabled` select among the discovered extensions, and `extensions` overrides the manifest of one. `confirm` prompts
    for a hook's confirmation, and `policy` must confirm every call. `watch` reports changed files, or reloads their
    extensions; with `development` these need no new consent. `environment` is for all extensions, besides what each
    requests; those of the dialects in `inherit_environment` get the variables that hosts of their own system pass on.
    `most_limits` is the maximum that an extension may request. `dialects` has the settings of adapters, by dialect.
    `wrap` puts another program in front of each command: a tracer, or a sandbox. `hooks` sets the order in which
    extensions are consulted, and which of them are required. `require_parent` refuses calls of an extension that name
    no parent request while it handles one of another extension. With `live_trace` programs of the same user may follow
    its traffic (`becket trace --follow`). `command_lines` builds the `becket` commands in hints; by default with the
    roots and the data directory of this host."""

    name: str
    config: Mapping[str, Mapping[str, object]] | None
    confirm: ConfirmHook | None
    policy: Policy | None
    only: Collection[str] | None
    disabled: Collection[str]
    watch: WatchMode | None
    development: bool
    audit: AuditMode | str
    supervision: SupervisionPolicy | None
    limits: Limits
    timeouts: Timeouts
    discovery: DiscoverySettings
    variables: Mapping[str, str] | None
    environment: Environment | None
    inherit_environment: Collection[str]
    most_limits: LimitOverrides | None
    schemas: SchemaMode | str
    audit_bytes: int
    require_parent: bool
    extensions: Mapping[str, ExtensionConfig] | None
    dialects: Mapping[str, object] | None
    wrap: WrapCommand | None
    hooks: HookSettings | None
    live_trace: bool
    command_lines: CommandLines | None


class OptionValues:
    """The value of each option of a host: as given, or its default.

    Raises:
        TypeError: there is no such keyword.
        ValueError: a value is none of those that are allowed.
    """

    def __init__(self, given: HostKeywords) -> None:
        check_names(given)
        self.name = given.get("name", "becket")
        self.config = dict(given.get("config") or {})
        self.confirm = given.get("confirm")
        self.policy = given.get("policy")
        self.only = given.get("only")
        self.disabled = frozenset(given.get("disabled", ()))
        self.watch: WatchMode | None = given.get("watch")
        self.development = given.get("development", False)
        self.audit = AuditMode(given.get("audit", AuditMode.USUAL))
        self.supervision = given.get("supervision") or SupervisionPolicy()
        self.limits = given.get("limits", DEFAULT_LIMITS)
        self.timeouts = given.get("timeouts", DEFAULT_TIMEOUTS)
        self.discovery = given.get("discovery", DEFAULT_SETTINGS)
        variables = given.get("variables")
        self.variables = prefer_own_python(os.environ if variables is None else variables)
        self.environment = given.get("environment") or Environment()
        self.inherit_environment = check_inheriting(given.get("inherit_environment", ()))
        self.max_limits = given.get("most_limits") or LimitOverrides()
        self.schemas = SchemaMode(given.get("schemas", SchemaMode.ENFORCE))
        self.audit_bytes = given.get("audit_bytes", ROTATE_AT)
        self.require_parent = given.get("require_parent", False)
        self.extensions = dict(given.get("extensions") or {})
        self.dialects = dict(given.get("dialects") or {})
        self.wrap = given.get("wrap")
        self.hooks = given.get("hooks")
        self.live_trace = given.get("live_trace", False)
        self.command_lines = given.get("command_lines")


def check_names(options: HostKeywords) -> None:
    """Raises TypeError for a keyword that `Host` does not have. Accepts `mcp` and `care`, which were some in 0.1."""
    given = cast("dict[str, Any]", options)
    if "mcp" in given:
        warn("`Host(mcp=...)` is `Host(dialects={'mcp': ...})` since becket 0.2", DeprecationWarning, stacklevel=4)
        given["dialects"] = {**(given.get("dialects") or {}), "mcp": given.pop("mcp")}
    if "care" in given:
        warn("`Host(care=...)` is `Host(supervision=...)` since becket 0.2", DeprecationWarning, stacklevel=4)
        given["supervision"] = given.pop("care")
    for name in sorted(given.keys() - HostKeywords.__annotations__.keys()):
        meant = did_you_mean(name, HostKeywords.__annotations__)
        raise TypeError(f"`Host` has no option `{name}`" + (f": {meant}" if meant else ""))


def check_inheriting(dialects: Collection[str]) -> frozenset[str]:
    """Returns the dialects whose programs get the host's variables.

    Raises:
        ValueError: hosts of one of these systems pass no variables on, or there is no such dialect.
    """
    possible = sorted(name for name in DIALECTS if DIALECTS[name].host_defaults.inherited_environment != "few")
    for name in dialects:
        if name not in possible:
            raise ValueError(f"`inherit_environment` must name dialects of {', '.join(possible)}, got {name}")
    return frozenset(dialects)
