"""Starts an extension that may start: with its environment, its configuration and its limits.

All of it is settled anew for each start, so that a new copy has the newest. Who may start, and by which files, is the
doorkeeper's (`admitting`); starting again what has ended is the supervisor's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from becket.contract.handshake import HostInfo
from becket.dialects import DIALECTS, find_dialect
from becket.dialects.habits import DEFAULT_HABITS, Habits, Surroundings
from becket.errors import ExtensionRefused
from becket.host.breaker import BreakerPolicy
from becket.host.configuration import ResolvedConfig, resolve_config
from becket.host.connecting import HOST, connect_extension
from becket.host.consent import START, AskConsent, ConsentRequest, answer_for
from becket.host.discovery import Candidate
from becket.host.environment import (
    ExtensionVariables,
    build_environment,
    build_own_variables,
    list_variables,
    policy_of,
)
from becket.host.events import Events
from becket.host.extension import Extension
from becket.host.gate import configured_variables, declared_environment, works_in_root
from becket.host.log_events import LogEvents
from becket.host.manifest import AskedLimits, Environment
from becket.host.places import Places
from becket.host.recording import Audit
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.host.secrets import Secrets
from becket.host.slices import Slices
from becket.host.supervisor import Care
from becket.host.temporary_folders import TemporaryFolders, make_habitual_variables
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.host.working_copies import WorkingCopy
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.permissions import Gate
from becket.methods.policies import Policy
from becket.methods.registry import Registry
from becket.peer.loops import loop_time
from becket.peer.peer import Peer
from becket.rpc.budget import SharedBudget
from becket.rpc.records import Ids
from becket.stores.store import Store
from becket.typed.schema import SchemaMode
from becket.typed.small_files import show_path

S = TypeVar("S", bound=Struct)

__all__ = [
    "LaunchSettings",
    "Way",
    "Wrap",
    "build_care",
    "launch_extension",
    "list_launch_variables",
    "read_config",
    "secret_keys_of",
]


Wrap = Callable[[str, Sequence[str]], Sequence[str]]
"""Gets the id of an extension and the command that starts it, and returns the one to start in its place."""


OnLink = Callable[[str, str, Peer], object]
"""Gets the id of an extension, the name of its dialect and the new link to it, before the first frame."""


class LaunchSettings(Struct, frozen=True, kw_only=True):
    """What a host gives to every extension that it starts.

    `most_limits` is the most that a manifest may ask for; `environment` are the host's own additions to what all of
    them see, and `inherit_environment` the dialects whose programs see what their own hosts pass on. `policy` has its
    say about every call of an extension. What each of them logs is told as `events`. `wrap` puts another program in
    front of each command. `budget` is what all of them may have held together. With `guard` they are killed when this
    program is gone. `on_link` gets each new link. All starts share the `slices` of the loop, and the temporary
    `folders`."""

    store: Store
    audit: Audit
    places: Places | None = None
    ask: AskConsent | None = None
    policy: Policy | None = None
    methods: Registry = Registry()
    host: HostInfo = HOST
    limits: Limits = DEFAULT_LIMITS
    most_limits: AskedLimits = AskedLimits()
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    care: Care = Care()
    environment: Environment = Environment()
    inherit_environment: frozenset[str] = frozenset()
    variables: Mapping[str, str] = {}
    schemas: SchemaMode = SchemaMode.ENFORCE
    require_parent: bool = False
    wrap: Wrap | None = None
    events: Events | None = None
    secrets: Secrets | None = None
    budget: SharedBudget | None = None
    guard: bool = False
    on_link: OnLink | None = None
    slices: Slices = field(default_factory=Slices)
    folders: TemporaryFolders = field(default_factory=TemporaryFolders)


class Way(Struct, frozen=True):
    """What of an extension is started: a command whose program is an absolute path, and the folder that it is in.

    `cwd` is where it runs, if not where its dialect runs it; `digest` that of its files, where they are known to be
    these. It `is_copy` where the folder is a copy of the extension's, and the host's; `working` is that copy where the
    program may write to it, for one start."""

    command: tuple[str, ...]
    folder: str
    cwd: str | None = None
    digest: str | None = None
    is_copy: bool = False
    working: WorkingCopy | None = None


async def launch_extension(
    candidate: Candidate,
    way: Way,
    gate: Gate,
    settings: LaunchSettings,
    *,
    configured: Mapping[str, object] | None = None,
    restarts: int = 0,
    ids: Ids | None = None,
) -> Extension:
    """Starts an extension by this way and shakes hands with it.

    `configured` are its values in the host's own settings; `restarts` is how often it was started again, and
    `ids` goes on with those of the copies before it, in a dialect that keeps them.

    Raises:
        ExtensionRefused: its folder for data cannot be made, or its configuration lacks something.
        StartFailed, HandshakeFailed, ...: why it does not run.
        ValueError: there is no such dialect.
    """
    await settings.slices.take_turn()
    manifest, id = candidate.manifest, candidate.id
    dialect = find_dialect(manifest.dialect)
    habits = dialect.habits
    if habits.keeps_ids:
        dialect = replace(dialect, ids=ids)
    data = make_data_folder(settings.places, id)
    if way.working is not None and data is not None:
        log_working_copy(id, way.working.folder, data)
    environment = build_environment(
        settings.variables,
        manifest.environment,
        settings.environment,
        candidate.operator.environment,
        own=build_own_variables(id, data, is_copy=way.is_copy, habits=habits)
        | set_habitual_variables(habits, id, data, settings),
        policy=policy_of(habits, inherits=manifest.dialect in settings.inherit_environment),
    )
    visible = list_launch_variables(candidate, settings)
    config = read_config(candidate, settings, configured)
    if config.problems:
        raise ExtensionRefused(id, "; ".join(f"{pointer} {text}" for pointer, text in config.problems))
    habitual = {**habits.limits, **habits.host_limits, **(habits.restart_limits if restarts else {})}
    usual = adopt_habits(settings.limits, DEFAULT_LIMITS, habitual)
    return await connect_extension(
        way.command if settings.wrap is None else settings.wrap(id, way.command),
        id=id,
        env=environment,
        inherit_env=None,
        guard=settings.guard,
        variables=[
            name for name in visible.names if name in environment or name in settings.variables or name in visible.set
        ],
        root=way.folder,
        config=config.values,
        gate=gate,
        ask=None if settings.ask is None else answer_for(settings.ask, describe_launch(candidate, way, visible, gate)),
        audit=settings.audit,
        store=settings.store,
        secrets=settings.secrets if secret_keys_of(candidate) else None,
        methods=settings.methods,
        dialect=dialect,
        limits=manifest.limits.at_most(settings.most_limits).over(usual),
        timeouts=adopt_habits(settings.timeouts, DEFAULT_TIMEOUTS, habits.timeouts),
        host=settings.host,
        schemas=settings.schemas,
        particulars=candidate.particulars,
        cwd=way.cwd,
        version=manifest.version,
        digest=way.digest,
        restarts=restarts,
        budget=settings.budget,
        slices=settings.slices,
        on_log=None if settings.events is None else LogEvents(id, settings.events, loop_time),
        on_link=None if settings.on_link is None else partial(settings.on_link, id, dialect.name),
        on_end=None if way.working is None else way.working.release,
    )


def log_working_copy(id: str, folder: str, data: str) -> None:
    import logging

    text = "%s: runs in %s, where the next start discards what it writes; what must stay belongs in its data folder, %s"
    logging.getLogger("becket.host").info(text, id, show_path(folder), show_path(data))


def describe_launch(candidate: Candidate, way: Way, variables: ExtensionVariables, gate: Gate) -> ConsentRequest:
    """Returns what is known of a running extension when it needs a permission that a person decides about."""
    return ConsentRequest(
        candidate.id,
        START,
        None,
        None,
        "",
        version=candidate.manifest.version,
        command=way.command,
        working_directory=way.cwd or (way.folder if works_in_root(candidate) else os.getcwd()),
        variables=variables,
        held=tuple(sorted(gate.grants.allow)),
        digest=way.digest or "",
    )


def secret_keys_of(candidate: Candidate) -> tuple[str, ...]:
    """Returns the keys whose values are not kept in the store."""
    return tuple(key for key, entry in candidate.manifest.config.items() if entry.secret)


def list_launch_variables(candidate: Candidate, settings: LaunchSettings) -> ExtensionVariables:
    """Returns the variables that an extension gets with these settings, besides those of the base list."""
    manifest = candidate.manifest
    dialect = DIALECTS.get(manifest.dialect)
    return list_variables(
        manifest.environment if candidate.is_operators else declared_environment(manifest),
        configured_variables(manifest),
        settings.environment,
        candidate.operator.environment,
        allowed=candidate.operator.allow_variables,
        available=settings.variables,
        habits=DEFAULT_HABITS if dialect is None else dialect.habits,
        inherits=manifest.dialect in settings.inherit_environment,
    )


def build_care(candidate: Candidate, settings: LaunchSettings) -> Care:
    """Returns how an extension is looked after: as its manifest, its dialect and the host say, in this order."""
    manifest = candidate.manifest
    habits = find_dialect(manifest.dialect).habits
    usual_restart = {**habits.restart}
    if "strategy" in usual_restart:
        usual_restart["strategy"] = RestartStrategy(usual_restart["strategy"])
    restarts_on_errors = settings.care.restarts_on_errors or habits.restarts_on_errors
    resends_hooks = settings.care.resends_hooks
    return Care(
        restart=manifest.restart.over(adopt_habits(settings.care.restart, RestartPolicy(), usual_restart)),
        breaker=adopt_habits(settings.care.breaker, BreakerPolicy(), habits.breaker),
        heartbeat=settings.care.heartbeat,
        drain=settings.care.drain,
        restarts_on_errors=restarts_on_errors,
        resends_hooks=restarts_on_errors or habits.resends_hooks if resends_hooks is None else resends_hooks,
        # Of one that has to be asked what it offers, nobody could know that it is needed.
        starts_when_needed=habits.starts_when_needed and candidate.declared is not None,
    )


def adopt_habits(given: S, default: S, habitual: Mapping[str, object]) -> S:
    """Returns settings with the habits of a dialect in them, wherever the host's own are no others than by default."""
    free = {name: value for name, value in habitual.items() if getattr(given, name) == getattr(default, name)}
    return replace(given, **free)


def set_habitual_variables(
    habits: Habits, extension: str, data: str | None, settings: LaunchSettings
) -> dict[str, str]:
    """Returns the variables that a host of the extension's own system would set, and makes the folders they name.

    Raises:
        ExtensionRefused: such a folder cannot be made.
    """
    surroundings = Surroundings(extension, settings.host, data, settings.variables)
    try:
        return make_habitual_variables(habits, surroundings, settings.folders)
    except OSError as error:
        raise refuse_folder(extension, error) from error


def make_data_folder(places: Places | None, id: str) -> str | None:
    """Returns the folder that an extension may write to, made if need be; None where nothing is kept."""
    if places is None:
        return None
    folder = str(places.data_of(id))
    make_folder(id, folder)
    return folder


def make_folder(id: str, folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise refuse_folder(id, error) from error


def refuse_folder(id: str, error: OSError) -> ExtensionRefused:
    return ExtensionRefused(id, f"its folder for data cannot be made: {error}")


def read_config(
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
        habits=find_dialect(candidate.manifest.dialect).habits,
    )
