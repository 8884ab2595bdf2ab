"""From a candidate that may start to something that can be started, again and again.

What does not change between two starts (the gate with its grants, the command, the environment) is settled once; the
configuration is resolved for each start, so that a new copy has the newest.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from becket.contract.handshake import HostInfo
from becket.errors import ExtensionRefused
from becket.host.configuration import ResolvedConfig, resolve_config
from becket.host.connecting import HOST, connect_extension
from becket.host.discovery import Candidate
from becket.host.environment import build_environment, build_own_variables
from becket.host.extension import Extension
from becket.host.manifest import AskedLimits, Environment
from becket.host.places import Places
from becket.host.recording import Audit, RecordingGate
from becket.host.supervisor import Care
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.permissions import Decision, Gate, Grants
from becket.methods.registry import Registry
from becket.peer.admission import Ask
from becket.stores.store import Store
from becket.typed.schema import SchemaMode

__all__ = ["Launch", "LaunchSettings", "prepare_launch", "read_config"]


class LaunchSettings(Struct, frozen=True, kw_only=True):
    """What a host gives to every extension that it starts.

    `most_limits` is the most that a manifest may ask for; `pass_variables` are the host's own additions to what all of
    them see. `policy` has its say about every call of an extension."""

    store: Store
    audit: Audit
    places: Places | None = None
    ask: Ask | None = None
    policy: Callable[[Decision], bool] | None = None
    methods: Registry = Registry()
    host: HostInfo = HOST
    limits: Limits = DEFAULT_LIMITS
    most_limits: AskedLimits = AskedLimits()
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    care: Care = Care()
    environment: Environment = Environment()
    variables: Mapping[str, str] = {}
    schemas: SchemaMode = SchemaMode.ENFORCE


class Launch(Struct, frozen=True):
    """An extension that can be started."""

    gate: Gate
    start: Callable[[], Awaitable[Extension]]
    command: tuple[str, ...]
    care: Care


def prepare_launch(
    candidate: Candidate,
    command: tuple[str, ...],
    grants: Grants,
    settings: LaunchSettings,
    *,
    configured: Mapping[str, object] | None = None,
) -> Launch:
    """Returns how an extension is started by this command, whose program is an absolute path, with these grants.

    `configured` are its values in the host's own settings.

    Raises:
        ExtensionRefused: its folder for data cannot be made.
    """
    manifest, id = candidate.manifest, candidate.id
    environment = build_environment(
        settings.variables,
        settings.environment,
        manifest.environment,
        own=build_own_variables(id, make_data_folder(settings.places, id)),
    )
    gate = RecordingGate(id, grants, settings.audit, policy=settings.policy, asks=settings.ask is not None)
    limits = manifest.limits.at_most(settings.most_limits).over(settings.limits)

    async def start() -> Extension:
        config = read_config(candidate, settings, configured)
        if config.problems:
            raise ExtensionRefused(id, "; ".join(f"{pointer} {text}" for pointer, text in config.problems))
        return await connect_extension(
            command,
            id=id,
            env=environment.variables,
            root=candidate.folder,
            config=config.values,
            gate=gate,
            ask=settings.ask,
            audit=settings.audit,
            store=settings.store,
            methods=settings.methods,
            dialect=manifest.dialect,
            limits=limits,
            timeouts=settings.timeouts,
            host=settings.host,
            schemas=settings.schemas,
        )

    care = Care(
        restart=manifest.restart.over(settings.care.restart),
        breaker=settings.care.breaker,
        heartbeat=settings.care.heartbeat,
        drain=settings.care.drain,
    )
    return Launch(gate, start, command, care)


def make_data_folder(places: Places | None, id: str) -> str | None:
    """Returns the folder that an extension may write to, made if need be; None where nothing is kept."""
    if places is None:
        return None
    folder = places.data_of(id)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise ExtensionRefused(id, f"its folder for data cannot be made: {error}") from error
    return str(folder)


def read_config(
    candidate: Candidate, settings: LaunchSettings, configured: Mapping[str, object] | None
) -> ResolvedConfig:
    """Returns the configuration of an extension as it is now."""
    return resolve_config(
        candidate.id,
        candidate.manifest.config,
        variables=settings.variables,
        stored=settings.store.read_config(candidate.id).values,
        configured=configured or {},
    )
