"""Launches an approved extension with its environment, configuration and limits.

All of it is resolved anew for each start. `consent` decides about the start and its files; the supervisor restarts what
has ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from becket._loggers import host_logger
from becket._text import quote_path
from becket.contract.handshake import HostInfo
from becket.dialects import DIALECTS, find_dialect
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, EnvironmentContext, HostDefaults
from becket.errors import ExtensionRefused
from becket.host.breaker import BreakerPolicy
from becket.host.data_dir import DataDir
from becket.host.events import EventBus
from becket.host.extension_connection import ExtensionConnection
from becket.host.logs import LogEventPublisher
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.host.serving.audited_gate import AuditSink
from becket.host.starting.candidate import Candidate
from becket.host.starting.configuration import ResolvedConfig, resolve_config
from becket.host.starting.connect import DEFAULT_HOST_INFO, connect_extension
from becket.host.starting.consent_request import START, AskConsent, ConsentRequest, answer_for
from becket.host.starting.environment import (
    ExtensionVariables,
    build_extension_environment,
    build_host_variables,
    build_variable_policy,
    list_variables,
)
from becket.host.starting.manifest import Environment, LimitOverrides
from becket.host.starting.secrets import Secrets
from becket.host.starting.start_check import configured_variables, declared_environment, works_in_root
from becket.host.starting.temporary_folders import TemporaryFolders, make_default_variables
from becket.host.starting.working_copies import WorkingCopy
from becket.host.supervision_policy import SupervisionPolicy
from becket.host.time_slices import Slices
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.json_schema import SchemaMode
from becket.jsonrpc.budget import SharedBudget
from becket.jsonrpc.calls import IdCounter
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.registry import Registry
from becket.peer.loops.async_loops import loop_time
from becket.peer.peer import Peer
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Policy
from becket.stores.store import Store

S = TypeVar("S", bound=Struct)

__all__ = [
    "DialectSupport",
    "LaunchSettings",
    "LaunchSpec",
    "WrapCommand",
    "build_supervision_policy",
    "launch_extension",
    "list_launch_variables",
    "resolve_extension_config",
    "secret_keys_of",
]


WrapCommand = Callable[[str, Sequence[str]], Sequence[str]]
"""Gets the id of an extension and the command that starts it, and returns the command to start instead."""


OnLink = Callable[[str, str, Peer], object]
"""Gets the id of an extension, the name of its dialect and the new link to it, before the first frame."""


class LaunchSettings(Struct, frozen=True, kw_only=True):
    """The settings of a host for every extension that it starts.

    `max_limits` is the most that a manifest may request; `environment` are the host's own additions to the environment
    of all of them, and `inherit_environment` the dialects whose programs get what their own hosts pass on. `policy`
    must confirm every call of an extension. What each of them logs is published as `events`. `wrap` puts another
    program in front of each command. `budget` limits what is held for all of them together. With `guard` they are
    killed when this program is gone. `on_link` gets each new link. All starts share the `slices` of the loop, and the
    temporary `folders`."""

    store: Store
    audit: AuditSink
    data_dir: DataDir | None = None
    ask: AskConsent | None = None
    policy: Policy | None = None
    methods: Registry = Registry()
    host: HostInfo = DEFAULT_HOST_INFO
    limits: Limits = DEFAULT_LIMITS
    max_limits: LimitOverrides = LimitOverrides()
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    supervision: SupervisionPolicy = SupervisionPolicy()
    environment: Environment = Environment()
    inherit_environment: frozenset[str] = frozenset()
    variables: Mapping[str, str] = {}
    schemas: SchemaMode = SchemaMode.ENFORCE
    require_parent: bool = False
    wrap: WrapCommand | None = None
    events: EventBus | None = None
    secrets: Secrets | None = None
    budget: SharedBudget | None = None
    guard: bool = False
    on_link: OnLink | None = None
    slices: Slices = field(default_factory=Slices)
    folders: TemporaryFolders = field(default_factory=TemporaryFolders)


class DialectSupport(Protocol):
    """What the adapter of a dialect does for its extensions in a host, beyond what a host does for all of them."""

    def prepare_launch(
        self, candidate: Candidate, grants: Grants, settings: LaunchSettings, /
    ) -> tuple[Candidate, LaunchSettings]:
        """Returns an extension and its settings with the methods that it may call."""
        ...

    def on_ready(self, connection: ExtensionConnection, /) -> None:
        """Called when a process of such an extension is ready."""
        ...


class LaunchSpec(Struct, frozen=True):
    """What is started of an extension: a command whose program is an absolute path, and its folder.

    `cwd` is its working directory, if not its dialect's; `digest` that of its files, if they are known to be these. It
    `is_snapshot` if the folder is the host's copy of the extension's; `working` is that copy if the program may write
    to it, for one start."""

    command: tuple[str, ...]
    folder: str
    cwd: str | None = None
    digest: str | None = None
    is_snapshot: bool = False
    working: WorkingCopy | None = None


async def launch_extension(
    candidate: Candidate,
    spec: LaunchSpec,
    gate: Gate,
    settings: LaunchSettings,
    *,
    configured: Mapping[str, object] | None = None,
    restarts: int = 0,
    ids: IdCounter | None = None,
) -> ExtensionConnection:
    """Starts an extension with this launch and performs the handshake.

    `configured` are its values in the host's own settings; `restarts` is how often it was restarted, and `ids`
    continues those of the earlier processes, in a dialect that keeps them.

    Raises:
        ExtensionRefused: its data folder cannot be created, or its configuration lacks something.
        StartFailed, HandshakeFailed, ...: why it does not run.
        ValueError: there is no such dialect.
    """
    await settings.slices.take_turn()
    manifest, id = candidate.manifest, candidate.id
    dialect = find_dialect(manifest.dialect)
    defaults = dialect.host_defaults
    if defaults.keeps_ids_across_restarts:
        dialect = replace(dialect, ids=ids)
    data = create_extension_dir(settings.data_dir, id)
    if spec.working is not None and data is not None:
        log_working_copy(id, spec.working.folder, data)
    environment = build_extension_environment(
        settings.variables,
        manifest.environment,
        settings.environment,
        candidate.operator.environment,
        own=build_host_variables(id, data, is_copy=spec.is_snapshot, defaults=defaults)
        | build_host_default_variables(defaults, id, data, settings),
        policy=build_variable_policy(defaults, inherits=manifest.dialect in settings.inherit_environment),
    )
    visible = list_launch_variables(candidate, settings)
    config = resolve_extension_config(candidate, settings, configured)
    if config.problems:
        raise ExtensionRefused(id, "; ".join(f"{pointer} {text}" for pointer, text in config.problems))
    defaults_of = {**defaults.limits, **defaults.host_limits, **(defaults.restart_limits if restarts else {})}
    usual = apply_host_defaults(settings.limits, DEFAULT_LIMITS, defaults_of)
    connector = connect_extension(
        spec.command if settings.wrap is None else settings.wrap(id, spec.command),
        id=id,
        env=environment,
        inherit_env=None,
        guard=settings.guard,
        variables=[
            name for name in visible.names if name in environment or name in settings.variables or name in visible.set
        ],
        root=spec.folder,
        config=config.values,
        gate=gate,
        ask=None if settings.ask is None else answer_for(settings.ask, describe_launch(candidate, spec, visible, gate)),
        audit=settings.audit,
        store=settings.store,
        secrets=settings.secrets if secret_keys_of(candidate) else None,
        methods=settings.methods,
        dialect=dialect,
        limits=manifest.limits.clamp(settings.max_limits).apply_to(usual),
        timeouts=apply_host_defaults(settings.timeouts, DEFAULT_TIMEOUTS, defaults.timeouts),
        host=settings.host,
        schemas=settings.schemas,
        extra=candidate.extra,
        cwd=spec.cwd,
        version=manifest.version,
        digest=spec.digest,
        restarts=restarts,
        budget=settings.budget,
        slices=settings.slices,
        on_log=None if settings.events is None else LogEventPublisher(id, settings.events, loop_time),
        on_link=None if settings.on_link is None else partial(settings.on_link, id, dialect.name),
        on_end=None if spec.working is None else spec.working.release,
    )
    return await connector.open()


def log_working_copy(id: str, folder: str, data: str) -> None:
    text = "%s: runs in %s, where the next start discards what it writes; what must stay belongs in its data folder, %s"
    host_logger().info(text, id, quote_path(folder), quote_path(data))


def describe_launch(
    candidate: Candidate, spec: LaunchSpec, variables: ExtensionVariables, gate: Gate
) -> ConsentRequest:
    """Returns the request of a running extension that needs a permission with consent."""
    return ConsentRequest(
        candidate.id,
        START,
        None,
        None,
        "",
        version=candidate.manifest.version,
        command=spec.command,
        working_directory=spec.cwd or (spec.folder if works_in_root(candidate) else os.getcwd()),
        variables=variables,
        held=tuple(sorted(gate.grants.allow)),
        digest=spec.digest or "",
    )


def secret_keys_of(candidate: Candidate) -> tuple[str, ...]:
    """Returns the keys whose values are not in the store."""
    return tuple(key for key, entry in candidate.manifest.config.items() if entry.secret)


def list_launch_variables(candidate: Candidate, settings: LaunchSettings) -> ExtensionVariables:
    """Returns the variables that an extension gets with these settings, besides those of the base list."""
    manifest = candidate.manifest
    dialect = DIALECTS.get(manifest.dialect)
    return list_variables(
        manifest.environment if candidate.is_operator_defined else declared_environment(manifest),
        configured_variables(manifest),
        settings.environment,
        candidate.operator.environment,
        allowed=candidate.operator.allow_variables,
        available=settings.variables,
        defaults=STANDARD_HOST_DEFAULTS if dialect is None else dialect.host_defaults,
        inherits=manifest.dialect in settings.inherit_environment,
    )


def build_supervision_policy(candidate: Candidate, settings: LaunchSettings) -> SupervisionPolicy:
    """Returns the supervision policy of an extension: from its manifest, its dialect and the host, in this order."""
    manifest = candidate.manifest
    defaults = find_dialect(manifest.dialect).host_defaults
    usual_restart = {**defaults.restart}
    if "strategy" in usual_restart:
        usual_restart["strategy"] = RestartStrategy(usual_restart["strategy"])
    restarts_on_errors = settings.supervision.restarts_on_errors or defaults.restarts_on_tool_errors
    resends_hooks = settings.supervision.resends_hooks
    return SupervisionPolicy(
        restart=manifest.restart.apply_to(
            apply_host_defaults(settings.supervision.restart, RestartPolicy(), usual_restart)
        ),
        breaker=apply_host_defaults(settings.supervision.breaker, BreakerPolicy(), defaults.breaker),
        heartbeat=settings.supervision.heartbeat,
        drain_timeout=settings.supervision.drain_timeout,
        restarts_on_errors=restarts_on_errors,
        resends_hooks=restarts_on_errors or defaults.resends_hooks if resends_hooks is None else resends_hooks,
        # One that declares its tools only when it runs must be started: its first use could not be noticed.
        starts_on_demand=defaults.starts_on_demand and candidate.declared is not None,
    )


def apply_host_defaults(settings: S, default: S, defaults_of: Mapping[str, object]) -> S:
    """Returns settings with a dialect's host defaults, wherever the host's own are the general defaults."""
    free = {name: value for name, value in defaults_of.items() if getattr(settings, name) == getattr(default, name)}
    return replace(settings, **free)


def build_host_default_variables(
    defaults: HostDefaults, extension: str, data: str | None, settings: LaunchSettings
) -> dict[str, str]:
    """Returns the variables that a host of the extension's own system would set, and makes the folders they name.

    Raises:
        ExtensionRefused: such a folder cannot be made.
    """
    context = EnvironmentContext(extension, settings.host, data, settings.variables)
    try:
        return make_default_variables(defaults, context, settings.folders)
    except OSError as error:
        raise refuse_folder(extension, error) from error


def create_extension_dir(data_dir: DataDir | None, id: str) -> str | None:
    """Returns the folder that an extension may write to, made if need be; None where nothing is kept."""
    if data_dir is None:
        return None
    folder = str(data_dir.extension_dir(id))
    create_folder(id, folder)
    return folder


def create_folder(id: str, folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise refuse_folder(id, error) from error


def refuse_folder(id: str, error: OSError) -> ExtensionRefused:
    return ExtensionRefused(id, f"its folder for data cannot be made: {error}")


def resolve_extension_config(
    candidate: Candidate, settings: LaunchSettings, configured: Mapping[str, object] | None
) -> ResolvedConfig:
    """Returns the configuration of an extension as it is now."""
    secrets = {} if settings.secrets is None else settings.secrets.values_of(candidate.id)
    return resolve_config(
        candidate.id,
        candidate.manifest.config,
        variables=settings.variables,
        stored=settings.store.read_config(candidate.id).values,
        secrets=secrets,
        configured=configured or {},
        defaults=find_dialect(candidate.manifest.dialect).host_defaults,
        without=candidate.shared_variables,
    )
